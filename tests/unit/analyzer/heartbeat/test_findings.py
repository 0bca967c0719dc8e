"""Reports of a slowdown: an own finding, the impact of another one, or a note of no impact."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

import pytest

from reveal_analyzer.heartbeat.findings import JobMonitor
from reveal_analyzer.heartbeat.slowdown_state import SUSTAINED_S
from reveal_analyzer.state.codec import Position, SavedState, decode, encode
from reveal_analyzer.state.tree import StateError
from reveal_analyzer.subjects.history import SubjectHistory
from reveal_contract.channels import Channel
from reveal_contract.finding import (
    Finding,
    FindingChange,
    FindingUpdate,
    Impact,
    Resolution,
    Severity,
    State,
)
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
    assert monitor.slow_subjects == {JOB}
    assert monitor.any_open
    (last,) = monitor.finish(())
    assert last.change is FindingChange.CHANGED
    assert last.finding.impact is not None


def lasting(percent: float, onset: int = ONSET) -> Job:
    """Return a job that is slower for good."""
    return Job(0.45, 0.2, 0.02, slower=lambda second: 1 + percent / 100 * (second >= onset))


def played(
    node: HeartbeatNode, left_out: Collection[int] = (), others: Updates = nothing
) -> tuple[JobMonitor, list[tuple[int, FindingUpdate]]]:
    """Return the monitor and its updates by second, without the slices that are left out."""
    monitor, updates = JobMonitor("n1", (), SubjectHistory()), []
    for message in node.slices():
        if message.sequence not in left_out:
            some = monitor.update(message, node.table, None, others(message.sequence))
            updates += [(message.sequence, update) for update in some]
    return monitor, updates


@pytest.mark.parametrize("lost", [1, 3, 4, 20, 50])
def test_a_gap_in_the_slices_neither_ends_a_slowdown_nor_opens_another(lost: int) -> None:
    node = HeartbeatNode({JOB: lasting(20)}, 260 + lost + 60)
    monitor, updates = played(node, range(260, 260 + lost))
    changes = [update.change for _, update in updates]
    assert changes.count(FindingChange.OPENED) == 1
    assert FindingChange.RESOLVED not in changes
    (last,) = monitor.finish(())
    assert last.finding.impact is not None
    assert last.finding.impact.slowdown_percent == pytest.approx(20, abs=1)


def test_after_a_long_gap_a_slowdown_is_resolved_as_unobserved_and_found_again() -> None:
    node = HeartbeatNode({JOB: lasting(20)}, 260 + 90 + 60)
    _, updates = played(node, range(260, 350))
    opened, resolved, again = (
        (second, update) for second, update in updates if update.change is not FindingChange.CHANGED
    )
    assert resolved[0] == 350
    assert resolved[1].change is FindingChange.RESOLVED
    assert resolved[1].finding.id == opened[1].finding.id != again[1].finding.id
    assert resolved[1].finding.resolution is Resolution.UNOBSERVED
    assert resolved[1].finding.notes == (
        "its evidence has not been read since 22:17:40Z; whether it lasts is unknown",
    )
    assert again[1].change is FindingChange.OPENED
    assert again[1].finding.impact is not None
    assert again[1].finding.impact.slowdown_percent == pytest.approx(20, abs=1.5)


@pytest.mark.parametrize(("away", "over"), [(0, False), (20, False), (50, False), (20, True)])
def test_a_restart_goes_on_with_the_same_finding(away: int, over: bool) -> None:
    """The state is saved and restored through bytes; afterwards ``away`` slices are missing."""
    end = 260 if over else 10_000
    job = Job(0.45, 0.2, 0.02, slower=lambda second: 1 + 0.2 * (ONSET <= second < end))
    node = HeartbeatNode({JOB: job}, 250 + away + 90)
    monitor, updates = JobMonitor("n1", (), SubjectHistory()), []
    for message in node.slices():
        if 250 <= message.sequence < 250 + away:
            continue
        if message.sequence == 250 + away:
            saved = SavedState(Position("n1", message.boot, 249, 1), 1, monitor.save())
            monitor = JobMonitor("n1", (), SubjectHistory())
            monitor.restore(decode(encode(saved)).tree)
        updates += monitor.update(message, node.table, None, ())
    assert len({update.finding.id for update in updates}) == 1
    changes = [update.change for update in updates]
    assert changes.count(FindingChange.OPENED) == 1
    assert changes.count(FindingChange.RESOLVED) == over
    assert monitor.any_open is not over
    first, last = updates[0].finding, [*updates, *monitor.finish(())][-1].finding
    assert last.first_observed_ns == first.first_observed_ns
    assert last.impact is not None
    assert last.impact.slowdown_percent == pytest.approx(20, abs=1)


def test_the_state_of_a_slow_job_is_small() -> None:
    monitor, _ = played(HeartbeatNode({JOB: lasting(20)}, 260))
    saved = SavedState(Position("n1", b"b" * 16, 1, 1), 1, monitor.save())
    assert len(encode(saved)) < 3072


def test_a_state_that_does_not_fit_changes_nothing() -> None:
    monitor, _ = played(HeartbeatNode({JOB: lasting(20)}, 230))
    tree = monitor.save()
    for key in ("watch", "states", "slowdowns", "related"):
        with pytest.raises(StateError):
            monitor.restore({**tree, key: "nothing"})
    with pytest.raises(StateError):
        monitor.restore({**tree, "states": {}})
    assert monitor.slow_subjects == {JOB}


def test_a_job_that_ends_while_it_is_slower_resolves_its_finding() -> None:
    node = HeartbeatNode({JOB: lasting(20), "/next": Job(0.7, 0.2, 0.02, seed=3)}, 300)
    alone = HeartbeatNode({"/next": Job(0.7, 0.2, 0.02, seed=3)}, 300)
    monitor, updates = JobMonitor("n1", (), SubjectHistory()), []
    for whole, rest in zip(node.slices(), alone.slices(), strict=True):
        message, table = (whole, node.table) if whole.sequence < 250 else (rest, alone.table)
        updates += monitor.update(message, table, None, ())
    assert [update.change for update in updates][-1] is FindingChange.RESOLVED
    assert updates[-1].finding.resolution is Resolution.ENDED
    assert not monitor.any_open


def test_a_job_that_is_slower_for_good_keeps_no_other_from_learning() -> None:
    jobs = {JOB: lasting(10, onset=150), "/next": Job(0.7, 0.2, 0.02, evaluates=0, seed=5)}
    whole = HeartbeatNode(jobs, 420)
    alone = HeartbeatNode({JOB: jobs[JOB]}, 420)
    monitor = JobMonitor("n1", (), SubjectHistory())
    for first, both in zip(alone.slices(), whole.slices(), strict=True):
        message, table = (first, alone.table) if first.sequence < 200 else (both, whole.table)
        monitor.update(message, table, None, ())
        if message.sequence == 330:
            assert monitor.step_times["/next"].readings
    assert monitor.slow_subjects == {JOB}


def test_an_old_slowdown_is_no_cost_of_a_later_finding() -> None:
    def later(second: int) -> Sequence[FindingUpdate]:
        return [FindingUpdate(FindingChange.OPENED, other(second))] if second == 300 else ()

    _, updates = played(HeartbeatNode({JOB: lasting(20)}, 330), others=later)
    (found,) = (update for _, update in updates if update.finding.id == "memory-1")
    assert found.finding.impact is None


@pytest.mark.parametrize("onset", [110, 140])
def test_a_slowdown_that_begins_while_its_job_is_learned_stays_open(onset: int) -> None:
    monitor, updates = played(HeartbeatNode({JOB: lasting(20, onset)}, onset + 130))
    changes = [update.change for _, update in updates]
    assert changes.count(FindingChange.OPENED) == 1
    assert FindingChange.RESOLVED not in changes
    (last,) = monitor.finish(())
    assert last.finding.impact is not None
    assert last.finding.impact.slowdown_percent == pytest.approx(20, abs=1.5)


def test_a_slowdown_refers_to_what_else_is_open() -> None:
    def earlier(second: int) -> Sequence[FindingUpdate]:
        return [FindingUpdate(FindingChange.OPENED, other(second))] if second == 50 else ()

    _, updates = played(HeartbeatNode({JOB: lasting(20)}, 230), others=earlier)
    opened = next(update for _, update in updates if update.finding.id != "memory-1")
    assert opened.finding.notes == ("open on this node at the same time: memory-1",)


def test_an_impact_in_a_row_is_what_a_report_shows() -> None:
    cost = Impact(JOB, 10.0, 9.0, 11.0, 495.0, 450.0, BEGIN_NS, 10, "cpu.subject.usage", 70)
    row = replace(other(0), impact=cost).to_dict()["impact"]
    assert row["slowdownPercent"] == "10.0"
    assert row["windowSeconds"] == 10
    assert row["usualMilliseconds"] == 450
