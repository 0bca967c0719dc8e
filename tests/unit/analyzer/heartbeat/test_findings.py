"""A slowdown told: a finding of its own, what another one cost, or a note that none was slowed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from reveal_analyzer.derive.columns import ColumnPlan, column_plan
from reveal_analyzer.episodes.trace import ObservedSecond
from reveal_analyzer.heartbeat.findings import JobMonitor
from reveal_analyzer.heartbeat.recent_excess import RecentExcess
from reveal_analyzer.heartbeat.reference import WindowReading
from reveal_analyzer.heartbeat.slowdown_state import SUSTAINED_S, SlowdownState
from reveal_analyzer.heartbeat.tracker import StepTime
from reveal_analyzer.subjects.history import SubjectHistory
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.finding import Finding, FindingChange, FindingUpdate, Severity, State
from reveal_contract.metric import Kind, Subsystem
from reveal_contract.time_units import NS_PER_SECOND
from support.heartbeat_nodes import JOB, Beating, Job

BEGIN_NS = 1_700_000_000 * NS_PER_SECOND
ONSET, OVER, END = 200, 270, 320
PRESSURE = Channel("storage.pressure.some", "", Kind.COUNTER, 1e3)
Updates = Callable[[int], Sequence[FindingUpdate]]


def nothing(_: int) -> Sequence[FindingUpdate]:
    return ()


def job(percent: float) -> Job:
    return Job(0.45, 0.2, 0.02, slower=lambda at: 1 + percent / 100 * (ONSET <= at < OVER))


def other(second: int, state: State = State.OPEN) -> Finding:
    """A finding that somebody else made."""
    first = BEGIN_NS + second * NS_PER_SECOND
    return Finding("memory-1", "n1", Subsystem.MEMORY, Severity.LOW, state, first, first, "swaps")


def worsened(percent: float, later: float) -> Job:
    """A minute and a half after the onset it loses more or less than it did."""
    return Job(
        0.45, 0.2, 0.02,
        slower=lambda at: 1 + (later if at >= ONSET + 90 else percent) / 100 * (at >= ONSET),
    )  # fmt: skip


def told(
    percent: float, others: Updates = nothing, end: int = END
) -> dict[int, list[FindingUpdate]]:
    """What is told in each second in which something is."""
    node = Beating({JOB: job(percent)}, end)
    heart = JobMonitor("n1", (), SubjectHistory())
    made = {}
    for message in node.slices():
        updates = heart.update(message, node.table, None, others(message.sequence))
        if updates:
            made[message.sequence] = updates
    return made


def every(made: dict[int, list[FindingUpdate]]) -> list[FindingUpdate]:
    return [update for updates in made.values() for update in updates]


def test_a_slowdown_that_lasts_is_opened_once_told_better_and_resolved() -> None:
    made = told(10)
    changes = [update.change for update in every(made)]
    assert changes[0] is FindingChange.OPENED
    assert changes[-1] is FindingChange.RESOLVED
    assert set(changes[1:-1]) == {FindingChange.CHANGED}
    assert ONSET + SUSTAINED_S <= min(made) <= ONSET + 20
    assert len({update.finding.id for update in every(made)}) == 1
    last = every(made)[-1].finding
    assert last.impact is not None
    assert last.impact.subject == JOB
    assert last.impact.slowdown_percent == pytest.approx(10, abs=1)
    assert last.impact.low_percent < 10 < last.impact.high_percent
    assert last.impact.window_s == 60
    assert (last.impact.since_ns - BEGIN_NS) / NS_PER_SECOND == pytest.approx(ONSET, abs=4)
    assert last.state is State.RESOLVED
    assert last.resolved_ns is not None


def test_a_slowdown_that_gets_worse_or_better_is_told_again_a_few_times() -> None:
    for percent, later, severity in ((6, 40, Severity.CRITICAL), (40, 6, Severity.MEDIUM)):
        node = Beating({JOB: worsened(percent, later)}, ONSET + 200)
        heart = JobMonitor("n1", (), SubjectHistory())
        made = {m.sequence: heart.update(m, node.table, None, ()) for m in node.slices()}
        after = [one for at, some in made.items() if at > ONSET + 90 for one in some]
        assert {one.change for one in after} == {FindingChange.CHANGED}
        assert after[-1].finding.severity is severity
        assert after[-1].finding.impact is not None
        assert after[-1].finding.impact.slowdown_percent == pytest.approx(later, abs=1.5)
        assert 1 <= len(after) <= 4
        first = min(at for at in made if at > ONSET + 90 and made[at])
        assert first <= ONSET + 90 + 25


def test_its_claim_says_whose_steps_how_much_and_that_no_cause_was_seen() -> None:
    opened = every(told(10))[0].finding
    assert opened.claim.startswith(f"Steps of {JOB} take ")
    assert "% slower since 22:16:" in opened.claim
    assert opened.claim.endswith("cause not seen")
    assert opened.subsystem is Subsystem.CPU
    assert opened.hypothesis is None
    assert [subject.name for subject in opened.subjects] == [JOB]


@pytest.mark.parametrize(
    ("percent", "severity"),
    [(4, Severity.LOW), (10, Severity.MEDIUM), (20, Severity.HIGH), (45, Severity.CRITICAL)],
)
def test_its_severity_is_how_much_the_job_loses(percent: float, severity: Severity) -> None:
    assert every(told(percent, end=OVER))[-1].finding.severity is severity


def test_a_healthy_job_is_no_finding() -> None:
    assert told(0) == {}


def test_a_job_that_became_faster_is_no_finding() -> None:
    assert told(-10) == {}


def test_a_finding_at_the_onset_gets_the_slowdown_as_its_cost() -> None:
    def opened(second: int) -> Sequence[FindingUpdate]:
        return [FindingUpdate(FindingChange.OPENED, other(second))] if second == ONSET + 3 else ()

    made = told(12, opened, end=OVER)
    assert {update.finding.id for update in every(made)} == {"memory-1"}
    first, *later = every(made)
    assert first.finding.impact is None
    assert all(update.change is FindingChange.CHANGED for update in later)
    assert later[-1].finding.impact is not None
    assert later[-1].finding.impact.slowdown_percent == pytest.approx(12, abs=1)
    assert later[-1].finding.claim == "swaps"


def test_what_was_known_of_its_cost_stays_when_it_is_resolved() -> None:
    def updates(second: int) -> Sequence[FindingUpdate]:
        if second == ONSET + 3:
            return [FindingUpdate(FindingChange.OPENED, other(second))]
        if second == END - 1:
            return [FindingUpdate(FindingChange.RESOLVED, other(ONSET + 3, State.RESOLVED))]
        return ()

    last = every(told(12, updates))[-1]
    assert last.change is FindingChange.RESOLVED
    assert last.finding.impact is not None


def test_what_is_open_for_a_minute_while_the_job_keeps_its_step_says_so() -> None:
    def opened(second: int) -> Sequence[FindingUpdate]:
        return [FindingUpdate(FindingChange.OPENED, other(second))] if second == ONSET else ()

    made = told(0, opened)
    assert sorted(made)[0] == ONSET
    first, *later = every(made)
    assert first.finding.notes == ()
    assert [update.change for update in later] == [FindingChange.CHANGED]
    assert min(at for at in made if at > ONSET) >= ONSET + 59
    (note,) = later[0].finding.notes
    assert note.startswith("changed, job not slowed")
    assert JOB in note


def test_suspicions_pass_as_they_are() -> None:
    def suspected(second: int) -> Sequence[FindingUpdate]:
        return [FindingUpdate(FindingChange.SUSPECTED, other(second))] if second == 5 else ()

    assert told(0, suspected, end=10) == {5: [FindingUpdate(FindingChange.SUSPECTED, other(5))]}


def test_what_is_still_open_at_the_end_is_told_with_its_cost() -> None:
    node = Beating({JOB: job(10)}, OVER)
    heart = JobMonitor("n1", (), SubjectHistory())
    for message in node.slices():
        heart.update(message, node.table, None, ())
    assert heart.slower
    (last,) = heart.finish(())
    assert last.change is FindingChange.CHANGED
    assert last.finding.impact is not None


def test_what_moved_at_the_onset_names_the_subsystem() -> None:
    node = Beating({JOB: job(10)}, OVER, others=(PRESSURE,))
    columns = column_plan(node.table)
    place = columns.labels.index("storage.pressure.some__mean")
    heart = JobMonitor("n1", (), SubjectHistory())
    made = []
    for message in node.slices():
        seen = observed(columns, message.start_ns)
        if message.sequence >= ONSET:
            seen.excess[0, place] = seen.weighted_excess[place] = 12.0
            seen.values[place] = 4e8
        made += heart.update(message, node.table, seen, ())
    opened = made[0].finding
    assert opened.subsystem is Subsystem.STORAGE
    assert "observed with it" in opened.claim
    assert opened.evidence[0].metric == "storage.pressure.some"


def observed(columns: ColumnPlan, start_ns: int) -> ObservedSecond:
    width = len(columns.columns)
    return ObservedSecond(
        start_ns, columns, np.zeros(width), np.zeros((2, width)), np.zeros(width), np.zeros(width)
    )


def test_glimpses_keep_what_stood_out_near_an_onset_only() -> None:
    columns = column_plan(ChannelTable((PRESSURE,), ()))
    place = columns.labels.index("storage.pressure.some__mean")
    kept = RecentExcess()
    for second in range(60):
        seen = observed(columns, BEGIN_NS + second * NS_PER_SECOND)
        seen.excess[0, place] = seen.weighted_excess[place] = float(second == 30) * 42.0
        kept.push(seen)
    near = kept.around(BEGIN_NS + 32 * NS_PER_SECOND)
    assert near.weights[place] == pytest.approx(42 / 21)
    assert kept.around(BEGIN_NS + 50 * NS_PER_SECOND).weights.max() == 0
    kept.clear()
    assert kept.around(BEGIN_NS + 32 * NS_PER_SECOND).weights.size == 0


def beat(*percents: float) -> StepTime:
    windows = (10, 30, 60)[: len(percents)]
    readings = tuple(
        WindowReading(window, percent, 0.5, 2.0)
        for window, percent in zip(windows, percents, strict=True)
    )
    return StepTime(0.5, 0.45, "cpu.subject.usage.fine", 0.5, readings)


def play(beats: Sequence[StepTime | None]) -> SlowdownState:
    course = SlowdownState(JOB)
    for second, one in enumerate(beats):
        course.update(one, BEGIN_NS + second * NS_PER_SECOND)
    return course


def test_a_few_slow_seconds_are_no_slowdown() -> None:
    assert play([beat(0, 0, 0)] * 60 + [beat(9, 3, 1)] * (SUSTAINED_S - 1)).since_ns is None
    assert play([beat(0, 0, 0)] * 60 + [beat(9, 3, 1)] * SUSTAINED_S).since_ns is not None


def test_the_longest_window_within_the_slowdown_tells_its_cost() -> None:
    young = play([beat(0, 0, 0)] * 60 + [beat(10, 4, 2)] * 6).impact
    old = play([beat(0, 0, 0)] * 60 + [beat(10, 9.5, 9)] * 90).impact
    assert young is not None
    assert (young.window_s, young.slowdown_percent) == (10, 10)
    assert old is not None
    assert (old.window_s, old.slowdown_percent) == (60, 9)
    assert old.confidence > young.confidence


def test_a_rhythm_that_is_lost_ends_its_slowdown_after_a_while() -> None:
    slow = [beat(0, 0, 0)] * 60 + [beat(9, 9, 9)] * 40
    assert play([*slow, *[None] * 10]).since_ns is not None
    ended = play([*slow, *[None] * 40])
    assert ended.since_ns is None
    assert ended.is_lost


def test_a_steady_job_counts_its_seconds() -> None:
    assert play([beat(0, 0, 0)] * 61).steady == 61
    assert play([beat(0, 0, 0)] * 61 + [beat(9, 9, 9)]).steady == 0


def test_an_impact_in_a_row_is_what_a_report_shows() -> None:
    finding = replace(other(0), impact=play([beat(0, 0, 0)] * 60 + [beat(10, 4, 2)] * 6).impact)
    row = finding.to_dict()["impact"]
    assert row["slowdownPercent"] == "10.0"
    assert row["windowSeconds"] == 10
    assert row["usualMilliseconds"] == 450
