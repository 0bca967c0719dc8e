"""Feeds sessions to the analyzer and says what it found, when, and whether it was right."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from faultbench.sessions import GRACE_S, SETTLE_S, Case, Session, Slice
from reveal_analyzer.node import NOTHING_ANNOUNCED, Announced, NodeAnalyzer
from reveal_contract.channels import Channel
from reveal_contract.finding import Finding, FindingChange, FindingUpdate
from reveal_contract.settings import AnalyzerSettings

FAULT_CGROUPS = "/reveal-fault-"
_FALLBACKS = "own.fallbacks"


@dataclass(frozen=True)
class TimedUpdate:
    """One change the analyzer announced, at the close of the slice ending at ``at``."""

    seconds: float
    change: FindingChange
    finding: Finding


@dataclass(frozen=True)
class FalseFinding:
    """A finding where nothing was injected."""

    session: str
    seconds: float
    subsystem: str
    claim: str


@dataclass(frozen=True)
class Outcome:
    """What became of one case.  Delays are seconds after onset, None when it never came."""

    session: str
    workload: str
    case: Case
    suspected: float | None = None
    found: float | None = None
    subsystem: str = ""
    by: str = ""
    claim: str = ""
    others: tuple[str, ...] = ()
    subjects: tuple[str, ...] = ()
    false: int = 0

    @property
    def subsystem_right(self) -> bool:
        return self.subsystem in {each.value for each in self.case.subsystems}

    @property
    def subject_right(self) -> bool | None:
        """Whether the first subject named is the one at fault; None where nobody is."""
        if self.case.subject is None:
            return None
        return self.subjects[:1] == (self.case.subject,)


@dataclass(frozen=True)
class Judged:
    """All that a session gave: its cases, false findings elsewhere, healthy seconds watched.

    ``in_warmup`` is what was found before anything was learned, by signatures alone.  For
    ``reduced_seconds`` of ``recorded_seconds`` the collector read less than it could: over its
    CPU budget, or a source in a slower lane.
    """

    session: str
    workload: str
    neighbour_cores: float
    outcomes: tuple[Outcome, ...] = ()
    false: tuple[FalseFinding, ...] = ()
    in_warmup: tuple[FalseFinding, ...] = ()
    healthy_seconds: float = 0.0
    recorded_seconds: float = 0.0
    reduced_seconds: float = 0.0


def judge(session: Session, settings: AnalyzerSettings, *, chained: bool = False) -> Judged:
    """Judge every case of a session.

    Each case is judged by a fresh analyzer that has seen the warm-up and the case only; when
    ``chained``, by one that lives through the whole session.
    """
    slices = list(session.read())
    warm = [each for each in slices if each.end <= session.warmup]
    if chained or not session.cases:
        updates = list(listen(slices, settings))
        outcomes = [outcome(session, case, updates) for case in session.cases]
        watched = healthy_seconds(session.cases, slices[len(warm) :])
    else:
        heard = [list(listen(warm + stretch(slices, case), settings)) for case in session.cases]
        pairs = list(zip(session.cases, heard, strict=True))
        outcomes = [outcome(session, case, updates) for case, updates in pairs]
        updates = [each for _, part in pairs for each in part if each.seconds > session.warmup]
        updates += [each for each in heard[0] if each.seconds <= session.warmup]
        watched = sum(healthy_seconds([case], stretch(slices, case)) for case in session.cases)
    early, late = _false_findings(session, updates)
    return Judged(
        session.name, session.workload, session.neighbour_cores, tuple(outcomes), late, early,
        watched, float(len(slices)), reduced_seconds(slices),
    )  # fmt: skip


def hidden(channel: Channel) -> bool:
    """The channels of a fault's own cgroup: they would give the answer away."""
    return channel.instance.startswith(FAULT_CGROUPS)


def stretch(slices: Iterable[Slice], case: Case) -> list[Slice]:
    """The slices that belong to a case."""
    return [each for each in slices if case.begin < each.end <= case.end]


def listen(
    slices: Iterable[Slice], settings: AnalyzerSettings, announced: Announced = NOTHING_ANNOUNCED
) -> Iterator[TimedUpdate]:
    """Play slices to a fresh analyzer; what it says, as it says it.

    What is left out is hidden from detection alone: subjects are named from all channels.
    """
    analyzer: NodeAnalyzer | None = None
    for each in slices:
        if analyzer is None:
            analyzer = NodeAnalyzer(
                each.message.node, settings, leave_out=hidden, announced=announced
            )
        for update in analyzer.analyze(each.message, each.table):
            yield _timed_update(each.end, update)


def _timed_update(seconds: float, update: FindingUpdate) -> TimedUpdate:
    return TimedUpdate(seconds, update.change, update.finding)


def outcome(session: Session, case: Case, updates: Sequence[TimedUpdate]) -> Outcome:
    """What the analyzer said of a case: the first finding in time, by its last word."""
    within = [each for each in updates if case.begin < each.seconds <= case.end]
    false = [
        each
        for each in within
        if each.change is FindingChange.OPENED and _healthy([case], each.seconds)
    ]
    result = Outcome(session.name, session.workload, case, false=len(false))
    in_time = [each for each in updates if _in_time(case, each)]
    first = _opened(case, updates)
    hints = [
        each.seconds
        for each in in_time
        if each.change in (FindingChange.SUSPECTED, FindingChange.OPENED)
    ]
    suspected = hints[0] - case.onset if hints else None
    if first is None:
        return replace(result, suspected=suspected)
    last = _last_word(case, updates, first.finding.id)
    return replace(
        result,
        suspected=suspected,
        found=first.seconds - case.onset,
        subsystem=last.subsystem.value,
        by=last.hypothesis.name if last.hypothesis else "score",
        claim=last.claim,
        others=tuple(
            each.finding.subsystem.value
            for each in in_time
            if each.change is FindingChange.OPENED and each.finding.id != first.finding.id
        ),
        subjects=tuple(subject.name for subject in last.subjects),
    )


def _in_time(case: Case, update: TimedUpdate) -> bool:
    return case.onset < update.seconds <= case.offset + GRACE_S


def _opened(case: Case, updates: Iterable[TimedUpdate]) -> TimedUpdate | None:
    return next(
        (each for each in updates if each.change is FindingChange.OPENED and _in_time(case, each)),
        None,
    )


def _last_word(case: Case, updates: Iterable[TimedUpdate], identity: str) -> Finding:
    words = [
        each.finding for each in updates if each.finding.id == identity and each.seconds <= case.end
    ]
    return words[-1]


def _false_findings(
    session: Session, updates: Iterable[TimedUpdate]
) -> tuple[tuple[FalseFinding, ...], tuple[FalseFinding, ...]]:
    """What was found while nothing was injected or settling: during the warm-up, and later."""
    results = [
        FalseFinding(session.name, each.seconds, each.finding.subsystem.value, each.finding.claim)
        for each in updates
        if each.change is FindingChange.OPENED and _healthy(session.cases, each.seconds)
    ]
    early = tuple(each for each in results if each.seconds <= session.warmup)
    return early, tuple(each for each in results if each.seconds > session.warmup)


def healthy_seconds(cases: Iterable[Case], slices: Iterable[Slice]) -> float:
    """Seconds of these slices in which whatever is found is false."""
    listed = list(cases)
    return float(sum(1 for each in slices if _healthy(listed, each.end)))


def reduced_seconds(slices: Iterable[Slice]) -> float:
    """Seconds of these slices in which the collector sampled less, by its own counter."""
    return float(sum(1 for each in slices if _fallbacks(each) > 0))


def _fallbacks(recorded: Slice) -> int:
    metrics = [channel.metric for channel in recorded.table.slow]
    position = metrics.index(_FALLBACKS) if _FALLBACKS in metrics else None
    return (
        0
        if position is None or recorded.message.slow_missing[position]
        else int(recorded.message.slow[position])
    )


def _healthy(cases: Iterable[Case], seconds: float) -> bool:
    return not any(case.onset < seconds <= case.offset + SETTLE_S for case in cases)
