"""What moved with a slowdown, of the columns that stood out in the last seconds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from reveal_analyzer.derive.columns import ColumnPlan, column_plan
from reveal_analyzer.episodes.trace import ObservedSecond
from reveal_analyzer.heartbeat.findings import JobMonitor
from reveal_analyzer.heartbeat.recent_excess import RecentExcess
from reveal_analyzer.heartbeat.slowdown_findings import CAUSE_UNKNOWN
from reveal_analyzer.subjects.history import SubjectHistory
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.finding import Finding
from reveal_contract.metric import Kind, Subsystem
from reveal_contract.time_units import NS_PER_SECOND
from support.heartbeat_nodes import JOB, HeartbeatNode, Job

BEGIN_NS = 1_700_000_000 * NS_PER_SECOND
ONSET, END = 200, 270
PRESSURE = Channel("storage.pressure.some", "", Kind.COUNTER, 1e3)


def moved_in(seconds: Callable[[int], bool]) -> Finding:
    """Return the finding of a slowdown, with storage pressure in some seconds."""
    slowed = Job(0.45, 0.2, 0.02, slower=lambda second: 1.1 if second >= ONSET else 1.0)
    node = HeartbeatNode({JOB: slowed}, END, others=(PRESSURE,))
    columns = column_plan(node.table)
    index = columns.labels.index("storage.pressure.some__mean")
    monitor = JobMonitor("n1", (), SubjectHistory())
    updates = []
    for message in node.slices():
        second = observed(columns, message.start_ns)
        if seconds(message.sequence):
            second.excess[0, index] = second.weighted_excess[index] = 12.0
            second.values[index] = 4e8
        updates += monitor.update(message, node.table, second, ())
    return updates[0].finding


def test_the_changed_metric_of_the_onset_names_the_subsystem() -> None:
    opened = moved_in(lambda second: second >= ONSET)
    assert opened.subsystem is Subsystem.STORAGE
    assert "observed with it" in opened.claim
    assert opened.evidence[0].metric == "storage.pressure.some"


def test_what_ended_when_a_slowdown_began_does_not_explain_it() -> None:
    """After a fault a job may keep another step time; the fault is over."""
    found = moved_in(lambda second: ONSET - 20 <= second < ONSET)
    assert found.claim.endswith(CAUSE_UNKNOWN)
    assert found.evidence == ()


@pytest.mark.parametrize("since", [ONSET - 4, ONSET + 4])
def test_an_onset_is_known_to_some_seconds(since: int) -> None:
    assert "observed with it" in moved_in(lambda second: second >= since).claim


def test_a_shock_of_the_onset_may_explain_it() -> None:
    assert "observed with it" in moved_in(lambda second: second - ONSET in range(-1, 4)).claim


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
