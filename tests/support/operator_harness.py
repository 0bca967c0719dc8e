"""A real control plane with the operator as a process beside it, for the tests of a module."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from cluster import plane as planes
from cluster.daemons import Daemon, free_ports
from cluster.plane import ControlPlane, Options
from reveal_contract.kube.names import (
    API_VERSION,
    OPERATOR_MANAGER,
    PROFILE_KIND,
    REPORT_KIND,
    child_name,
    report_name,
)
from support.api_objects import profile as profile_of
from support.api_server import Kube, Object, unique, wait_for
from support.component_processes import answer

ROOT = Path(__file__).parents[2]
NAMESPACE = "reveal-system"
PORTS = tuple(free_ports(2))
SOON_S = 15.0
QUIET_S = 3.0
RETRIED = 'reveal_operator_reconcile_total{result="retried"}'
WRITES = ("create", "patch", "update", "delete")


@dataclass
class OperatorHarness:
    """A cluster with the operator beside it."""

    plane: ControlPlane
    kube: Kube
    operator: Daemon

    def apply(self, spec: Object | None = None, name: str = "") -> str:
        """A profile, on nodes of its own; its name."""
        profile = profile_of(spec, name or unique("p"))
        profile["spec"].setdefault("nodeSelector", {"pool": profile["metadata"]["name"][:60]})
        self.kube.apply(profile)
        return str(profile["metadata"]["name"])

    def add_node(self, name: str, **labels: str) -> None:
        about = {"name": name, "labels": labels}
        node = self.kube.create({"apiVersion": "v1", "kind": "Node", "metadata": about})
        # a new node is tainted until its kubelet says that it is ready; there is none
        self.kube.patch(node, {"spec": {"taints": None}})

    def profile(self, name: str) -> Object:
        found = self.kube.get(API_VERSION, PROFILE_KIND, name)
        assert found is not None
        return found

    def child(self, kind: str, component: str, profile: str) -> Object | None:
        api_version = {"ConfigMap": "v1", "PodDisruptionBudget": "policy/v1"}.get(kind, "apps/v1")
        return self.kube.get(api_version, kind, child_name(component, profile), NAMESPACE)

    def daemon_set(self, profile: str) -> Object:
        found = self.child("DaemonSet", "collector", profile)
        assert found is not None
        return found

    def reconciled(self, name: str) -> Object:
        """The profile, once all children are there and the operator has said so."""

        def there() -> Object:
            assert self.child("ConfigMap", "settings", name)
            assert self.child("Deployment", "analyzer", name)
            assert self.daemon_set(name)
            found = self.profile(name)
            assert (
                found.get("status", {}).get("observedGeneration") == found["metadata"]["generation"]
            )
            return found

        return wait_for(there, SOON_S, f"children of {name}")

    def settle(self) -> int:
        """Once nothing has been written for a while; how many requests have been audited."""
        count, quiet_since = -1, time.monotonic()
        deadline = quiet_since + SOON_S
        while time.monotonic() - quiet_since < QUIET_S / 2:
            assert time.monotonic() < deadline, self.writes()[-5:]
            time.sleep(0.1)
            if (now := len(self.writes())) != count:
                count, quiet_since = now, time.monotonic()
        return self.audited()

    def writes(self, since: int = 0) -> list[tuple[str, str, str]]:
        """Verb, resource and name of what the operator wrote since that many audited requests."""
        return [
            (event["verb"], event["objectRef"]["resource"], event["objectRef"].get("name", ""))
            for event in self.plane.audited()[since:]
            if event["verb"] in WRITES
            and event.get("userAgent", "").startswith((OPERATOR_MANAGER, "kopf"))
        ]

    def audited(self) -> int:
        return len(self.plane.audited())

    def events(self, name: str, reason: str) -> list[Object]:
        found = self.kube.items("events.k8s.io/v1", "Event", "default")
        return [
            event for event in found
            if event["regarding"]["name"] == name and event["reason"] == reason
        ]  # fmt: skip

    def metric(self, line: str) -> float:
        """The value of a sample; 0 where it has not happened yet."""
        for text in answer(PORTS[0], "/metrics")[1].splitlines():
            if text.startswith(f"{line} "):
                return float(text.rpartition(" ")[2])
        return 0.0


def ask(path: str) -> int:
    return answer(PORTS[1], path)[0]


@pytest.fixture(scope="module")
def operator_stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OperatorHarness]:
    with planes.running(Options(audit=True)) as plane:
        kube = Kube(plane.kubeconfig)
        about = {"name": NAMESPACE}
        kube.create({"apiVersion": "v1", "kind": "Namespace", "metadata": about})
        for account in ("reveal-collector", "reveal-analyzer"):  # without them no pod is made
            about = {"name": account, "namespace": NAMESPACE}
            kube.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": about})
        operator = Daemon(
            "operator",
            (
                sys.executable, "-m", "reveal_operator",
                "--kubeconfig", plane.kubeconfig, "--namespace", NAMESPACE,
                "--redis-url", "redis://redis.example:6379/0",
                "--metrics-port", str(PORTS[0]), "--health-port", str(PORTS[1]),
                "--sweep-seconds", "1", "--log-format", "json",
            ),
            tmp_path_factory.mktemp("operator") / "log",
        )  # fmt: skip
        operator.start()
        try:
            wait_for(lambda: "apply the CRDs" in operator.tail(), SOON_S, "it says what is missing")
            assert (ask("/healthz"), ask("/readyz")) == (200, 503)
            kube.install(*sorted((ROOT / "crds").glob("*.yaml")))
            wait_for(lambda: ask("/readyz") == 200, 30, "ready")
            yield OperatorHarness(plane, kube, operator)
        finally:
            operator.stop()


@pytest.fixture
def stage(operator_stage: OperatorHarness) -> Iterator[OperatorHarness]:
    """The module's stage; the operator's log is shown where a test fails."""
    begin = operator_stage.operator.log.stat().st_size
    yield operator_stage
    sys.stdout.write(operator_stage.operator.log.read_text()[begin:])


def reasons(stage: OperatorHarness) -> set[str]:
    return {
        condition["reason"]
        for found in stage.kube.items(API_VERSION, PROFILE_KIND)
        for condition in found.get("status", {}).get("conditions", ())
    }


def statuses(stage: OperatorHarness) -> dict[str, Object]:
    found = stage.kube.items(API_VERSION, PROFILE_KIND)
    return {item["metadata"]["name"]: item.get("status", {}) for item in found}


def versions(stage: OperatorHarness) -> dict[tuple[str, str], str]:
    return {
        (kind, item["metadata"]["name"]): item["metadata"]["resourceVersion"]
        for kind, version in (
            ("ConfigMap", "v1"), ("DaemonSet", "apps/v1"), ("Deployment", "apps/v1"),
            ("PodDisruptionBudget", "policy/v1"), (PROFILE_KIND, API_VERSION),
        )
        for item in stage.kube.items(version, kind)
    }  # fmt: skip


def foreign_daemon_set(name: str, labels: dict[str, str]) -> Object:
    container = {"name": "c", "image": "reveal-collector:1"}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": labels},
        "spec": {"selector": {"matchLabels": labels}, "template": pod},
    }


def a_report(
    stage: OperatorHarness, profile: Object, key: str, state: str, hours: float = 0
) -> str:
    """A report as the analyzer writes one; its name."""
    moment = datetime.now(UTC) - timedelta(hours=hours)
    timestamp = moment.strftime("%Y-%m-%dT%H:%M:%SZ")
    about = profile["metadata"]
    name = report_name(about["name"], "node", f"cpu-{key}")
    owner = {"apiVersion": API_VERSION, "kind": PROFILE_KIND, "name": about["name"]}
    body = {
        "apiVersion": API_VERSION,
        "kind": REPORT_KIND,
        "metadata": {"name": name, "ownerReferences": [{**owner, "uid": about["uid"]}]},
        "spec": {
            "profileRef": {"name": about["name"]},
            "nodeName": "node",
            "findingID": f"cpu-{key}",
            "subsystem": "CPU",
            "firstSeenTime": timestamp,
        },
    }
    created = stage.kube.create(body)
    status = {"state": state, "severity": "High", "lastSeenTime": timestamp, "claim": "slow"}
    status["subsystem"] = "CPU"
    status |= {"resolvedTime": timestamp} if state == "Resolved" else {}
    stage.kube.patch(created, {"status": status}, "status")
    return name
