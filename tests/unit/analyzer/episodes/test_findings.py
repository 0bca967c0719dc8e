"""Findings of a node over time: what opens another one, and whose pods are reported when."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count

import numpy as np

from reveal_analyzer.derive.columns import ColumnPlan, column_plan
from reveal_analyzer.derive.deriver import Second
from reveal_analyzer.episodes.case import Methods
from reveal_analyzer.episodes.episode import SecondVerdict
from reveal_analyzer.episodes.findings import FindingTracker
from reveal_analyzer.episodes.trace import ObservedSecond
from reveal_analyzer.hypotheses.loader import load
from reveal_analyzer.hypotheses.signature_matcher import SignatureMatch
from reveal_analyzer.subjects.history import SubjectHistory
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.finding import FindingChange, FindingUpdate, Method
from reveal_contract.metric import Kind, Subsystem
from reveal_contract.subjects import Identity, SubjectKind
from reveal_contract.time_units import NS_PER_SECOND
from support.subject_timeline import CPU, USAGE, SubjectTimeline, cpus, ns, pod

RULES = {rule.name: rule for rule in load()}


STALLED = (
    "storage.disk.await", "storage.disk.busy_time", "storage.disk.in_flight",
    "storage.pressure.some",
)  # fmt: skip
DISK = column_plan(
    ChannelTable(
        tuple(
            Channel(name, "", Kind.COUNTER)
            for name in (*STALLED, "cpu.procs_running", "cpu.steal", "cpu.run_delay")
        ),
        (),
    )
)


def later_openings(
    moved: str, seconds: int = 30, methods: Callable[[], Methods] = tuple
) -> list[FindingUpdate]:
    """A slow disk; from second 12 on ``moved`` puts the CPU above its threshold."""
    slow = RULES["SlowDevice"]
    assert slow.certain is not None
    columns = {c.metric.name: c for c in DISK.columns}
    match = SignatureMatch(slow, tuple(columns[c.metric] for c in slow.certain.conditions))
    tracker = FindingTracker("n1", list(RULES.values()), SubjectHistory(), methods)
    updates = []
    for second in range(seconds):
        harm = dict.fromkeys(STALLED, 20.0) | ({moved: 15.0} if second >= 12 else {})
        weight = np.array([harm.get(c.metric.name, 0.0) for c in DISK.columns])
        excess = np.stack([weight, np.zeros(weight.size)])
        observed = ObservedSecond(
            second * NS_PER_SECOND, DISK, 1e8 * (weight > 0), excess, weight, np.zeros(weight.size)
        )
        over = {Subsystem.STORAGE: 2.0, Subsystem.CPU: 1.5 if second >= 12 else 0.0}
        updates += tracker.update(
            SecondVerdict(second * NS_PER_SECOND, over, [match], [match]), observed
        )
    return updates


def test_symptoms_that_show_later_are_no_second_finding() -> None:
    updates = later_openings("cpu.procs_running")
    assert [u.change for u in updates if u.change is not FindingChange.SUSPECTED] == [
        FindingChange.OPENED, FindingChange.CHANGED
    ]  # fmt: skip
    assert updates[0].finding.id == updates[-1].finding.id
    last = updates[-1].finding
    assert last.hypothesis is not None
    assert last.hypothesis.name == "SlowDevice"
    assert last.subsystems == (Subsystem.STORAGE, Subsystem.CPU)


def test_detectors_of_the_paper_judge_the_first_minute_of_a_finding() -> None:
    calls = count(1)
    later_openings(
        "cpu.procs_running", 400, lambda: (Method("Z", agrees=True, score_percent=next(calls)),)
    )
    assert 60 <= next(calls) - 1 <= 70


def test_what_is_no_symptom_is_a_finding_of_its_own() -> None:
    updates = later_openings("cpu.steal")
    opened = [u.finding.subsystem for u in updates if u.change is FindingChange.OPENED]
    assert opened == [Subsystem.STORAGE, Subsystem.CPU]


def test_a_pod_that_becomes_known_after_the_opening_is_reported_within_seconds() -> None:
    names: list[Identity] = []
    first, *later = throttled_updates(names, known_from=4)
    assert (first.change, first.finding.pods) == (FindingChange.OPENED, ())
    assert [subject.name for subject in first.finding.subjects] == [CGROUP]
    (known,) = later
    assert known.change is FindingChange.CHANGED
    assert [(pod.namespace, pod.name) for pod in known.finding.pods] == [("ml", "hog")]
    assert known.finding.id == first.finding.id
    # a pod that becomes known after four seconds is reported at the next check, after five
    assert known.finding.last_observed_ns - first.finding.last_observed_ns == 5 * NS_PER_SECOND


def test_a_pod_known_from_the_opening_on_is_reported_once() -> None:
    (only,) = throttled_updates([HOG], known_from=0)
    assert [pod.name for pod in only.finding.pods] == ["hog"]


def test_other_culprits_than_pods_do_not_change_after_the_opening() -> None:
    parent = dict.fromkeys(range(4, 15), 900000000.0)
    (only,) = throttled_updates([], known_from=99, beside=parent)
    assert [subject.name for subject in only.finding.subjects] == [CGROUP]


CGROUP = "/kubepods/pod1"
BESIDE = "/parent.service"
HOG = Identity(CGROUP, SubjectKind.POD, "u1", "ml", "hog")


def throttled_updates(
    names: list[Identity], known_from: int, beside: Mapping[int, float] | None = None
) -> list[FindingUpdate]:
    """A quota throttles a cgroup for 15 s; its pod is known from a second on.

    ``beside``: by second, how much another cgroup is throttled.
    """
    metric = "cpu.subject.throttled_time"
    both = tuple(Channel(metric, name, Kind.COUNTER) for name in (CGROUP, BESIDE))
    plan = column_plan(ChannelTable(both, ()))
    rule = RULES["CPUQuotaThrottling"]
    history = SubjectHistory(lambda: names)
    tracker = FindingTracker("n1", list(RULES.values()), history, lambda: ())
    match = SignatureMatch(rule, tuple(c for c in plan.columns if c.metric.name == metric))
    values = np.array([5e8 * (c in match.columns) for c in plan.columns])
    others = beside or {}
    still = np.zeros((2, values.size))
    updates = []
    for second in range(15):
        if second >= known_from:
            names[:] = [HOG]
        history.push(
            Second(plan, second * NS_PER_SECOND, values, np.array([5e8, others.get(second, 0.0)]))
        )
        observed = ObservedSecond(second * NS_PER_SECOND, plan, values, still, still[0], still[0])
        updates += tracker.update(
            SecondVerdict(second * NS_PER_SECOND, {}, [match], [match]), observed
        )
    return updates


DISK_METRICS = {
    "storage.disk.await": Kind.GAUGE, "storage.disk.busy_time": Kind.COUNTER,
    "storage.disk.in_flight": Kind.GAUGE, "storage.disk.reads": Kind.COUNTER,
}  # fmt: skip


def disks(*names: str) -> ColumnPlan:
    return column_plan(
        ChannelTable(tuple(Channel(m, d, k) for d in names for m, k in DISK_METRICS.items()), ())
    )


def test_a_disk_that_disappears_during_its_fault_leaves_claim_and_evidence() -> None:
    both, rest = disks("nvme0n1", "nvme1n1"), disks("nvme0n1")
    slow = RULES["SlowDevice"]
    assert slow.certain is not None
    columns = {column.label: column for column in both.columns}
    conditions = (columns[f"{c.metric}{{nvme1n1}}__mean"] for c in slow.certain.conditions)
    match = SignatureMatch(slow, tuple(conditions))
    tracker = FindingTracker("n1", list(RULES.values()), SubjectHistory(), lambda: ())
    updates: list[FindingUpdate] = []
    for second in range(100):
        plan, matches = (both, [match]) if second < 12 else (rest, [])
        bad = np.array([column.instance == "nvme1n1" for column in plan.columns])
        observed = ObservedSecond(
            second * NS_PER_SECOND, plan, np.where(bad, 4e8, 1e5),
            np.stack([20.0 * bad, 0.0 * bad]), 20.0 * bad, np.zeros(bad.size),
        )  # fmt: skip
        over = {Subsystem.STORAGE: 5.0 if second < 14 else 0.0}
        updates += tracker.update(
            SecondVerdict(second * NS_PER_SECOND, over, matches, matches), observed
        )
    closed = updates[-1].finding
    assert updates[-1].change is FindingChange.RESOLVED
    assert closed.claim == "Requests to a disk took 400 ms each"
    assert closed.evidence
    assert {line.instance for line in closed.evidence} == {"nvme1n1"}


class Storm:
    """A node with a job of 2 CPUs; while ``hog`` uses 4 more there is a storm of task switches.

    Another pod may be its ``cause`` instead.
    """

    def __init__(self) -> None:
        self.node = SubjectTimeline(pod("trainer"), pod("hog"), pod("other"))
        channel = Channel("cpu.context_switches", "", Kind.COUNTER)
        self.plan = column_plan(ChannelTable((channel,), ()))
        rule = RULES["ContextSwitchStorm"]
        self.switches = [c.metric.name == channel.metric for c in self.plan.columns]
        column = self.plan.columns[self.switches.index(True)]
        self.match = SignatureMatch(rule, (column,))
        self.tracker = FindingTracker("n1", list(RULES.values()), self.node.history, lambda: ())
        self.play(100, storm=False)

    def play(
        self, seconds: int, *, storm: bool, read: bool = True, cause: str = "hog"
    ) -> list[FindingUpdate]:
        """Return the updates of some seconds; without ``read`` the hog has no counters."""
        hog = 4.0 * storm
        used = {"trainer": 2.0, "hog": 0.0, "other": 0.0, cause: hog if read else float("nan")}
        matches = [self.match] * storm
        width = len(self.plan.columns)
        values, still = 9e4 * storm * np.array(self.switches), np.zeros((2, width))
        updates = []
        for _ in range(seconds):
            counters = cpus(**used)
            if "[" in cause:  # a group of processes instead of a pod
                counters[USAGE, cause] = counters.pop((USAGE, f"ml/{cause}"))
            self.node.play(1, counters | {("cpu.run_time", ""): (2.0 + hog) * CPU})
            start_ns = ns(self.node.now - 1)
            observed = ObservedSecond(start_ns, self.plan, values, still, still[0], still[0])
            updates += self.tracker.update(SecondVerdict(start_ns, {}, matches, matches), observed)
        return updates


def test_a_finding_opens_before_its_culprit_is_read_and_names_it_then() -> None:
    storm = Storm()
    (opened,) = storm.play(2, storm=True, read=False)
    assert opened.change is FindingChange.OPENED
    assert (opened.finding.pods, opened.finding.subjects) == ((), ())
    assert opened.finding.claim.endswith(" (culprit not known yet)")
    (named,) = storm.play(10, storm=True)
    assert named.change is FindingChange.CHANGED
    assert named.finding.claim.endswith(" (ml/hog)")
    assert named.finding.last_observed_ns - opened.finding.last_observed_ns == 2 * NS_PER_SECOND


def test_only_the_first_claim_states_that_no_culprit_is_known() -> None:
    opened, later = Storm().play(12, storm=True, read=False)
    assert later.finding.claim == opened.finding.claim.removesuffix(" (culprit not known yet)")
    assert later.finding.claim != opened.finding.claim


def test_a_fault_that_lasted_is_no_reference_of_the_next_finding() -> None:
    storm = Storm()
    storm.play(100, storm=True)
    storm.play(15, storm=False)
    again = storm.play(8, storm=True)
    assert again[-1].finding.claim.endswith(" (ml/hog)")


def test_another_culprit_after_a_pause_is_another_finding() -> None:
    storm = Storm()
    storm.play(20, storm=True)
    end_ns = ns(storm.node.now)
    storm.play(6, storm=False)
    resolved, opened = storm.play(4, storm=True, cause="other")
    assert resolved.change is FindingChange.RESOLVED
    assert (resolved.finding.claim[-8:], resolved.finding.last_observed_ns) == ("(ml/hog)", end_ns)
    assert opened.change is FindingChange.OPENED
    assert opened.finding.claim.endswith(" (ml/other)")
    assert opened.finding.first_observed_ns == end_ns + 6 * NS_PER_SECOND


def test_the_same_culprit_after_a_pause_continues_its_finding() -> None:
    storm = Storm()
    (opened,) = storm.play(1, storm=True)
    for _ in range(5):
        storm.play(12, storm=True)
        storm.play(6, storm=False)
    updates = storm.play(12, storm=True)
    assert {update.change for update in updates} <= {FindingChange.CHANGED}
    assert storm.tracker.any_open
    assert {update.finding.id for update in storm.tracker.finish()} == {opened.finding.id}


def test_a_program_that_starts_again_after_a_pause_is_the_same_culprit() -> None:
    storm = Storm()
    (opened,) = storm.play(1, storm=True, cause="pgrp:stress[11]")
    storm.play(12, storm=True, cause="pgrp:stress[11]")
    storm.play(6, storm=False, cause="pgrp:stress[11]")
    storm.play(10, storm=True, cause="pgrp:stress[12]")
    assert {update.finding.id for update in storm.tracker.finish()} == {opened.finding.id}


def test_another_culprit_without_a_pause_continues_the_finding() -> None:
    storm = Storm()
    (opened,) = storm.play(1, storm=True)
    storm.play(20, storm=True)
    storm.play(2, storm=False)
    storm.play(10, storm=True, cause="other")
    assert {update.finding.id for update in storm.tracker.finish()} == {opened.finding.id}
