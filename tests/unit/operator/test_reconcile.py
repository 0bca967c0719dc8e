"""Visits of profiles by the whole reconciler, on an API in memory: milliseconds each."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from reveal_contract.kube.errors import FORBIDDEN, INVALID, ApiError
from reveal_contract.kube.events import EventReason
from reveal_contract.kube.names import COLLECTOR, LABEL_COMPONENT, LABEL_PROFILE, PROFILE_KIND
from reveal_operator.conditions import find
from reveal_operator.inspection import PATIENCE_S, WorkloadInspector
from reveal_operator.metrics import OperatorMetrics
from reveal_operator.observed import ObservedProfile
from reveal_operator.owned_objects import PAUSES_S, OwnedObjects
from reveal_operator.plan import PlanCache
from reveal_operator.profile_events import EventSender
from reveal_operator.profile_status import StatusWriter
from reveal_operator.reconcile import OTHER_PROFILES_S, Reconciler
from reveal_operator.report_records import ReportIndex, ReportRecord
from reveal_operator.rollout import PATIENCE_S as ROLLOUT_S
from reveal_operator.rollout import RolloutOrder
from reveal_operator.shared_nodes import SharedNodes
from reveal_operator.silence import PATIENCE_S as SILENCE_S
from reveal_operator.silence import SilenceTracker
from reveal_operator.silent_nodes import SilentNodeFinder
from support.fake_operator_api import FakeOperatorApi, conflict
from support.profile_factory import DEFAULTS

DAEMON_SET, DEPLOYMENT = "DaemonSet", "Deployment"
READY_COLLECTORS = {
    "desiredNumberScheduled": 3, "currentNumberScheduled": 3, "updatedNumberScheduled": 3,
    "numberReady": 3, "numberAvailable": 3,
}  # fmt: skip
READY_ANALYZER = {
    "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1,
}  # fmt: skip
TELEMETRY = {"streamReachable": True, "nodesReporting": 3, "nodesLearning": 0, "degraded": []}


class Events:
    """Keeps what is published."""

    def __init__(self) -> None:
        self.published: list[tuple[str, str]] = []

    def publish(self, reason: EventReason, about: ObservedProfile, note: str) -> None:
        self.published.append((reason.name, note))

    def take(self) -> list[str]:
        """Return the reasons since the last call."""
        reasons = [reason for reason, _ in self.published]
        self.published.clear()
        return reasons


class Harness:
    """A reconciler with a clock, on an API in memory."""

    def __init__(self) -> None:
        self.api, self.events, self.now = FakeOperatorApi(), Events(), 1000.0
        self.queued: list[tuple[str, float]] = []
        self.reports = ReportIndex(lambda profile: None)
        self.reports.replace([])
        metrics, namespace = OperatorMetrics(), DEFAULTS.namespace
        self.registry = metrics.registry
        self.reconcile = Reconciler(
            view=self.api,
            plans=PlanCache(DEFAULTS),
            objects=OwnedObjects(self.api, namespace, metrics, self.clock),
            rollout=RolloutOrder(self.clock),
            statuses=StatusWriter(self.api, metrics),
            inspector=WorkloadInspector(self.api, namespace, self.clock),
            shared_nodes=SharedNodes(self.api, self.clock),
            silence=SilenceTracker(self.clock),
            silent_nodes=SilentNodeFinder(self.api, namespace, self.clock),
            reports=self.reports,
            events=cast(EventSender, self.events),
            metrics=metrics,
            revisit=lambda name, after: self.queued.append((name, after)),
            now=self.clock,
        )

    def clock(self) -> float:
        return self.now

    def visit(self, name: str = "p") -> float | None:
        self.api.requests.clear()
        return asyncio.run(self.reconcile(name))

    def name(self, kind: str) -> str:
        return next(name for of_kind, name in self.api.objects if of_kind == kind)

    def condition(self, kind: str, name: str = "p") -> dict[str, Any]:
        return find(self.api.objects[PROFILE_KIND, name]["status"]["conditions"], kind)

    def nodes(self) -> tuple[float | None, ...]:
        """Return the desired and the reporting nodes of the profile, as a scrape shows them."""
        return tuple(
            self.registry.get_sample_value(f"reveal_operator_nodes_{what}", {"profile": "p"})
            for what in ("desired", "reporting")
        )

    def create_collector(self, node: str) -> None:
        """Create the pod of a collector that is ready."""
        labels = {LABEL_PROFILE: "p", LABEL_COMPONENT: COLLECTOR}
        self.api.create({
            "kind": "Pod", "metadata": {"name": f"collector-{node}", "labels": labels},
            "spec": {"nodeName": node},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        })  # fmt: skip

    def run_pods(self) -> None:
        """Let all pods become ready, and the analyzer report."""
        self.api.set_status(DAEMON_SET, self.name(DAEMON_SET), **READY_COLLECTORS)
        self.api.set_status(DEPLOYMENT, self.name(DEPLOYMENT), **READY_ANALYZER)
        self.api.set_status(PROFILE_KIND, "p", telemetry=TELEMETRY)


@pytest.fixture
def harness() -> Harness:
    """A reconciler and one profile that was never visited."""
    result = Harness()
    result.api.create_profile("p")
    return result


@pytest.fixture
def running(harness: Harness) -> Harness:
    """A profile whose pods all work."""
    harness.visit()
    harness.run_pods()
    harness.visit()
    harness.events.take()
    return harness


def test_the_first_visit_creates_the_objects_and_a_status(harness: Harness) -> None:
    harness.visit()
    assert harness.api.writes == [
        ("apply", "ConfigMap"), ("apply", DAEMON_SET), ("apply", DEPLOYMENT),
        ("apply status", PROFILE_KIND),
    ]  # fmt: skip
    assert harness.condition("SpecAccepted")["status"] == "True"
    assert harness.condition("CollectorsAvailable")["reason"] == "Pending"
    assert harness.events.take() == []


def test_ready_pods_make_a_ready_profile(running: Harness) -> None:
    ready = running.condition("Ready")
    assert (ready["status"], ready["reason"]) == ("True", "Watching")
    status = running.api.objects[PROFILE_KIND, "p"]["status"]
    assert (status["desiredNodes"], status["readyNodes"]) == (3, 3)
    assert status["telemetry"] == TELEMETRY  # the analyzer's field stays


def test_a_visit_without_changes_sends_no_request(running: Harness) -> None:
    running.visit()
    assert running.visit() is None
    assert running.api.requests == []


def test_a_restarted_operator_reads_and_writes_nothing(running: Harness) -> None:
    restarted = Harness()
    restarted.api.objects = running.api.objects
    restarted.visit()
    assert restarted.api.writes == []
    assert {verb for verb, _, _ in restarted.api.requests} == {"get"}


def test_drift_is_repaired(running: Harness) -> None:
    name = running.name(DEPLOYMENT)
    running.api.change_spec(DEPLOYMENT, name, replicas=5)
    running.visit()
    assert ("apply", DEPLOYMENT) in running.api.writes
    assert ("apply", DAEMON_SET) not in running.api.writes
    assert running.api.objects[DEPLOYMENT, name]["spec"]["replicas"] == 1


def test_a_deleted_object_is_created_again(running: Harness) -> None:
    del running.api.objects[DAEMON_SET, running.name(DAEMON_SET)]
    running.visit()
    assert ("apply", DAEMON_SET) in running.api.writes


def test_an_object_that_the_plan_no_longer_has_is_deleted(running: Harness) -> None:
    running.api.change_spec(PROFILE_KIND, "p", analyzer={"replicas": 2})
    running.visit()
    assert ("apply", "PodDisruptionBudget") in running.api.writes
    running.api.change_spec(PROFILE_KIND, "p", analyzer={"replicas": 1})
    running.visit()
    assert ("delete", "PodDisruptionBudget") in running.api.writes
    assert all(kind != "PodDisruptionBudget" for kind, _ in running.api.objects)


def test_a_conflict_is_raised_after_the_status_is_written(running: Harness) -> None:
    """The work queue repeats the visit; the other objects and the status are written."""
    running.api.change_spec(PROFILE_KIND, "p", collector={"maxSubjects": 9})
    running.api.fail = lambda verb, kind: (
        conflict(verb, kind) if (verb, kind) == ("apply", DAEMON_SET) else None
    )
    with pytest.raises(ApiError, match="modified"):
        running.visit()
    assert {("apply", "ConfigMap"), ("apply status", PROFILE_KIND)} <= {*running.api.writes}
    running.api.fail = lambda verb, kind: None
    running.visit()
    assert ("apply", DAEMON_SET) in running.api.writes


@pytest.mark.parametrize(("status", "reason"), [(INVALID, "Refused"), (FORBIDDEN, "Forbidden")])
def test_a_refused_object_is_reported_and_not_repeated_immediately(
    harness: Harness, status: int, reason: str
) -> None:
    harness.api.fail = lambda verb, kind: (
        ApiError("no", status) if (verb, kind) == ("apply", DAEMON_SET) else None
    )
    again = harness.visit()
    ready = harness.condition("Ready")
    assert (ready["status"], ready["reason"]) == ("False", reason)
    assert again is not None and again <= PAUSES_S[status]
    harness.visit()
    assert ("apply", DAEMON_SET) not in harness.api.writes
    harness.now += PAUSES_S[status]
    harness.api.fail = lambda verb, kind: None
    harness.visit()
    assert ("apply", DAEMON_SET) in harness.api.writes


def test_an_object_of_somebody_else_is_left_alone(harness: Harness) -> None:
    harness.visit()
    name = harness.name(DAEMON_SET)
    other = Harness()
    other.api.create_profile("p")
    other.api.objects[DAEMON_SET, name] = {
        "kind": DAEMON_SET,
        "metadata": {"name": name, "uid": "other", "generation": 1, "resourceVersion": "1"},
        "spec": {},
    }
    other.visit()
    assert ("apply", DAEMON_SET) not in other.api.writes
    assert other.condition("Ready")["reason"] == "NameTaken"


def test_a_rejected_spec_has_an_event_for_each_generation(running: Harness) -> None:
    running.api.change_spec(PROFILE_KIND, "p", collector={"sources": {"include": ["nothing"]}})
    running.visit()
    assert running.events.take() == ["ProfileRejected"]
    assert running.api.writes == [("apply status", PROFILE_KIND)]  # the objects stay as they are
    assert running.condition("SpecAccepted")["reason"] == "InvalidSpec"
    running.visit()
    assert running.events.take() == []
    running.api.change_spec(PROFILE_KIND, "p", collector={"sources": {"include": ["nor this"]}})
    running.visit()
    assert running.events.take() == ["ProfileRejected"]


def test_a_paused_profile_changes_no_object(running: Harness) -> None:
    running.api.change_spec(PROFILE_KIND, "p", paused=True, collector={"maxSubjects": 9})
    running.visit()
    assert running.api.writes == [("apply status", PROFILE_KIND)]
    assert running.condition("Ready")["reason"] == "Paused"


def test_missing_collectors_have_an_event_and_so_has_their_recovery(running: Harness) -> None:
    name = running.name(DAEMON_SET)
    running.api.set_status(DAEMON_SET, name, numberReady=1, numberAvailable=1)
    assert running.visit() == PATIENCE_S  # a pod may take so long to start
    assert running.events.take() == []
    running.now += PATIENCE_S
    running.visit()
    assert running.events.take() == ["CollectorDegraded"]
    running.visit()
    assert running.events.take() == []
    running.api.set_status(DAEMON_SET, name, numberReady=3, numberAvailable=3)
    running.visit()
    assert running.events.take() == ["CollectorRecovered"]


def test_transitions_keep_their_time_while_the_status_stays(running: Harness) -> None:
    before = running.condition("Ready")["lastTransitionTime"]
    running.now += 60
    running.api.set_status(DAEMON_SET, running.name(DAEMON_SET), updatedNumberScheduled=2)
    running.visit()
    assert running.condition("CollectorsAvailable")["reason"] == "RollingOut"
    assert running.condition("Ready")["lastTransitionTime"] == before


def change_images(harness: Harness) -> None:
    images = {"collector": {"image": "r/collector:2"}, "analyzer": {"image": "r/analyzer:2"}}
    harness.api.change_spec(PROFILE_KIND, "p", **images)


def test_collectors_get_a_new_image_after_the_analyzers(running: Harness) -> None:
    change_images(running)
    again = running.visit()
    assert ("apply", DEPLOYMENT) in running.api.writes
    assert ("apply", DAEMON_SET) not in running.api.writes
    assert again is not None and again <= ROLLOUT_S
    name = running.name(DEPLOYMENT)
    running.api.set_status(DEPLOYMENT, name, updatedReplicas=0)
    running.visit()
    assert ("apply", DAEMON_SET) not in running.api.writes
    running.api.set_status(DEPLOYMENT, name, **READY_ANALYZER)
    running.visit()
    assert ("apply", DAEMON_SET) in running.api.writes
    assert running.visit() is None


def test_collectors_do_not_wait_for_ever(running: Harness) -> None:
    change_images(running)
    running.visit()
    running.now += ROLLOUT_S
    running.visit()
    assert ("apply", DAEMON_SET) in running.api.writes


def test_collectors_do_not_wait_where_no_analyzer_reads(running: Harness) -> None:
    running.api.set_status(DEPLOYMENT, running.name(DEPLOYMENT), availableReplicas=0)
    change_images(running)
    running.visit()
    assert ("apply", DAEMON_SET) in running.api.writes


def test_reports_are_counted(running: Harness) -> None:
    running.reports.put(ReportRecord("r", "u", "1", "p", is_open=True, resolved=0.0))
    running.visit()
    status = running.api.objects[PROFILE_KIND, "p"]["status"]
    assert (status["reports"], status["openFindings"]) == (1, 1)


def test_profiles_on_the_same_nodes_are_degraded(running: Harness) -> None:
    labels = {"nvidia.com/gpu.present": "true"}
    running.api.objects["Node", "n1"] = {
        "kind": "Node",
        "metadata": {"name": "n1", "labels": labels},
    }
    running.api.create_profile("q")
    running.visit("q")
    assert ("p", OTHER_PROFILES_S) in running.queued
    running.now += 60
    running.visit("p")
    degraded = running.condition("Degraded")
    assert (degraded["status"], degraded["reason"]) == ("True", "NodesOverlap")
    assert "profile q selects 1 of the same nodes" in degraded["message"]


def test_a_deleted_profile_is_forgotten_and_the_others_are_visited(running: Harness) -> None:
    running.api.create_profile("q")
    running.visit("q")
    running.queued.clear()
    del running.api.objects[PROFILE_KIND, "p"]
    assert running.visit("p") is None
    assert running.api.requests == []  # the garbage collector deletes its objects
    assert running.queued == [("q", OTHER_PROFILES_S)]
    assert "p" not in running.reconcile.limits()


def test_a_profile_under_deletion_is_left_to_the_garbage_collector(running: Harness) -> None:
    profile = running.api.objects[PROFILE_KIND, "p"]
    profile["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    del running.api.objects[DAEMON_SET, running.name(DAEMON_SET)]
    running.visit()
    assert running.api.requests == []


def test_silent_nodes_make_a_profile_unready_after_two_minutes(running: Harness) -> None:
    silent = {**TELEMETRY, "nodesReporting": 1, "silentNodes": ["left", "n3", "n2"]}
    running.api.set_status(PROFILE_KIND, "p", telemetry=silent)
    for number in (1, 2, 3):
        running.create_collector(f"n{number}")
    assert running.visit() == SILENCE_S
    assert running.condition("Ready")["status"] == "True"
    running.now += SILENCE_S
    running.visit()
    ready = running.condition("Ready")
    assert (ready["status"], ready["reason"]) == ("False", "NodesSilent")
    assert "1 of 3 nodes report: no samples of n2, n3 arrive" in ready["message"]
    degraded = running.condition("Degraded")["message"]
    assert "2 of 3 nodes with a collector send no samples (n2, n3)" in degraded
    assert running.nodes() == (3, 1)
    running.api.set_status(PROFILE_KIND, "p", telemetry=TELEMETRY)
    running.visit()
    assert running.condition("Ready")["status"] == "True"
    assert running.nodes() == (3, 3)
    del running.api.objects[PROFILE_KIND, "p"]
    running.visit()
    assert running.nodes() == (None, None)


def test_limits_of_reports_follow_the_profile(running: Harness) -> None:
    running.api.change_spec(PROFILE_KIND, "p", reporting={"maxReports": 7})
    assert running.reconcile.limits()["p"].most == 7
    running.api.change_spec(PROFILE_KIND, "p", reporting={"maxReports": -1})
    assert "p" not in running.reconcile.limits()  # a rejected one deletes nothing
