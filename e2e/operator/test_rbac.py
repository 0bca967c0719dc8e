"""Every component needs the rights that the chart gives it, and no others: by the audit log.

Each does all it ever does under its own service account and the real authorizer; then what it
asked for is compared with what its roles grant, both ways.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster import plane
from cluster.daemons import free_ports
from cluster.plane import Options
from reveal_analyzer.sinks.kube.api import connect
from reveal_analyzer.sinks.kube.profile_telemetry import ProfileTelemetry
from reveal_analyzer.sinks.kube.sink import KubeSink
from reveal_analyzer.telemetry.snapshot import NodeSnapshot, Snapshot
from reveal_contract.finding import Severity
from reveal_contract.kube.names import API_VERSION, LABEL_PROFILE, REPORT_KIND
from reveal_contract.names import SHARDS
from reveal_contract.settings import AnalyzerSettings
from support import finding_factory
from support.api_objects import apply_status, report_of
from support.api_server import condition, wait_for
from support.chart_releases import Cluster
from support.finding_factory import SECOND
from support.helm_chart import NAMESPACE, program
from support.rbac_audit import Right, Use, granted, used

NODE = "gpu-1"
ON_THE_NODE = {"nodeSelector": {"pool": "gpu"}}
INSPECTED_S = 60  # the operator looks at pods that have been missing for half a minute
NOTHING_SUCH = {"sources": {"include": ["no-such-source"]}}


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with plane.running(Options(audit=True)) as running:
        installed = Cluster(running, program(), tmp_path_factory.mktemp("rbac"))
        metrics, health = free_ports(2)
        installed.upgrade(
            "--set", "redis.url=redis://redis.example:6379/0,nodeConditions.allowed=true",
            "--set", f"operator.metricsPort={metrics},operator.healthPort={health}",
        )  # fmt: skip
        about = {"name": NODE, "labels": {"pool": "gpu"}}
        installed.kube.create({"apiVersion": "v1", "kind": "Node", "metadata": about})
        yield installed


def check(installed: Cluster, account: str) -> None:
    allowed = granted(installed.kube, NAMESPACE, account)
    asked = used(installed.plane, NAMESPACE, account)
    assert not asked.refused
    assert asked.granted - allowed == set(), "used, but by another role than the chart's"
    assert allowed - asked.granted == set(), "granted, but of no use"


@pytest.mark.timeout(240)
def test_operator(installed: Cluster) -> None:
    _leave_a_condition(installed)
    with installed.operator("--sweep-seconds", "1") as operator:
        try:
            _operate(installed)
        except AssertionError as error:
            raise AssertionError(f"{error}; the operator's log ends:\n{operator.tail()}") from None
    check(installed, "reveal-operator")


def _operate(installed: Cluster) -> None:
    """Children come and go, a profile is rejected twice, a report is old, pods are missing."""
    kube = installed.kube
    wait_for(lambda: not _node_condition(installed), 30, "no report supports the condition")
    installed.apply_profile("one", **ON_THE_NODE, analyzer={"replicas": 2})
    installed.apply_profile("two", **ON_THE_NODE)
    budget = ("policy/v1", "PodDisruptionBudget", "reveal-analyzer-one", NAMESPACE)
    wait_for(lambda: kube.get(*budget), 30, "a PodDisruptionBudget of two analyzers")
    settings = {"analyzer": {"replicas": 1}, "reporting": {"ttlSecondsAfterResolved": 0}}
    installed.apply_profile("one", **ON_THE_NODE, **settings)
    wait_for(lambda: kube.get(*budget) is None, 30, "none for one analyzer")
    child = kube.get("apps/v1", "DaemonSet", "reveal-collector-one", NAMESPACE)
    assert child is not None
    kube.delete(child)
    wait_for(lambda: _is_another(installed, child["metadata"]["uid"]), 30, "the DaemonSet again")
    degraded = "Degraded"
    wait_for(lambda: condition(installed.profile("one"), degraded).get("status") == "True", 30,
             "one and two share a node")  # fmt: skip
    for sources in (NOTHING_SUCH, {"sources": {"include": ["no-other-source"]}}):
        installed.apply_profile("two", **ON_THE_NODE, collector=sources)
        wait_for(lambda: _is_rejected(installed, "two"), 30, "two is rejected")

    name = _resolved_report(installed)
    wait_for(lambda: kube.get(API_VERSION, REPORT_KIND, name) is None, 30, "the old report is gone")

    def looked() -> bool:
        asked = used(installed.plane, NAMESPACE, "reveal-operator")
        return Right("", "pods", "list") in asked.granted

    wait_for(looked, INSPECTED_S, "a look at why the collectors' pods are missing")


def _leave_a_condition(installed: Cluster) -> None:
    """As an analyzer of a deleted profile does."""
    left = {"type": "RevealAnomaly", "status": "True", "reason": "CPUHigh", "message": "left"}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NODE}}
    installed.kube.patch(node, {"status": {"conditions": [left]}}, "status")
    assert _node_condition(installed)


def _is_another(installed: Cluster, uid: str) -> bool:
    found = installed.kube.get("apps/v1", "DaemonSet", "reveal-collector-one", NAMESPACE)
    return found is not None and found["metadata"]["uid"] != uid


def _is_rejected(installed: Cluster, name: str) -> bool:
    profile = installed.profile(name)
    accepted = condition(profile, "SpecAccepted")
    assert profile is not None
    observed = accepted.get("observedGeneration") == profile["metadata"]["generation"]
    return observed and accepted["status"] == "False"


def _resolved_report(installed: Cluster) -> str:
    finding = finding_factory.resolved(node_name=NODE).finding
    created, applied = report_of(finding, "one")
    installed.kube.create(created)
    apply_status(installed.kube, applied)
    name: str = created["metadata"]["name"]
    return name


def test_analyzer(installed: Cluster, redis_server: Path) -> None:
    installed.apply_profile("told", reporting={"nodeConditions": True})
    settings = AnalyzerSettings(
        redis_url=f"unix://{redis_server}", profile="told", publish="kubernetes",
        node_conditions=True, cluster_nodes_only=True,
    )  # fmt: skip
    _report_findings(installed, settings)
    check(installed, "reveal-analyzer")


def _report_findings(installed: Cluster, settings: AnalyzerSettings) -> None:
    """One finding that grows twice and resolves, as the analyzer's own thread tells it."""
    import redis

    client = redis.Redis.from_url(settings.redis_url, protocol=2)
    config = installed.plane.account_kubeconfig(NAMESPACE, "reveal-analyzer")
    status = ProfileTelemetry(client, settings.profile, "analyzer-1")
    sink = KubeSink(settings, connect(config), "analyzer-1", telemetry=status)
    now, began_ns = time.monotonic(), time.time_ns()
    watched = {NODE: NodeSnapshot(now, now - 60)}
    sink.observe(Snapshot(now, True, True, frozenset(range(SHARDS)), watched))
    try:
        grades = (Severity.LOW, Severity.MEDIUM, Severity.HIGH)
        for step, grade in enumerate(grades):
            about = {"node_name": NODE, "severity": grade}
            update = finding_factory.changed if step else finding_factory.opened
            # Events of now are one series; one of years ago ends whenever the sink looks
            sink.write(update(last_observed_ns=began_ns + step * SECOND, **about))
            wait_for(lambda grade=grade: _severity(installed) == grade, 20, f"{grade} is reported")
        wait_for(lambda: _node_condition(installed), 20, "the node's condition")
        sink.tokens.owner(NODE, b"made up")
        wait_for(lambda: not sink.tokens.waiting, 20, "the review of a token")
        sink.write(finding_factory.resolved(node_name=NODE, severity=Severity.HIGH))
        wait_for(lambda: not _node_condition(installed), 20, "no condition of the node")
        wait_for(lambda: _telemetry(installed), 20, "the profile's telemetry")
    finally:
        sink.close()
        client.close()


def _severity(installed: Cluster) -> str:
    found = installed.kube.items(API_VERSION, REPORT_KIND, labels=f"{LABEL_PROFILE}=told")
    return found[0].get("status", {}).get("severity", "") if found else ""


def _telemetry(installed: Cluster) -> object:
    return (installed.profile("told") or {}).get("status", {}).get("telemetry")


def _node_condition(installed: Cluster) -> bool:
    return bool(condition(installed.kube.get("v1", "Node", NODE), "RevealAnomaly"))


def test_collector(installed: Cluster, redis_server: Path, tmp_path: Path) -> None:
    """Two seconds of a real one: it lists the pods of its node and watches them."""
    token = tmp_path / "token"
    token.write_text(installed.plane.token(NAMESPACE, "reveal-collector"))
    command = [
        sys.executable, "-m", "reveal_collector", "--node", NODE,
        "--redis-url", f"unix://{redis_server}", "--pod-source", "api",
        "--pod-api", installed.plane.url, "--pod-token-file", str(token),
        "--pod-ca-file", str(installed.plane.authority),
    ]  # fmt: skip
    expected = {Right("", "pods", "list"), Right("", "pods", "watch")}
    with subprocess.Popen(command) as collector:
        try:
            wait_for(lambda: _asked_for(installed, expected), 20, "list and watch of pods")
        finally:
            collector.terminate()
    check(installed, "reveal-collector")


def _asked_for(installed: Cluster, expected: set[Right]) -> bool:
    asked: Use = used(installed.plane, NAMESPACE, "reveal-collector")
    assert not asked.refused, asked.refused
    return expected <= asked.granted
