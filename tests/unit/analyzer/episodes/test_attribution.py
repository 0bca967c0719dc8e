"""A finding names the cause apart from its symptoms, the culprit apart from its victims."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from reveal_analyzer.derive.columns import Column, column_plan
from reveal_analyzer.derive.deriver import Second
from reveal_analyzer.episodes import attribution
from reveal_analyzer.episodes.attribution import EpisodeRecord
from reveal_analyzer.episodes.findings import FindingTracker
from reveal_analyzer.episodes.trace import ObservedSecond, Trace
from reveal_analyzer.episodes.tracker import Episode, SecondVerdict
from reveal_analyzer.hypotheses.loader import load
from reveal_analyzer.hypotheses.signatures import SignatureMatch
from reveal_analyzer.subjects.history import SubjectHistory
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.finding import Finding, FindingChange, FindingUpdate, State, finding_id
from reveal_contract.metric import Kind, Subsystem
from reveal_contract.subjects import Identity, SubjectKind
from reveal_contract.time_units import NS_PER_SECOND

RULES = {rule.name: rule for rule in load()}
SWAPPING = (
    "memory.vm.workingset_refault_anon", "memory.vm.pswpin", "memory.vm.pswpout",
    "memory.pressure.some",
)  # fmt: skip
SYMPTOMS = ("cpu.interrupts.external", "memory.tlb_shootdowns")
OTHER = ("cpu.steal",)
TABLE = ChannelTable(
    tuple(Channel(name, "", Kind.COUNTER) for name in (*SYMPTOMS, *OTHER, *SWAPPING)), ()
)
PLAN = column_plan(TABLE)


def column(metric: str) -> Column:
    return next(c for c in PLAN.columns if c.metric.name == metric)


def signature(name: str) -> SignatureMatch:
    certain = RULES[name].certain
    assert certain is not None
    first, *_ = (*certain.conditions, *certain.any)
    return SignatureMatch(RULES[name], (column(first.metric),))


def told(held: list[str], moved: dict[str, float]) -> Finding:
    """The finding of an episode of the CPU: the weighed excess of each metric that moved."""
    width = len(PLAN.columns)
    weight = np.array([moved.get(c.metric.name, 0.0) for c in PLAN.columns])
    excess = np.stack([weight, np.zeros(width)])
    trace = Trace()
    for second in range(5):
        values = 1e4 * (weight > 0)
        seen = ObservedSecond(second * NS_PER_SECOND, PLAN, values, excess, weight, np.zeros(width))
        trace.add(seen)
    matches = {name: signature(name) for name in held}
    episode = Episode(0, 5 * NS_PER_SECOND, Subsystem.CPU, [Subsystem.CPU], matches=matches)
    record = EpisodeRecord("n1", episode, trace, (), State.OPEN, notes=("learned under load",))
    history = SubjectHistory()
    return attribution.finding(
        record, attribution.attribute(record, list(RULES.values()), history), history
    )


def test_the_cause_is_named_with_its_own_evidence_before_its_symptoms() -> None:
    moved = {"cpu.interrupts.external": 40.0, "memory.tlb_shootdowns": 30.0, "cpu.steal": 5.0}
    held = ["InterruptPressure", "Swapping"]
    finding = told(held, moved | dict.fromkeys(SWAPPING, 12.0))
    assert finding.hypothesis is not None
    assert finding.hypothesis.name == "Swapping"
    assert finding.subsystem is Subsystem.MEMORY
    assert finding.subsystems == (Subsystem.CPU, Subsystem.MEMORY)
    assert finding.id == finding_id("n1", Subsystem.CPU, 0)  # stays the one it was opened as
    told_of = [evidence.metric for evidence in finding.evidence]
    assert told_of[:4] == [item.metric for item in RULES["Swapping"].expects]
    assert told_of[4:] == [*OTHER, *SYMPTOMS]
    assert finding.notes == (
        "learned under load",
        "also observed, as its symptom: InterruptPressure",
    )


def test_a_signature_alone_is_its_own_cause() -> None:
    finding = told(["InterruptPressure"], {"cpu.interrupts.external": 40.0})
    assert finding.hypothesis is not None
    assert finding.hypothesis.name == "InterruptPressure"
    assert finding.subsystem is Subsystem.CPU
    assert finding.notes == ("learned under load",)
    assert finding.claim.startswith("10 k/s interrupts a second")


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


def later_openings(moved: str) -> list[FindingUpdate]:
    """A slow disk for 30 s; from second 12 on the CPU is over its cut for what ``moved``."""
    slow = RULES["SlowDevice"]
    assert slow.certain is not None
    columns = {c.metric.name: c for c in DISK.columns}
    match = SignatureMatch(slow, tuple(columns[c.metric] for c in slow.certain.conditions))
    tracker = FindingTracker("n1", list(RULES.values()), SubjectHistory(), lambda: ())
    updates = []
    for second in range(30):
        harm = dict.fromkeys(STALLED, 20.0) | ({moved: 15.0} if second >= 12 else {})
        weight = np.array([harm.get(c.metric.name, 0.0) for c in DISK.columns])
        excess = np.stack([weight, np.zeros(weight.size)])
        seen = ObservedSecond(
            second * NS_PER_SECOND, DISK, 1e8 * (weight > 0), excess, weight, np.zeros(weight.size)
        )
        over = {Subsystem.STORAGE: 2.0, Subsystem.CPU: 1.5 if second >= 12 else 0.0}
        updates += tracker.update(
            SecondVerdict(second * NS_PER_SECOND, over, [match], [match]), seen
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


def test_what_is_no_symptom_is_a_finding_of_its_own() -> None:
    updates = later_openings("cpu.steal")
    opened = [u.finding.subsystem for u in updates if u.change is FindingChange.OPENED]
    assert opened == [Subsystem.STORAGE, Subsystem.CPU]


def test_what_was_never_read_is_unknown_and_not_nothing() -> None:
    width = len(PLAN.columns)
    trace, nothing = Trace(), np.zeros(width)
    for second, read in ((0, np.nan), (1, 8.0), (2, np.nan), (3, 4.0)):
        values = np.full(width, np.nan)
        values[0] = read
        trace.add(ObservedSecond(second, PLAN, values, np.zeros((2, width)), nothing, nothing))
    assert trace.stats.values[0] == 6.0  # of the seconds in which it was read
    assert np.isnan(trace.stats.values[1:]).all()


USAGE, WAITING, RETRANS = (
    "cpu.subject.usage", "cpu.subject.pressure", "network.subject.retrans_segs",
)  # fmt: skip


def hurt(
    metrics: list[str], used: dict[str, tuple[str, float, float]], known: tuple[Identity, ...] = ()
) -> tuple[str, ...]:
    """Two minutes; from the second one on the values are others (before, during)."""
    channels = [Channel(metric, name, Kind.COUNTER) for name, (metric, *_) in used.items()]
    history = SubjectHistory(lambda: known)
    made = column_plan(ChannelTable((), tuple(channels)))
    for second in range(120):
        seen = np.array([values[1 + (second >= 60)] for values in used.values()], float)
        history.push(Second(made, second * NS_PER_SECOND, seen[:0], seen))
    return history.victims(metrics, 60 * NS_PER_SECOND, 120 * NS_PER_SECOND)


def test_victims_are_those_to_whom_harm_was_done_most_first() -> None:
    used = {
        "/a.service": (WAITING, 1e6, 5e8), "/b.service": (WAITING, 1e6, 9e8),
        "/calm.service": (WAITING, 1e6, 1e6), "/freed.service": (WAITING, 9e8, 1e6),
    }  # fmt: skip
    assert hurt([WAITING], used) == ("/b.service", "/a.service")


def test_of_cpu_time_who_lost_it_is_the_victim() -> None:
    used = {"/loser.service": (USAGE, 9e8, 1e8), "/winner.service": (USAGE, 1e8, 9e8)}
    assert hurt([USAGE], used) == ("/loser.service",)


def test_a_pod_is_called_by_its_name() -> None:
    pod = Identity("ml/a", SubjectKind.POD, "u1", "ml", "a")
    assert hurt([RETRANS], {"ml/a": (RETRANS, 0.0, 50.0)}, (pod,)) == ("ml/a",)


@pytest.mark.parametrize("metric", [RETRANS, USAGE])
def test_where_nothing_changed_nobody_suffers(metric: str) -> None:
    assert hurt([metric], {"/a.service": (metric, 1e8, 1e8)}) == ()


def test_a_pod_that_becomes_known_after_the_opening_is_told_within_seconds() -> None:
    names: list[Identity] = []
    named = openings_told_anew(names, known_from=4)
    first, *later = named
    assert (first.change, first.finding.pods) == (FindingChange.OPENED, ())
    assert [subject.name for subject in first.finding.subjects] == [CGROUP]
    (known,) = later
    assert known.change is FindingChange.CHANGED
    assert [(pod.namespace, pod.name) for pod in known.finding.pods] == [("ml", "hog")]
    assert known.finding.id == first.finding.id
    # who becomes known four seconds after the opening is told at the look that comes next
    assert known.finding.last_seen_ns - first.finding.last_seen_ns == 5 * NS_PER_SECOND


def test_what_is_known_from_the_opening_on_is_told_once() -> None:
    (only,) = openings_told_anew([HOG], known_from=0)
    assert [pod.name for pod in only.finding.pods] == ["hog"]


def test_who_is_no_pod_is_named_at_the_opening_and_not_instead_of_another_later() -> None:
    parent = dict.fromkeys(range(4, 15), 900000000.0)
    (only,) = openings_told_anew([], known_from=99, beside=parent)
    assert [subject.name for subject in only.finding.subjects] == [CGROUP]


CGROUP = "/kubepods/pod1"
BESIDE = "/parent.service"
HOG = Identity(CGROUP, SubjectKind.POD, "u1", "ml", "hog")


def openings_told_anew(
    names: list[Identity], known_from: int, beside: Mapping[int, float] | None = None
) -> list[FindingUpdate]:
    """A quota holds a cgroup back for 15 s; whose it is, is known from a second on.

    ``beside``: by second, how much another is held back.
    """
    metric = "cpu.subject.throttled_time"
    both = tuple(Channel(metric, name, Kind.COUNTER) for name in (CGROUP, BESIDE))
    made = column_plan(ChannelTable(both, ()))
    rule = RULES["CPUQuotaThrottling"]
    history = SubjectHistory(lambda: names)
    tracker = FindingTracker("n1", list(RULES.values()), history, lambda: ())
    match = SignatureMatch(rule, tuple(c for c in made.columns if c.metric.name == metric))
    values = np.array([5e8 * (c in match.columns) for c in made.columns])
    others = beside or {}
    still = np.zeros((2, values.size))
    updates = []
    for second in range(15):
        if second >= known_from:
            names[:] = [HOG]
        history.push(
            Second(made, second * NS_PER_SECOND, values, np.array([5e8, others.get(second, 0.0)]))
        )
        seen = ObservedSecond(second * NS_PER_SECOND, made, values, still, still[0], still[0])
        updates += tracker.update(SecondVerdict(second * NS_PER_SECOND, {}, [match], [match]), seen)
    return updates
