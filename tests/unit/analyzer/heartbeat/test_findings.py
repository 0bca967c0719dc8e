"""Reports of a slowdown: an own finding, the impact of another one, or a note of no impact."""

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
from reveal_analyzer.subjects.culprits import SubjectHistory
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.finding import Finding, FindingChange, FindingUpdate, Severity, State
from reveal_contract.metric import Kind, Subsystem
from reveal_contract.time_units import NS_PER_SECOND
from support.heartbeat_nodes import JOB, HeartbeatNode, Job

BEGIN_NS = 1_700_000_000 * NS_PER_SECOND
ONSET, OVER, END = 200, 270, 320
PRESSURE = Channel("storage.pressure.some", "", Kind.COUNTER, 1e3)
Updates = Callable[[int], Sequence[FindingUpdate]]


def nothing(_: int) -> Sequence[FindingUpdate]:
    return ()


def job(percent: float) -> Job:
    return Job(0.45, 0.2, 0.02, slower=lambda second: 1 + percent / 100 * (ONSET <= second < OVER))


def other(second: int, state: State = State.OPEN) -> Finding:
    """Return a finding from another source."""
    first = BEGIN_NS + second * NS_PER_SECOND
    return Finding("memory-1", "n1", Subsystem.MEMORY, Severity.LOW, state, first, first, "swaps")


def worsened(percent: float, later: float) -> Job:
    """The slowdown changes a minute and a half after the onset."""
    return Job(
        0.45, 0.2, 0.02,
        slower=lambda s: 1 + (later if s >= ONSET + 90 else percent) / 100 * (s >= ONSET),
    )  # fmt: skip


def updates_by_second(
    percent: float, others: Updates = nothing, end: int = END
) -> dict[int, list[FindingUpdate]]:
    """Return the updates by second."""
    node = HeartbeatNode({JOB: job(percent)}, end)
    monitor = JobMonitor("n1", (), SubjectHistory())
    by_second = {}
    for message in node.slices():
        updates = monitor.update(message, node.table, None, others(message.sequence))
        if updates:
            by_second[message.sequence] = updates
    return by_second


def every(by_second: dict[int, list[FindingUpdate]]) -> list[FindingUpdate]:
    return [update for updates in by_second.values() for update in updates]


def test_a_lasting_slowdown_is_opened_once_refined_and_resolved() -> None:
    by_second = updates_by_second(10)
    changes = [update.change for update in every(by_second)]
    assert changes[0] is FindingChange.OPENED
    assert changes[-1] is FindingChange.RESOLVED
    assert set(changes[1:-1]) == {FindingChange.CHANGED}
    assert ONSET + SUSTAINED_S <= min(by_second) <= ONSET + 20
    assert len({update.finding.id for update in every(by_second)}) == 1
    last = every(by_second)[-1].finding
    assert last.impact is not None
    assert last.impact.subject == JOB
    assert last.impact.slowdown_percent == pytest.approx(10, abs=1)
    assert last.impact.low_percent < 10 < last.impact.high_percent
    assert last.impact.window_s == 60
    assert (last.impact.since_ns - BEGIN_NS) / NS_PER_SECOND == pytest.approx(ONSET, abs=4)
    assert last.state is State.RESOLVED
    assert last.resolved_ns is not None


def test_a_changing_slowdown_is_updated_a_few_times() -> None:
    for percent, later, severity in ((6, 40, Severity.CRITICAL), (40, 6, Severity.MEDIUM)):
        node = HeartbeatNode({JOB: worsened(percent, later)}, ONSET + 200)
        monitor = JobMonitor("n1", (), SubjectHistory())
        by_second = {m.sequence: monitor.update(m, node.table, None, ()) for m in node.slices()}
        after = [
            update for second, some in by_second.items() if second > ONSET + 90 for update in some
        ]
        assert {update.change for update in after} == {FindingChange.CHANGED}
        assert after[-1].finding.severity is severity
        assert after[-1].finding.impact is not None
        assert after[-1].finding.impact.slowdown_percent == pytest.approx(later, abs=1.5)
        assert 1 <= len(after) <= 4
        first = min(second for second in by_second if second > ONSET + 90 and by_second[second])
        assert first <= ONSET + 90 + 25


def test_its_claim_has_the_job_the_slowdown_and_that_no_cause_was_found() -> None:
    opened = every(updates_by_second(10))[0].finding
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
    assert every(updates_by_second(percent, end=OVER))[-1].finding.severity is severity


def test_a_healthy_job_is_no_finding() -> None:
    assert updates_by_second(0) == {}


def test_a_job_that_became_faster_is_no_finding() -> None:
    assert updates_by_second(-10) == {}


def test_a_finding_from_the_onset_gets_the_slowdown_as_its_impact() -> None:
    def opened(second: int) -> Sequence[FindingUpdate]:
        return [FindingUpdate(FindingChange.OPENED, other(second))] if second == ONSET + 3 else ()

    by_second = updates_by_second(12, opened, end=OVER)
    assert {update.finding.id for update in every(by_second)} == {"memory-1"}
    first, *later = every(by_second)
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

    last = every(updates_by_second(12, updates))[-1]
    assert last.change is FindingChange.RESOLVED
    assert last.finding.impact is not None


def test_a_finding_open_for_a_minute_without_slowdown_is_noted() -> None:
    def opened(second: int) -> Sequence[FindingUpdate]:
        return [FindingUpdate(FindingChange.OPENED, other(second))] if second == ONSET else ()

    by_second = updates_by_second(0, opened)
    assert sorted(by_second)[0] == ONSET
    first, *later = every(by_second)
    assert first.finding.notes == ()
    assert [update.change for update in later] == [FindingChange.CHANGED]
    assert min(time_s for time_s in by_second if time_s > ONSET) >= ONSET + 59
    (note,) = later[0].finding.notes
    assert note.startswith("changed, job not slowed")
    assert JOB in note


def test_suspicions_pass_as_they_are() -> None:
    def suspected(second: int) -> Sequence[FindingUpdate]:
        return [FindingUpdate(FindingChange.SUSPECTED, other(second))] if second == 5 else ()

    assert updates_by_second(0, suspected, end=10) == {
        5: [FindingUpdate(FindingChange.SUSPECTED, other(5))]
    }


def test_an_open_finding_has_its_impact_when_the_analysis_ends() -> None:
    node = HeartbeatNode({JOB: job(10)}, OVER)
    monitor = JobMonitor("n1", (), SubjectHistory())
    for message in node.slices():
        monitor.update(message, node.table, None, ())
    assert monitor.slower
    (last,) = monitor.finish(())
    assert last.change is FindingChange.CHANGED
    assert last.finding.impact is not None


def test_the_changed_metric_of_the_onset_names_the_subsystem() -> None:
    node = HeartbeatNode({JOB: job(10)}, OVER, others=(PRESSURE,))
    columns = column_plan(node.table)
    index = columns.labels.index("storage.pressure.some__mean")
    monitor = JobMonitor("n1", (), SubjectHistory())
    updates = []
    for message in node.slices():
        observed_second = observed(columns, message.start_ns)
        if message.sequence >= ONSET:
            observed_second.excess[0, index] = observed_second.weighted_excess[index] = 12.0
            observed_second.values[index] = 4e8
        updates += monitor.update(message, node.table, observed_second, ())
    opened = updates[0].finding
    assert opened.subsystem is Subsystem.STORAGE
    assert "observed with it" in opened.claim
    assert opened.evidence[0].metric == "storage.pressure.some"


def observed(columns: ColumnPlan, start_ns: int) -> ObservedSecond:
    width = len(columns.columns)
    return ObservedSecond(
        start_ns, columns, np.zeros(width), np.zeros((2, width)), np.zeros(width), np.zeros(width)
    )


def test_recent_excess_keeps_only_what_stood_out_near_an_onset() -> None:
    columns = column_plan(ChannelTable((PRESSURE,), ()))
    index = columns.labels.index("storage.pressure.some__mean")
    kept = RecentExcess()
    for second in range(60):
        observed_second = observed(columns, BEGIN_NS + second * NS_PER_SECOND)
        observed_second.excess[0, index] = observed_second.weighted_excess[index] = (
            float(second == 30) * 42.0
        )
        kept.push(observed_second)
    near = kept.around(BEGIN_NS + 32 * NS_PER_SECOND)
    assert near.weights[index] == pytest.approx(42 / 21)
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
    state = SlowdownState(JOB)
    for second, step in enumerate(beats):
        state.update(step, BEGIN_NS + second * NS_PER_SECOND)
    return state


def test_a_few_slow_seconds_are_no_slowdown() -> None:
    assert play([beat(0, 0, 0)] * 60 + [beat(9, 3, 1)] * (SUSTAINED_S - 1)).since_ns is None
    assert play([beat(0, 0, 0)] * 60 + [beat(9, 3, 1)] * SUSTAINED_S).since_ns is not None


def test_the_longest_window_within_the_slowdown_gives_its_impact() -> None:
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
