"""Reports of large slowdowns, and of changes that may be meant."""

from __future__ import annotations

import pytest

from reveal_analyzer.heartbeat.findings import JobMonitor
from reveal_analyzer.subjects.history import SubjectHistory
from reveal_contract.finding import FindingChange, FindingUpdate, Resolution, Severity
from reveal_contract.time_units import NS_PER_SECOND
from support.heartbeat_nodes import JOB, HeartbeatNode, Job

BEGIN_NS = 1_700_000_000 * NS_PER_SECOND
ONSET = 200


def played(node: HeartbeatNode) -> list[tuple[int, FindingUpdate]]:
    """Return the updates of a node's slices by second."""
    monitor = JobMonitor("n1", (), SubjectHistory())
    return [
        (message.sequence, update)
        for message in node.slices()
        for update in monitor.update(message, node.table, None, ())
    ]


@pytest.mark.parametrize("percent", [75, 100, 200])
def test_a_slowdown_of_any_size_is_a_finding_that_ends_with_it(percent: float) -> None:
    job = Job(
        1.0, 0.4, 0.02, evaluates=0,
        slower=lambda second: 1 + percent / 100 * (ONSET <= second < ONSET + 150),
    )  # fmt: skip
    updates = played(HeartbeatNode({JOB: job}, ONSET + 260, fine=False))
    changes = [update.change for _, update in updates]
    assert (changes[0], changes[-1]) == (FindingChange.OPENED, FindingChange.RESOLVED)
    assert set(changes[1:-1]) <= {FindingChange.CHANGED}
    last = updates[-1][1].finding
    assert last.impact is not None
    assert last.impact.slowdown_percent == pytest.approx(percent, abs=2 + percent / 50)
    assert (last.impact.since_ns - BEGIN_NS) / NS_PER_SECOND == pytest.approx(ONSET, abs=10)
    assert last.severity is Severity.CRITICAL
    assert last.resolution is Resolution.ENDED


def test_another_run_with_longer_steps_is_reported_once_as_a_change() -> None:
    """It is never Critical, and its step time becomes the reference."""
    job = Job(
        1.0, 0.4, 0.02, evaluates=0, pause=(ONSET, 15),
        slower=lambda second: 1 + 0.35 * (second >= ONSET) + 0.3 * (second >= 1000),
    )  # fmt: skip
    updates = played(HeartbeatNode({JOB: job}, 1060, fine=False))
    first = [update.finding for second, update in updates if second < 1000]
    assert len({finding.id for finding in first}) == 1
    assert {finding.severity for finding in first} == {Severity.MEDIUM}
    last = first[-1]
    assert last.resolution is Resolution.ACCEPTED
    assert any("pause" in note for note in last.notes)
    assert any("baseline from now on" in note for note in last.notes)
    assert last.impact is not None
    assert last.impact.slowdown_percent == pytest.approx(35, abs=2)
    assert (last.impact.since_ns - BEGIN_NS) / NS_PER_SECOND == pytest.approx(ONSET + 8, abs=10)
    later = [update.finding for second, update in updates if second >= 1000]
    assert later[-1].impact is not None
    assert later[-1].impact.slowdown_percent == pytest.approx(100 * 0.3 / 1.35, abs=2)


def test_a_slowdown_without_a_pause_stays_critical_for_longer() -> None:
    updates = played(
        HeartbeatNode(
            {JOB: Job(0.45, 0.2, 0.02, slower=lambda second: 1 + 0.35 * (second >= ONSET))},
            ONSET + 700,
            fine=False,
        )
    )
    assert {update.finding.severity for _, update in updates} == {Severity.CRITICAL}
    assert FindingChange.RESOLVED not in {update.change for _, update in updates}
