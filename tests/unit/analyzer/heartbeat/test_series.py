"""Increments of busy subjects: what was not read is as before, not 0."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from reveal_analyzer.heartbeat.series import FINE, USAGE, CounterSeries, plan
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.metric import Kind, Lane
from reveal_contract.wire import Message

JOB = "/train"
TABLE = ChannelTable(
    (
        Channel(USAGE, JOB, Kind.COUNTER, 1.0),
        Channel("storage.disk.read_bytes", "sda", Kind.COUNTER, 1.0),
    ),
    (Channel("storage.subject.read_bytes", JOB, Kind.COUNTER, 1.0, Lane.SLOW),),
)
DISK = "storage.disk.read_bytes"


def second(usage: float = 0.5, disk: int = 1000, own: int = 1000) -> Message:
    """Return a slice with CPUs used and bytes read of disk and job in this second."""
    ticks = np.array([[round(usage * 1e8), disk // 10]] * 10)
    return Message(
        "n1", bytes(16), 1, 10**18, 100_000, TABLE.key, ticks, np.array([own]),
        np.zeros(ticks.shape, np.bool_), np.zeros(1, np.bool_),
    )  # fmt: skip


def unread(message: Message, fast: int | None = None, ticks: int = 10) -> Message:
    """Return the slice without a fast channel in its first ticks, or else without the slow one."""
    missing = message.fast_missing.copy()
    if fast is None:
        return replace(message, slow_missing=np.ones(1, np.bool_))
    missing[:ticks, fast] = True
    return replace(message, fast_missing=missing)


def test_analyzers_are_no_jobs() -> None:
    """Each second they do what arrived in it, so that their period is that of the collectors."""
    pods = ["reveal-system/reveal-analyzer-gpu-nodes-5d6f-x2x", "ml/train-0"]
    table = ChannelTable(tuple(Channel(USAGE, pod, Kind.COUNTER, 1.0) for pod in pods), ())
    assert plan(table).subjects == ("ml/train-0",)


def test_a_job_whose_clock_is_not_read_stays_as_busy_as_it_was() -> None:
    series, where = CounterSeries(), plan(TABLE)
    series.second(second(), where)
    assert series.usage(JOB) == pytest.approx(0.5)
    for _ in range(600):
        (found,) = series.second(unread(second(), 0), where).values()
    assert np.isnan(found[USAGE]).all()
    assert series.usage(JOB) == pytest.approx(0.5)


def test_a_job_whose_fine_clock_is_not_read_has_that_of_the_ticks() -> None:
    """The collector does not read the fine clock of an idle subject, but keeps its columns."""
    fine = tuple(Channel(FINE, f"{JOB}#{step}", Kind.GAUGE, 1.0) for step in range(1, 6))
    where = plan(ChannelTable((*TABLE.fast, *fine), TABLE.slow))
    message = second()
    ticks = np.hstack([message.fast, np.full((10, 5), 7)])
    read = replace(message, fast=ticks, fast_missing=np.zeros(ticks.shape, np.bool_))
    series = CounterSeries()
    assert series.second(read, where)[JOB].keys() >= {FINE}
    read.fast_missing[:, 2:] = True
    (found,) = series.second(read, where).values()
    assert found[USAGE].tolist() == [5e7] * 10
    assert FINE not in found


def test_ticks_that_were_not_read_make_a_job_no_idler() -> None:
    series, where = CounterSeries(), plan(TABLE)
    for _ in range(300):
        series.second(unread(second(), 0, ticks=6), where)
    assert series.usage(JOB) == pytest.approx(0.5)


def test_a_job_of_which_nothing_was_read_is_not_watched() -> None:
    series, where = CounterSeries(), plan(TABLE)
    assert series.second(unread(second(), 0), where) == {}


@pytest.mark.parametrize("lost", [None, 1], ids=["of the job", "of the host"])
def test_reads_that_were_not_counted_change_no_assignment(lost: int | None) -> None:
    """The job does half of the reads, which is too little for the disk's counter to be its own."""
    series, where = CounterSeries(), plan(TABLE)
    for _ in range(240):
        assert DISK not in series.second(second(own=500), where)[JOB]
    for _ in range(120):
        assert DISK not in series.second(unread(second(own=500), lost), where)[JOB]
    whole = CounterSeries()
    for _ in range(240):
        assert DISK in whole.second(second(), where)[JOB]
    for _ in range(120):
        assert DISK in whole.second(unread(second(), lost), where)[JOB]
