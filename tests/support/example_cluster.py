"""A small cluster where things go wrong, as operator and analyzer write it, for people to see."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from cluster.plane import ControlPlane
from reveal_analyzer.sinks.kube import event_policy, profile_telemetry
from reveal_analyzer.sinks.kube.entry import PendingEvent
from reveal_analyzer.telemetry.degraded import Degradation
from reveal_analyzer.telemetry.states import TelemetryState
from reveal_contract.finding import Finding, Severity, State
from reveal_contract.kube import events, names
from reveal_contract.kube.anomaly_report import report
from reveal_operator.conditions import ConditionInputs, ProfileOverlap
from reveal_operator.observed import Workload
from reveal_operator.pod_failures import Failure
from reveal_operator.profile_status import status_of
from reveal_operator.report_records import ReportCounts
from support import finding_factory, goldens
from support.api_objects import apply_status, profile, report_of
from support.api_server import Kube, unique
from support.kubectl import kubectl, settled

Object = dict[str, Any]
MINE = "example.com/test"  # others on this server have objects too
NOW = "2026-01-01T00:00:00Z"
WATCHED = "gpu-nodes"
_LONGEST_S = 20  # of one kubectl on a busy machine
_LACK = Degradation("PerfUnavailable", 2, "perf: kernel.perf_event_paranoid is 3")


def _pods(desired: int, available: int) -> Workload:
    return Workload(True, desired, desired, desired, available, available)


HEALTHY = ConditionInputs(
    1, collectors=_pods(9, 9), analyzer=_pods(1, 1),
    telemetry=profile_telemetry.telemetry(TelemetryState(9, 1, (_LACK,), ("gpu-10",))),
    overlaps=(ProfileOverlap("shadow", 2, "gpu-07"),),
)  # fmt: skip
WITHOUT_IMAGE = ConditionInputs(
    4,
    collectors=_pods(4, 1),
    collectors_failure=Failure(
        "ImagePullFailed", "3 without an image (inf-02: ErrImagePull, registry: not found)"
    ),
    analyzer=_pods(2, 2),
    telemetry=profile_telemetry.telemetry(TelemetryState(1, 0)),
)
REJECTED = ConditionInputs(
    1,
    rejected=Failure(
        "RedisMissing", "spec.redis: names no Redis, and the operator has none for profiles"
    ),
)
STARTING = ConditionInputs(1, collectors=_pods(2, 0), analyzer=_pods(1, 0))
# name -> spec, what the operator knows, and how many findings are open
PROFILES: dict[str, tuple[Object, ConditionInputs, ReportCounts]] = {
    WATCHED: ({}, HEALTHY, ReportCounts(reports=4, open=3)),
    "inference": ({"paused": True}, WITHOUT_IMAGE, ReportCounts(reports=12, open=0)),
    "new": ({}, STARTING, ReportCounts(reports=0, open=0)),
    "shadow": ({"mode": "Observe"}, REJECTED, ReportCounts(reports=0, open=0)),
}


def profile_status(facts: ConditionInputs, tally: ReportCounts) -> Object:
    """What operator and analyzer say of a profile."""
    result = status_of(facts, tally, {}, NOW)
    return result | ({"telemetry": facts.telemetry} if facts.telemetry else {})


class ExampleCluster:
    """The cluster on an API server, its objects marked, and kubectl looking at them."""

    def __init__(self, api: Kube, plane: ControlPlane) -> None:
        self.mark = unique("shown")
        self._api, self._plane = api, plane
        self._created: list[Object] = []
        self._fill()

    def _fill(self) -> None:
        self._filled = time.monotonic()
        now_ns = time.time_ns()
        for name, (spec, facts, tally) in PROFILES.items():
            self._make(profile(spec, name), profile_status(facts, tally))
        for finding in finding_factory.example_findings(now_ns):
            body, applied = report_of(finding, WATCHED)
            self._make(body, applied["status"])
        # Events on pods stand in their namespace; it stays, as no controller empties it here
        self._api.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "batch"}})
        for event in _events(now_ns):
            self._make(event)

    def clear(self) -> None:
        while self._created:
            self._api.delete(self._created.pop())

    def look(self, *arguments: str, only: str = "") -> str:
        """What kubectl says; of objects with labels all, but for other tests' ones."""
        label = ("-l", ",".join(filter(None, (f"{MINE}={self.mark}", only))))
        return self.read(*arguments, *label)

    def read(self, *arguments: str) -> str:
        """What kubectl says of what is named."""
        if time.monotonic() - self._filled > finding_factory.STILL_S - _LONGEST_S:
            self.clear()
            self._fill()
        return settled(kubectl(self._plane, *arguments)).replace(self.mark, "mine")

    def _make(self, document: Mapping[str, Any], status: Object | None = None) -> None:
        about = document["metadata"]
        labels = {**about.get("labels", {}), MINE: self.mark}
        created = self._api.create({**document, "metadata": {**about, "labels": labels}})
        self._created.append(created)
        if status is not None:
            apply_status(self._api, {**created, "status": status})


def compare(golden: str, command: str, output: str) -> None:
    goldens.compare(f"kubectl/{golden}.txt", f"$ kubectl {command}\n{output}")


def _events(now_ns: int) -> Iterator[Object]:
    """Events of the node gpu-07, three times and escalated, and of a pod on it."""
    finding = finding_factory.cpu_contention(now_ns)
    medium = replace(finding, severity=Severity.MEDIUM)
    found, on_pod = event_policy.opened(medium)
    [worse] = event_policy.changed(finding, Severity.MEDIUM, was_open=True)
    over = replace(finding, state=State.RESOLVED, resolved_ns=finding.last_observed_ns)
    [resolved] = event_policy.changed(over, Severity.HIGH, was_open=True)
    minute = finding_factory.MINUTE_NS
    start = now_ns - 31 * minute - finding_factory.MARGIN_NS
    yield events.body(_event(finding, found), start, 3, start + 15 * minute)
    yield events.body(_event(finding, on_pod), start)
    yield events.body(_event(finding, worse), start + 16 * minute)
    yield events.body(_event(finding, resolved), start + 20 * minute)


def _event(finding: Finding, event: PendingEvent) -> events.Event:
    about = events.pod(*event.pod) if event.pod else events.node(finding.node_name)
    related = events.report(report(finding, WATCHED, 1).name)
    instance = f"{names.child_name(names.ANALYZER, WATCHED)}-7d9c5-x2x4z"
    return events.Event(event.reason, about, event.note, names.ANALYZER_MANAGER, instance, related)
