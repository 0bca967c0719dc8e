"""The operator against a real API server: what it makes, keeps, says, and leaves alone."""

from __future__ import annotations

import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from api_objects import profile as profile_of
from cluster import plane as planes
from cluster.daemons import Daemon, free_ports
from cluster.plane import ControlPlane, Options
from controlplane import Kube, Object, condition, unique, wait_for
from reveal_contract.kubernetes import (
    API_VERSION,
    LABEL_MANAGED_BY,
    LABEL_PROFILE,
    OPERATOR_MANAGER,
    PROFILE_KIND,
    REPORT_KIND,
    child_name,
    report_name,
)

ROOT = Path(__file__).parents[2]
NAMESPACE = "reveal-system"
PORTS = tuple(free_ports(2))
SOON_S = 15.0
QUIET_S = 3.0
STOP_S = 2.0
RETRIED = 'reveal_operator_reconcile_total{result="retried"}'
WRITES = ("create", "patch", "update", "delete")

pytestmark = pytest.mark.timeout(240)


@dataclass
class Stage:
    """A cluster with the operator beside it."""

    plane: ControlPlane
    kube: Kube
    operator: Daemon

    def apply(self, spec: Object | None = None, name: str = "") -> str:
        """A profile, on nodes of its own; its name."""
        made = profile_of(spec, name or unique("p"))
        made["spec"].setdefault("nodeSelector", {"pool": made["metadata"]["name"][:60]})
        self.kube.apply(made)
        return str(made["metadata"]["name"])

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

    def made(self, name: str) -> Object:
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
        with urllib.request.urlopen(f"http://127.0.0.1:{PORTS[0]}/metrics", timeout=5) as answer:
            for text in answer.read().decode().splitlines():
                if text.startswith(f"{line} "):
                    return float(text.rpartition(" ")[2])
        return 0.0


def ask(path: str) -> int:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{PORTS[1]}{path}", timeout=5) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code
    except OSError:
        return 0


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with planes.running(Options(audit=True)) as plane:
        kube = Kube(plane.kubeconfig)
        about = {"name": NAMESPACE}
        kube.create({"apiVersion": "v1", "kind": "Namespace", "metadata": about})
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
            yield Stage(plane, kube, operator)
        finally:
            operator.stop()


@pytest.fixture(autouse=True)
def shown(stage: Stage, request: pytest.FixtureRequest) -> Iterator[None]:
    """The operator's log of a test that fails."""
    begin = stage.operator.log.stat().st_size
    yield
    print(stage.operator.log.read_text()[begin:])


def test_a_profile_gets_its_children_and_conditions(stage: Stage) -> None:
    name = stage.apply({"nodeSelector": {"pool": "three"}})
    for number in range(3):
        stage.add_node(f"gpu-{number}", pool="three")
    found = stage.made(name)
    owner = stage.daemon_set(name)["metadata"]["ownerReferences"][0]
    assert (owner["uid"], owner["blockOwnerDeletion"]) == (found["metadata"]["uid"], False)
    assert "finalizers" not in found["metadata"]
    assert not found["metadata"].get("annotations")

    def counted() -> bool:
        status = stage.profile(name)["status"]
        return (status.get("desiredNodes"), status.get("readyNodes")) == (3, 0)

    wait_for(counted, SOON_S, "the nodes are counted")
    found = stage.profile(name)
    assert condition(found, "SpecAccepted")["status"] == "True"
    ready = condition(found, "Ready")
    assert (ready["status"], ready["reason"]) == ("False", "Starting")
    assert ready["message"] == "0 of 3 collectors are available"
    assert condition(found, "StreamReachable")["status"] == "Unknown"
    assert stage.child("PodDisruptionBudget", "analyzer", name) is None


def test_an_edit_rolls_out(stage: Stage) -> None:
    name = stage.apply({"collector": {"maxSubjects": 10}})
    stage.made(name)
    before = stage.daemon_set(name)
    stage.kube.patch(stage.profile(name), {"spec": {"collector": {"maxSubjects": 20}}})

    def rolled() -> bool:
        settings = stage.child("ConfigMap", "settings", name)
        assert settings and '"maxSubjects": 20' in settings["data"]["collector.json"]
        template = stage.daemon_set(name)["spec"]["template"]["metadata"]["annotations"]
        return bool(template != before["spec"]["template"]["metadata"]["annotations"])

    wait_for(rolled, SOON_S, "new settings, new pods")


def test_several_analyzers_have_a_budget_of_disruptions_one_has_none(stage: Stage) -> None:
    name = stage.apply({"analyzer": {"replicas": 2}})
    stage.made(name)
    budget = ("PodDisruptionBudget", "analyzer", name)
    wait_for(lambda: stage.child(*budget), SOON_S, "a budget")
    stage.kube.patch(stage.profile(name), {"spec": {"analyzer": {"replicas": 1}}})
    wait_for(lambda: stage.child(*budget) is None, SOON_S, "no budget")
    assert stage.child("Deployment", "analyzer", name)["spec"]["replicas"] == 1  # type: ignore[index]


def test_a_deleted_child_returns_within_seconds(stage: Stage) -> None:
    name = stage.apply()
    stage.made(name)
    for kind, component in (
        ("DaemonSet", "collector"), ("Deployment", "analyzer"), ("ConfigMap", "settings"),
    ):  # fmt: skip
        child = stage.child(kind, component, name)
        assert child is not None
        stage.kube.delete(child)
        began = time.monotonic()

        def back(old: Object = child, kind: str = kind, component: str = component) -> bool:
            now = stage.child(kind, component, name)
            return now is not None and now["metadata"]["uid"] != old["metadata"]["uid"]

        wait_for(back, 5, f"{kind} is back")
        print(f"{kind} back after {time.monotonic() - began:.2f} s")


@pytest.mark.parametrize(
    "edit",
    [
        {"spec": {"template": {"spec": {"hostPID": False}}}},
        {"metadata": {"labels": {LABEL_MANAGED_BY: None}}},
        {"metadata": {"labels": {LABEL_PROFILE: "another"}, "ownerReferences": None}},
        {"metadata": {"labels": None, "ownerReferences": None}},
        {"metadata": {"annotations": None}},
    ],
    ids=["field", "label", "owner", "all-marks", "intent"],
)
def test_an_edited_child_is_restored_within_seconds(stage: Stage, edit: Object) -> None:
    name = stage.apply()
    stage.made(name)
    before = stage.daemon_set(name)
    stage.kube.patch(before, edit)
    began = time.monotonic()

    def restored() -> bool:
        now = stage.daemon_set(name)
        same = now["spec"]["template"]["spec"] == before["spec"]["template"]["spec"]
        kept = ("labels", "annotations", "ownerReferences")
        marks = [{**_plain(one["metadata"].get(key))} for one in (now, before) for key in kept]
        return same and marks[:3] == marks[3:]

    wait_for(restored, 5, "restored")
    print(f"restored after {time.monotonic() - began:.2f} s")


def _plain(marks: Any) -> dict[str, Any]:
    known = marks if isinstance(marks, dict) else {str(n): one for n, one in enumerate(marks or ())}
    return {key: value for key, value in known.items() if not key.startswith("deprecated.")}


def test_what_others_own_is_left_to_them(stage: Stage) -> None:
    name = stage.apply()
    stage.made(name)
    since = stage.settle()
    stage.kube.patch(stage.daemon_set(name), {"metadata": {"annotations": {"team": "ours"}}})
    time.sleep(QUIET_S)
    assert stage.daemon_set(name)["metadata"]["annotations"]["team"] == "ours"
    assert stage.writes(since) == []


def test_a_paused_profile_is_left_alone(stage: Stage) -> None:
    name = stage.apply({"paused": False})
    stage.made(name)
    stage.kube.patch(stage.profile(name), {"spec": {"paused": True}})
    stage.made(name)
    since = stage.audited()
    stage.kube.patch(stage.daemon_set(name), {"spec": {"template": {"spec": {"hostPID": False}}}})
    deployment = stage.child("Deployment", "analyzer", name)
    assert deployment is not None
    stage.kube.delete(deployment)
    stage.kube.patch(stage.profile(name), {"spec": {"collector": {"maxSubjects": 5}}})
    time.sleep(QUIET_S)
    assert {what for _, what, _ in stage.writes(since)} == {"revealprofiles"}  # the status
    assert stage.child("Deployment", "analyzer", name) is None
    assert not stage.daemon_set(name)["spec"]["template"]["spec"].get("hostPID")
    ready = condition(stage.profile(name), "Ready")
    assert ready["reason"] in ("Paused", "NoNodes")
    stage.kube.patch(stage.profile(name), {"spec": {"paused": False}})
    wait_for(lambda: stage.child("Deployment", "analyzer", name), SOON_S, "made again")
    wait_for(
        lambda: stage.daemon_set(name)["spec"]["template"]["spec"].get("hostPID"),
        SOON_S, "restored",
    )  # fmt: skip


def test_a_bad_spec_is_a_condition_and_one_event(stage: Stage) -> None:
    name = stage.apply({"collector": {"sources": {"include": ["no-such-source"]}}})

    def rejected() -> Object:
        found = condition(stage.profile(name), "SpecAccepted")
        assert found.get("status") == "False"
        return found

    told = wait_for(rejected, SOON_S, "rejected")
    assert "no-such-source" in told["message"]
    wait_for(lambda: stage.events(name, "ProfileRejected"), SOON_S, "an Event")
    since, retried = stage.settle(), stage.metric(RETRIED)
    time.sleep(QUIET_S)
    assert stage.writes(since) == []
    assert stage.metric(RETRIED) == retried
    [event] = stage.events(name, "ProfileRejected")
    assert (event["type"], event["note"]) == ("Warning", told["message"])
    assert "series" not in event
    assert stage.child("DaemonSet", "collector", name) is None
    stage.kube.patch(stage.profile(name), {"spec": {"collector": {"sources": None}}})
    found = stage.made(name)
    assert condition(found, "SpecAccepted")["status"] == "True"


def test_a_rejected_edit_keeps_what_runs(stage: Stage) -> None:
    name = stage.apply()
    stage.made(name)
    before = stage.daemon_set(name)
    bad = {"spec": {"collector": {"sources": {"exclude": ["no-such-source"]}}}}
    stage.kube.patch(stage.profile(name), bad)
    stage.made(name)
    assert condition(stage.profile(name), "Ready")["reason"] == "InvalidSpec"
    assert stage.daemon_set(name)["metadata"]["generation"] == before["metadata"]["generation"]


@pytest.mark.parametrize("how", ["Background", "Foreground"])
def test_with_its_profile_all_goes(stage: Stage, how: str) -> None:
    name = stage.apply({"analyzer": {"replicas": 2}})
    found = stage.made(name)
    report = _report(stage, found, "open", "Open")
    stage.kube.delete(found, how)

    def gone() -> bool:
        left = [
            (kind, one["metadata"]["name"])
            for kind, version in (
                ("ConfigMap", "v1"), ("DaemonSet", "apps/v1"), ("Deployment", "apps/v1"),
                ("PodDisruptionBudget", "policy/v1"),
            )
            for one in stage.kube.items(version, kind, NAMESPACE, f"{LABEL_PROFILE}={name}")
        ]  # fmt: skip
        assert not left, left
        assert stage.kube.get(API_VERSION, PROFILE_KIND, name) is None
        return stage.kube.get(API_VERSION, REPORT_KIND, report) is None

    wait_for(gone, 60, "nothing is left")


def test_two_profiles_on_the_same_nodes_say_so(stage: Stage) -> None:
    stage.add_node(unique("shared"), pool="shared", odd="yes")
    first = stage.apply({"nodeSelector": {"pool": "shared"}})
    stage.made(first)
    assert condition(stage.profile(first), "Degraded")["status"] == "Unknown"
    second = stage.apply({"nodeSelector": {"odd": "yes"}})

    def told() -> bool:
        for name, other in ((first, second), (second, first)):
            found = condition(stage.profile(name), "Degraded")
            assert (found.get("status"), found.get("reason")) == ("True", "NodesOverlap"), found
            assert f"profile {other} watches 1 of the same nodes" in found["message"]
        return True

    wait_for(told, SOON_S, "both say so")
    stage.kube.delete(stage.profile(second))
    wait_for(
        lambda: condition(stage.profile(first), "Degraded")["status"] == "Unknown",
        SOON_S, "alone again",
    )  # fmt: skip


def test_a_field_that_cannot_change_is_told_and_not_tried_again_and_again(stage: Stage) -> None:
    name = unique("immutable")
    labels = {"app": "older", LABEL_MANAGED_BY: OPERATOR_MANAGER}
    stage.kube.create(_daemon_set(child_name("collector", name), labels))
    since = stage.audited()
    stage.apply(name=name)

    def told() -> Object:
        found = condition(stage.profile(name), "Ready")
        assert found.get("reason") == "ImmutableField", found
        return found

    assert "spec.selector" in wait_for(told, SOON_S, "ImmutableField")["message"]
    assert stage.child("Deployment", "analyzer", name)  # the others are made
    time.sleep(QUIET_S)
    tries = [what for _, what, which in stage.writes(since) if which.startswith("reveal-collector")]
    assert len(tries) <= 2
    stage.kube.delete(_daemon_set(child_name("collector", name), labels))
    stage.made(name)
    wait_for(
        lambda: condition(stage.profile(name), "Ready")["reason"] == "NoNodes", 30, "made anew"
    )


def test_what_belongs_to_others_is_not_taken(stage: Stage) -> None:
    name = unique("taken")
    theirs = _daemon_set(child_name("collector", name), {"app": "theirs"})
    stage.kube.create(theirs)
    stage.apply(name=name)
    wait_for(
        lambda: condition(stage.profile(name), "Ready").get("reason") == "NameTaken", SOON_S, ""
    )
    assert stage.daemon_set(name)["metadata"]["labels"] == {"app": "theirs"}


def test_old_reports_go_and_open_ones_stay(stage: Stage) -> None:
    limits = {"ttlSecondsAfterResolved": 3600, "maxReports": 3}
    name = stage.apply({"reporting": limits})
    found = stage.made(name)
    for key, state, hours in (
        ("open", "Open", 0), ("old", "Resolved", 2), ("a", "Resolved", 0.5),
        ("b", "Resolved", 0.4), ("c", "Resolved", 0.3),
    ):  # fmt: skip
        _report(stage, found, key, state, hours)

    def left() -> bool:
        names = {
            one["spec"]["findingID"]
            for one in stage.kube.items(API_VERSION, REPORT_KIND)
            if one["spec"]["profileRef"]["name"] == name
        }
        status = stage.profile(name)["status"]
        assert (status.get("openFindings"), status.get("reports")) == (1, 3), status
        return names == {"cpu-open", "cpu-b", "cpu-c"}

    wait_for(left, 30, "three are left, and counted")


def test_a_restart_writes_nothing(stage: Stage) -> None:
    name = stage.apply({"analyzer": {"replicas": 2}})
    stage.made(name)
    wait_for(lambda: "Starting" not in _reasons(stage), 60, "what is missing has been looked at")
    stage.settle()
    for end in (stage.operator.kill, lambda: stage.operator.stop(10)):
        versions, said = _versions(stage), _statuses(stage)
        since = stage.audited()
        end()
        stage.operator.start()
        wait_for(lambda: ask("/readyz") == 200, 30, "ready")
        visits = 'reveal_operator_reconcile_total{result="done"}'
        count = len(stage.kube.items(API_VERSION, PROFILE_KIND))
        wait_for(lambda v=visits, n=count: stage.metric(v) >= n, 30, "all visited")
        time.sleep(QUIET_S)
        # what was refused is tried once more: it may do now
        wrote = [one for one in stage.writes(since) if "immutable" not in one[2]]
        for profile, status in _statuses(stage).items():
            assert status == said[profile]
        assert wrote == []
        assert _versions(stage) == versions


def test_it_ends_in_time(stage: Stage) -> None:
    pid, began = stage.operator.pid, time.monotonic()
    assert pid
    stage.operator.stop(10)
    took = time.monotonic() - began
    print(f"ended after {took:.2f} s")
    said = stage.operator.tail()
    stage.operator.start()
    wait_for(lambda: ask("/readyz") == 200, 30, "ready")
    assert took < STOP_S, said
    assert "Traceback" not in said


def test_the_kinds_may_go_and_come_back(stage: Stage) -> None:
    crds = sorted((ROOT / "crds").glob("*.yaml"))
    definitions = stage.kube.items("apiextensions.k8s.io/v1", "CustomResourceDefinition")
    for definition in definitions:
        stage.kube.delete(definition)
    wait_for(
        lambda: not stage.kube.items("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
        60, "no kinds, and nothing that hangs",
    )  # fmt: skip
    wait_for(lambda: ask("/readyz") == 503, 60, "not ready")
    assert ask("/healthz") == 200
    stage.kube.install(*crds)
    name = stage.apply()
    wait_for(lambda: ask("/readyz") == 200, 60, "ready again")
    stage.made(name)


def test_the_api_server_may_crash(stage: Stage) -> None:
    name = stage.apply()
    stage.made(name)
    stage.plane.kill()
    time.sleep(2)
    stage.plane.resume()
    child = stage.daemon_set(name)
    stage.kube.delete(child)
    wait_for(lambda: stage.child("DaemonSet", "collector", name), 30, "back")
    assert stage.operator.running
    assert ask("/healthz") == 200


def _reasons(stage: Stage) -> set[str]:
    return {
        one["reason"]
        for found in stage.kube.items(API_VERSION, PROFILE_KIND)
        for one in found.get("status", {}).get("conditions", ())
    }


def _statuses(stage: Stage) -> dict[str, Object]:
    found = stage.kube.items(API_VERSION, PROFILE_KIND)
    return {one["metadata"]["name"]: one.get("status", {}) for one in found}


def _versions(stage: Stage) -> dict[tuple[str, str], str]:
    return {
        (kind, one["metadata"]["name"]): one["metadata"]["resourceVersion"]
        for kind, version in (
            ("ConfigMap", "v1"), ("DaemonSet", "apps/v1"), ("Deployment", "apps/v1"),
            ("PodDisruptionBudget", "policy/v1"), (PROFILE_KIND, API_VERSION),
        )
        for one in stage.kube.items(version, kind)
    }  # fmt: skip


def _daemon_set(name: str, labels: dict[str, str]) -> Object:
    container = {"name": "c", "image": "reveal-collector:1"}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": labels},
        "spec": {"selector": {"matchLabels": labels}, "template": pod},
    }


def _report(stage: Stage, profile: Object, key: str, state: str, hours: float = 0) -> str:
    """A report as the analyzer writes one; its name."""
    moment = datetime.now(UTC) - timedelta(hours=hours)
    seen = moment.strftime("%Y-%m-%dT%H:%M:%SZ")
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
            "firstSeenTime": seen,
        },
    }
    made = stage.kube.create(body)
    status = {"state": state, "severity": "High", "lastSeenTime": seen, "claim": "slow"}
    status["subsystem"] = "CPU"
    status |= {"resolvedTime": seen} if state == "Resolved" else {}
    stage.kube.patch(made, {"status": status}, "status")
    return name
