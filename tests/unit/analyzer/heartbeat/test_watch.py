"""The jobs of a node: which are tracked, borrowed host counters, and gaps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from reveal_analyzer.heartbeat.job_selection import MOST_JOBS
from reveal_analyzer.heartbeat.series import FINE, USAGE, CounterSeries, plan
from reveal_analyzer.heartbeat.watch import StepWatch
from reveal_analyzer.state.tree import StateError
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.metric import Kind, Lane
from reveal_contract.wire import Message
from support.heartbeat_nodes import JOB, HeartbeatNode, Job

NEIGHBOUR = "/eval"
DISK = Channel("storage.disk.read_bytes", "sda", Kind.COUNTER, 512.0)
READ = Channel("storage.subject.read_bytes", JOB, Kind.COUNTER, 512.0, Lane.SLOW)


def reading(node: HeartbeatNode, job_reads: int, disk_reads: int) -> tuple[Message, ChannelTable]:
    """Return the first slice with the reads of the job and its disk."""
    table = ChannelTable(node.table.fast, (READ,))
    message = next(iter(node.slices(lambda _: {"storage.disk.read_bytes{sda}": disk_reads / 10})))
    slow, missing = np.array([job_reads], np.int64), np.zeros(1, bool)
    return replace(message, table=table.key, slow=slow, slow_missing=missing), table


def test_two_jobs_are_read_side_by_side() -> None:
    node = HeartbeatNode({JOB: Job(0.45, 0.2), NEIGHBOUR: Job(1.57, 0.2, seed=1)}, 190)
    watch = StepWatch()
    for message in node.slices():
        step_times = watch.update(message, node.table)
    periods = {name: step.period for name, step in step_times.items()}
    assert periods == pytest.approx({JOB: 0.45, NEIGHBOUR: 1.57}, rel=0.02)
    assert step_times[JOB].channel == FINE
    assert all("steps of" in line for line in watch.lines())


def test_a_channel_that_is_left_out_is_never_watched() -> None:
    node = HeartbeatNode({JOB: Job(0.45, 0.2)}, 60)
    watch = StepWatch(leave_out=lambda channel: channel.instance.startswith(JOB))
    for message in node.slices():
        assert watch.update(message, node.table) == {}
    assert watch.lines() == ()


def test_idle_subjects_cost_nothing_and_report_nothing() -> None:
    node = HeartbeatNode({"/idle": Job(0.5, 0.01, evaluates=0)}, 5)
    watch = StepWatch()
    for message in node.slices():
        watch.update(message, node.table)
    assert watch.lines() == ()


def test_the_busiest_jobs_are_tracked_up_to_a_limit() -> None:
    jobs = {
        f"/job{number}": Job(0.5, 0.1 + number / 50, 0.0, evaluates=0)
        for number in range(MOST_JOBS + 4)
    }
    node = HeartbeatNode(jobs, 3, fine=False)
    watch = StepWatch()
    for message in node.slices():
        watch.update(message, node.table)
    assert set(watch.subjects) == {f"/job{number}" for number in range(4, MOST_JOBS + 4)}


def test_a_job_that_starts_on_a_full_node_is_tracked_and_who_is_not_is_stated() -> None:
    subjects = {
        f"/subject{number:02}": Job(0.5, 0.07 + number / 500, 0.0, evaluates=0)
        for number in range(MOST_JOBS)
    }
    full = HeartbeatNode(subjects, 60, fine=False)
    both = HeartbeatNode({**subjects, JOB: Job(0.45, 0.9)}, 60, fine=False)
    watch = StepWatch()
    for alone, message in zip(full.slices(), both.slices(), strict=True):
        late = message.sequence >= 30
        watch.update(message if late else alone, both.table if late else full.table)
    assert JOB in watch.subjects
    assert len(watch.subjects) == MOST_JOBS
    (line,) = (line for line in watch.lines() if "/subject00" in line)
    assert line == "/subject00: no heartbeat: only 16 subjects of a node are tracked"


def test_the_reason_for_no_heartbeat_is_reported() -> None:
    node = HeartbeatNode({JOB: Job(0.45, 0.2)}, 10)
    watch = StepWatch()
    for message in node.slices():
        watch.update(message, node.table)
    assert watch.lines() == (f"{JOB}: no heartbeat: it has been watched too briefly",)


@pytest.mark.parametrize("lost", [1, 2, 3, 8, 30, 59])
def test_a_gap_in_the_slices_is_bridged(lost: int) -> None:
    node = HeartbeatNode({JOB: Job(0.45, 0.2, 0.02)}, 180 + lost)
    watch = StepWatch()
    for message in node.slices():
        if not 165 <= message.sequence < 165 + lost:
            step_times = watch.update(message, node.table)
    assert step_times[JOB].readings
    assert abs(step_times[JOB].readings[0].percent) < 3


@pytest.mark.parametrize(("lost", "kept"), [(200, True), (301, False)])
def test_a_reference_outlasts_minutes_without_slices_and_no_more(lost: int, kept: bool) -> None:
    job = Job(0.45, 0.2, 0.02, slower=lambda second: 1 + 0.2 * (second >= 170))
    node = HeartbeatNode({JOB: job}, 170 + lost + 55)
    watch = StepWatch()
    for message in node.slices():
        if not 170 <= message.sequence < 170 + lost:
            step_times = watch.update(message, node.table)
    assert step_times[JOB].slower is kept


def test_a_job_learns_only_while_it_may() -> None:
    node = HeartbeatNode({JOB: Job(0.45, 0.2), NEIGHBOUR: Job(0.7, 0.2, seed=1)}, 130)
    watch = StepWatch()
    for message in node.slices():
        step_times = watch.update(message, node.table, lambda subject: subject != JOB)
    assert step_times[NEIGHBOUR].readings
    assert not step_times[JOB].readings


def test_a_watch_that_restarts_goes_on_within_seconds() -> None:
    node = HeartbeatNode({JOB: Job(0.45, 0.2, 0.02)}, 200)
    watch = StepWatch()
    for message in node.slices():
        if message.sequence == 185:
            tree, watch = watch.save(), StepWatch()
            watch.restore(tree)
        step_times = watch.update(message, node.table)
    assert step_times[JOB].readings


def test_a_watch_restored_on_another_boot_starts_again() -> None:
    node = HeartbeatNode({JOB: Job(0.45, 0.2, 0.02)}, 186)
    watch = StepWatch()
    for message in node.slices():
        if message.sequence == 185:
            tree, watch = watch.save(), StepWatch()
            watch.restore(tree)
        boot = b"c" * 16 if message.sequence == 185 else message.boot
        watch.update(replace(message, boot=boot), node.table)
    assert all("watched too briefly" in line for line in watch.lines())


def test_a_state_that_does_not_fit_changes_nothing() -> None:
    node = HeartbeatNode({JOB: Job(0.45, 0.2, 0.02)}, 60)
    watch = StepWatch()
    for message in node.slices():
        watch.update(message, node.table)
    tree = watch.save()
    lines = watch.lines()
    for damaged in (
        {**tree, "boot": "x"},
        {**tree, "jobs": 4},
        {**tree, "jobs": {JOB: {"rhythm": {"period": 0.4}, "busy": 1.0}}},
        {**tree, "jobs": {f"/{n}": {} for n in range(MOST_JOBS + 1)}},
    ):
        with pytest.raises(StateError):
            watch.restore(damaged)  # type: ignore[arg-type]
    assert watch.lines() == lines


def test_another_boot_restarts_the_tracking() -> None:
    node = HeartbeatNode({JOB: Job(0.45, 0.2, 0.02)}, 180)
    watch = StepWatch()
    for message in node.slices():
        boot = b"c" * 16 if message.sequence == 179 else message.boot
        step_times = watch.update(replace(message, boot=boot), node.table)
    assert step_times == {}


def test_columns_that_move_in_the_table_are_followed() -> None:
    node = HeartbeatNode({JOB: Job(0.45, 0.2, 0.02)}, 180)
    turned = ChannelTable(tuple(reversed(node.table.fast)), ())
    watch = StepWatch()
    for message in node.slices():
        if message.sequence < 175:
            step_times = watch.update(message, node.table)
        else:
            fast = np.ascontiguousarray(message.fast[:, ::-1])
            step_times = watch.update(replace(message, fast=fast, table=turned.key), turned)
    assert step_times[JOB].readings
    assert abs(step_times[JOB].readings[0].percent) < 3


def test_fine_samples_stand_in_the_order_of_time() -> None:
    node = HeartbeatNode({JOB: Job(0.45, 0.2)}, 1)
    message = next(iter(node.slices()))
    taken = CounterSeries().second(message, plan(node.table))[JOB]
    expected = np.round(Job(0.45, 0.2).clock(1) * 1e6)
    assert np.array_equal(taken[FINE], expected)
    assert USAGE not in taken


def test_a_counter_of_the_host_is_lent_to_whom_nearly_all_of_it_is() -> None:
    node = HeartbeatNode({JOB: Job(0.45, 0.2)}, 1, others=(DISK,))
    whole, table = reading(node, 1000, 1000)
    half, _ = reading(node, 500, 1000)
    where = plan(table)
    assert DISK.metric in CounterSeries().second(whole, where)[JOB]
    assert DISK.metric not in CounterSeries().second(half, where)[JOB]


def test_what_was_lent_is_kept_for_a_while_and_then_taken_back() -> None:
    node = HeartbeatNode({JOB: Job(0.45, 0.2)}, 1, others=(DISK,))
    whole, table = reading(node, 1000, 1000)
    little, _ = reading(node, 0, 1000)
    series, where = CounterSeries(), plan(table)
    lent = [
        DISK.metric in series.second(message, where)[JOB]
        for message in [whole] * 60 + [little] * 60
    ]
    assert all(lent[:65])
    assert not lent[-1]


def test_a_counter_that_leaves_the_table_is_lent_no_more() -> None:
    node = HeartbeatNode({JOB: Job(0.45, 0.2)}, 1, others=(DISK,))
    whole, table = reading(node, 1000, 1000)
    bare = ChannelTable(tuple(channel for channel in table.fast if channel != DISK), table.slow)
    without = replace(whole, fast=whole.fast[:, :-1], fast_missing=whole.fast_missing[:, :-1])
    series = CounterSeries()
    assert DISK.metric in series.second(whole, plan(table))[JOB]
    assert DISK.metric not in series.second(without, plan(bare))[JOB]


def test_what_was_not_read_is_missing_and_not_zero() -> None:
    node = HeartbeatNode({JOB: Job(0.45, 0.2)}, 1)
    message = next(iter(node.slices()))
    message.fast_missing[3, 1:] = True
    taken = CounterSeries().second(message, plan(node.table))[JOB][FINE]
    assert np.isnan(taken[15:20]).all()
    assert not np.isnan(taken[:15]).any()


def test_the_absent_part_of_a_short_slice_is_missing() -> None:
    node = HeartbeatNode({JOB: Job(0.45, 0.2)}, 1)
    message = next(iter(node.slices()))
    short = replace(message, fast=message.fast[:7], fast_missing=message.fast_missing[:7])
    taken = CounterSeries().second(short, plan(node.table))[JOB][FINE]
    assert taken.size == 50
    assert np.isnan(taken[35:]).all()
    assert not np.isnan(taken[:35]).any()
