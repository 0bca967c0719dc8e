"""The Kubernetes sink on a real API server: what it takes, what it counts, what it costs."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from cluster.plane import ControlPlane
from reveal_analyzer.sinks.kube import backoff, sink
from reveal_analyzer.sinks.kube.api import connect
from reveal_analyzer.sinks.kube.profile_telemetry import telemetry
from reveal_analyzer.sinks.kube.sink import KubeSink
from reveal_analyzer.telemetry.degraded import Degradation
from reveal_analyzer.telemetry.snapshot import NodeSnapshot, Snapshot
from reveal_analyzer.telemetry.states import TelemetryState
from reveal_contract.finding import (
    Confidence,
    FindingChange,
    FindingUpdate,
    JobLoss,
    Pod,
    Severity,
    rfc3339,
)
from reveal_contract.kube import names
from reveal_contract.kube.anomaly_report import report
from reveal_contract.names import shard
from reveal_contract.settings import AnalyzerSettings
from support.api_server import Kube, unique, wait_for
from support.api_server_sink import DEFINITIONS, EVENTS, ApiServerSink, Object
from support.finding_factory import changed, finding, largest, opened, resolved
from support.report_store_harness import ALL


@pytest.fixture(scope="module")
def served(kube: Kube) -> Kube:
    kube.install(*DEFINITIONS)
    return kube


@pytest.fixture(autouse=True)
def _hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backoff, "LONGEST_S", 0.3)
    monkeypatch.setattr(sink, "ROUND_SECONDS", 0.05)


@pytest.fixture
def bench(control_plane: ControlPlane, served: Kube, tmp_path: Path) -> Iterator[ApiServerSink]:
    created = ApiServerSink(control_plane, served, tmp_path)
    yield created
    created.sink.close()


def test_a_finding_has_a_single_report_and_event_until_it_is_resolved(bench: ApiServerSink) -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": bench.node}}
    uid = bench.kube.create(node)["metadata"]["uid"]
    bench.update(opened())
    bench.idle()
    (stored,) = bench.reports
    assert stored["metadata"]["name"] == f"{bench.profile}-{bench.node}-cpu-1"
    (owner,) = stored["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["controller"]) == (
        "RevealProfile", bench.profile, False,
    )  # fmt: skip
    assert stored["status"]["state"] == "Open"
    (event,) = bench.events
    assert event["reason"] == "AnomalyDetected"
    assert event["regarding"]["uid"] == uid
    assert event["related"]["name"] == stored["metadata"]["name"]
    assert event["metadata"]["namespace"] == "default"
    bench.update(resolved())
    bench.idle()
    (over,) = bench.reports
    assert over["status"]["state"] == "Resolved"
    assert over["status"]["resolvedTime"]
    assert over["metadata"]["labels"][names.LABEL_STATE] == "Resolved"
    assert over["spec"] == stored["spec"]
    assert bench.reasons() == ["AnomalyDetected", "AnomalyResolved"]


@pytest.fixture
def older_definition(served: Kube) -> Iterator[None]:
    """The cluster's schema of reports does not have ``lostTime``."""
    served.install(*DEFINITIONS)
    name = f"anomalyreports.{names.GROUP}"
    definition = served.get("apiextensions.k8s.io/v1", "CustomResourceDefinition", name)
    assert definition is not None
    versions = definition["spec"]["versions"]
    for version in versions:
        status = version["schema"]["openAPIV3Schema"]["properties"]["status"]
        del status["properties"]["lostTime"]
    served.patch(definition, {"spec": {"versions": versions}})
    where = f"/openapi/v3/apis/{names.API_VERSION}"
    wait_for(lambda: "lostTime" not in str(served.request("GET", where)), 20, "the older schema")
    yield
    served.install(*DEFINITIONS)


@pytest.mark.usefixtures("older_definition")
def test_a_report_is_written_where_the_schema_is_older(bench: ApiServerSink) -> None:
    bench.update(opened(lost_time=(JobLoss("/job", 20.0, 30),)))
    bench.idle()
    (stored,) = bench.reports
    assert stored["status"]["state"] == "Open"
    assert "lostTime" not in stored["status"]


def test_fifty_updates_are_few_writes(bench: ApiServerSink) -> None:
    bench.update(opened())
    bench.idle()
    version = bench.reports[0]["metadata"]["resourceVersion"]
    for number in range(50):
        bench.update(changed(claim=f"words {number}"))
    bench.idle()
    time.sleep(0.3)
    assert bench.reports[0]["metadata"]["resourceVersion"] == version
    bench.update(changed(severity=Severity.CRITICAL, claim="now it matters"))
    bench.idle()
    (stored,) = bench.reports
    assert stored["status"]["claim"] == "now it matters"
    assert stored["metadata"]["labels"][names.LABEL_SEVERITY] == "Critical"
    assert bench.reasons() == ["AnomalyDetected", "AnomalyEscalated"]


def test_repeated_events_form_a_series(bench: ApiServerSink) -> None:
    bench.update(opened())
    for severity in (Severity.HIGH, Severity.CRITICAL):
        bench.update(changed(severity=severity))
        bench.idle()
    escalated = [event for event in bench.events if event["reason"] == "AnomalyEscalated"]
    assert [item["series"]["count"] for item in escalated] == [2]


def test_an_event_on_a_pod_is_in_its_namespace(bench: ApiServerSink, namespace: str) -> None:
    pod = Pod(namespace, "train-0", "a-uid", "", 80, 50, Confidence.MEASURED)
    bench.update(opened(pods=(pod,)))
    bench.idle()
    (event,) = bench.kube.items(EVENTS, "Event", namespace)
    assert (event["regarding"]["kind"], event["regarding"]["uid"]) == ("Pod", "a-uid")
    assert len(bench.events) == 1


def test_the_largest_finding_is_stored_completely_within_the_size_limit(
    bench: ApiServerSink,
) -> None:
    finding = replace(largest(), node_name=bench.node, id="cpu-largest")
    bench.sink.write(FindingUpdate(FindingChange.OPENED, finding))
    bench.idle()
    (stored,) = bench.reports
    expected = report(finding, bench.profile, 1)
    assert stored["status"] == {**expected.status, "profileGeneration": 1}
    del stored["metadata"]["managedFields"]
    assert len(json.dumps(stored, ensure_ascii=False, separators=(",", ":")).encode()) <= 8192


def test_a_restarted_sink_adopts_its_reports(bench: ApiServerSink) -> None:
    bench.update(opened(), opened("gpu-1"))
    bench.idle()
    bench.sink.close()
    bench.start()
    bench.update(opened())  # the same finding again
    bench.idle()
    bench.update(resolved())
    bench.idle()
    states = {item["spec"]["findingID"]: item["status"]["state"] for item in bench.reports}
    assert states == {"cpu-1": "Resolved", "gpu-1": "Open"}
    assert bench.reasons().count("AnomalyDetected") == 2


def test_two_analyzers_in_turn_write_the_same_report(
    bench: ApiServerSink, control_plane: ControlPlane, tmp_path: Path
) -> None:
    bench.update(opened())
    bench.idle()
    first = bench.sink
    bench.folder = tmp_path / "second"
    bench.start()
    bench.update(opened("cpu-next", severity=Severity.HIGH))
    bench.idle()
    (stored,) = bench.reports
    assert stored["spec"]["findingID"] == "cpu-1"
    assert stored["status"]["severity"] == "High"
    bench.update(resolved("cpu-next", severity=Severity.HIGH))
    bench.idle()
    assert [item["status"]["state"] for item in bench.reports] == ["Resolved"]
    first.close()


def test_reports_above_the_limit_are_summarized(
    control_plane: ControlPlane, served: Kube, tmp_path: Path
) -> None:
    bench = ApiServerSink(control_plane, served, tmp_path, reports_per_minute=5)
    bench.update(*(opened(f"cpu-{n}") for n in range(60)))
    bench.idle()
    causes = [item["status"].get("cause", "") for item in bench.reports]
    assert causes.count("TooManyFindings") == 1
    assert len(causes) <= 6
    assert bench.sink.counts()["report summed"] >= 54
    bench.update(*(resolved(f"cpu-{n}") for n in range(60)))

    def over() -> bool:
        """The summary ends at the turn after the last of the summed: nothing waits in between."""
        return {item["status"]["state"] for item in bench.reports} == {"Resolved"}

    wait_for(over, 20, "all reports and their summary are resolved")
    bench.sink.close()


def test_the_condition_of_a_node_keeps_other_conditions(
    control_plane: ControlPlane, served: Kube, tmp_path: Path
) -> None:
    bench = ApiServerSink(control_plane, served, tmp_path, node_conditions=True)
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": bench.node}}
    served.create(node)
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "well"}
    served.patch(node, {"status": {"conditions": [ready]}}, "status")

    def conditions() -> dict[str, str]:
        found = served.get("v1", "Node", bench.node)
        assert found is not None
        return {
            condition["type"]: condition["status"] for condition in found["status"]["conditions"]
        }

    bench.update(opened(severity=Severity.HIGH))
    wait_for(lambda: conditions() == {"Ready": "True", "RevealAnomaly": "True"}, 10, "it is there")
    bench.update(resolved(severity=Severity.HIGH))
    wait_for(lambda: conditions() == {"Ready": "True"}, 10, "it is gone")
    bench.sink.close()


def test_two_analyzers_keep_the_condition_through_lists_and_a_takeover(
    control_plane: ControlPlane, served: Kube, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sink, "LIST_SECONDS", 0.2)
    owner = ApiServerSink(control_plane, served, tmp_path / "a", node_conditions=True)
    served.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": owner.node}})
    first, mine = owner.sink, frozenset({shard(owner.node)})
    second = KubeSink(
        AnalyzerSettings(**owner.settings), connect(control_plane.kubeconfig), "pod-1", tmp_path
    )
    since: list[str] = []

    def observe(of_first: frozenset[int]) -> None:
        """Pass snapshots to both; remember what the condition of the node was."""
        for each, shards in ((first, of_first), (second, ALL - of_first)):
            now = time.monotonic()
            heard = {owner.node: NodeSnapshot(now, 0.0)} if mine <= shards else {}
            each.observe(Snapshot(now, connected=True, leads=each is second, shards=shards,
                                  nodes=heard))  # fmt: skip
        since.append(_anomaly(served, owner.node))

    observe(mine)
    owner.update(opened(severity=Severity.HIGH))
    wait_for(lambda: _anomaly(served, owner.node), 10, "it is there")
    written = _anomaly(served, owner.node)
    since.clear()
    for shards in (mine, frozenset[int](), mine):  # lists, a takeover, and back
        for _ in range(8):
            observe(shards)
            time.sleep(0.1)
    assert set(since) == {written}, "it was never removed nor written again"
    owner.update(resolved(severity=Severity.HIGH))
    wait_for(lambda: not _anomaly(served, owner.node), 10, "it is gone")
    for each in (first, second):
        each.close()


def _anomaly(kube: Kube, node: str) -> str:
    """When the condition of a node was written; "" without it."""
    found = kube.get("v1", "Node", node)
    assert found is not None
    conditions = found.get("status", {}).get("conditions") or ()
    times = [each["lastTransitionTime"] for each in conditions if each["type"] == "RevealAnomaly"]
    return str(times[0]) if times else ""


def test_observing_resolves_what_is_open_and_removes_the_condition(
    control_plane: ControlPlane, served: Kube, tmp_path: Path
) -> None:
    bench = ApiServerSink(control_plane, served, tmp_path, node_conditions=True)
    served.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": bench.node}})
    bench.update(opened(severity=Severity.HIGH))
    wait_for(lambda: _anomaly(served, bench.node), 10, "it is there")
    bench.sink.close()
    bench.settings["publish"] = "observe"
    observing = bench.start()
    observing.observe(Snapshot(time.monotonic(), connected=True, leads=True, shards=ALL))
    wait_for(lambda: not _anomaly(served, bench.node), 10, "it is gone")
    (stored,) = bench.reports
    assert (stored["status"]["state"], stored["status"]["resolution"]) == ("Resolved", "Stopped")
    assert bench.reasons() == ["AnomalyDetected", "ReportingStopped"]
    observing.close()


def test_telemetry_and_operator_status_of_a_profile_coexist(
    bench: ApiServerSink,
) -> None:
    where = {
        "apiVersion": names.API_VERSION, "kind": names.PROFILE_KIND,
        "metadata": {"name": bench.profile},
    }  # fmt: skip
    bench.kube.patch(where, {"status": {"readyNodes": 3}}, "status")
    api = connect(bench.plane.kubeconfig)
    missing = Degradation("PerfUnavailable", 2, "n1: perf: not permitted")
    api.apply_profile_status(
        bench.profile, {"telemetry": telemetry(TelemetryState(3, 1, (missing,)))}
    )
    api.apply_profile_status(bench.profile, {"telemetry": telemetry(None)})
    status = api.profile(bench.profile)["status"]
    assert status["readyNodes"] == 3
    assert status["telemetry"] == {
        "streamReachable": False, "nodesReporting": 0, "nodesLearning": 0, "silentNodes": [],
        "degraded": [],
    }  # fmt: skip
    api.close()


def test_the_rights_of_an_analyzer_suffice(
    control_plane: ControlPlane, served: Kube, tmp_path: Path
) -> None:
    """And without a right to Events reports are written all the same."""
    account, group = unique("analyzer"), names.GROUP
    rules = [
        {"apiGroups": [group], "resources": ["anomalyreports"],
         "verbs": ["create", "list", "patch"]},
        {"apiGroups": [group], "resources": ["anomalyreports/status"], "verbs": ["patch"]},
        {"apiGroups": [group], "resources": ["revealprofiles"], "verbs": ["get"]},
    ]  # fmt: skip
    _grant(served, account, rules)
    bench = ApiServerSink(control_plane, served, tmp_path)
    bench.sink.close()
    connection = connect(control_plane.account_kubeconfig("default", account))
    bench.sink = KubeSink(AnalyzerSettings(**bench.settings), connection, "pod-0", tmp_path)
    bench.observe()
    bench.update(opened(), resolved(), opened("gpu-1"))
    bench.idle()
    states = {item["spec"]["findingID"]: item["status"]["state"] for item in bench.reports}
    assert states == {"cpu-1": "Resolved", "gpu-1": "Open"}
    assert bench.sink.counts()["event dropped"] == 3
    bench.sink.close()


def _grant(kube: Kube, account: str, rules: list[Object]) -> None:
    kind = "rbac.authorization.k8s.io/v1"
    metadata = {"name": account}
    kube.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata},
                namespace="default")  # fmt: skip
    kube.create({"apiVersion": kind, "kind": "ClusterRole", "metadata": metadata, "rules": rules})
    kube.create({
        "apiVersion": kind, "kind": "ClusterRoleBinding", "metadata": metadata,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                    "name": account},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": "default"}],
    })  # fmt: skip


def test_reports_left_open_by_an_earlier_analyzer_are_resolved(
    bench: ApiServerSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reveal_analyzer.sinks.kube.observation.ORPHANED_S", 0.5)
    bench.update(opened())
    bench.idle()
    bench.sink.close()
    bench.start()
    follow = partial(bench.observe)
    wait_for(
        lambda: (follow(), bench.reports[0]["status"]["state"] == "Resolved")[1], 20, "it is over"
    )
    assert "no analyzer observes it" in bench.reports[0]["status"]["notes"][-1]
    assert rfc3339(finding().first_observed_ns) == bench.reports[0]["spec"]["firstSeenTime"]
