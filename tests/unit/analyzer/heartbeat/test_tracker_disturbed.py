"""What a job does now and then: evaluations, checkpoints and stalls are no slowdown."""

from __future__ import annotations

from itertools import groupby

import pytest

from reveal_analyzer.heartbeat.reference import WindowReading
from reveal_analyzer.heartbeat.slowdown_state import SUSTAINED_S
from reveal_analyzer.heartbeat.tracker import StepTime
from support.heartbeat_nodes import FINE_HZ, TICK_HZ, Job
from support.tracked_job import follow


def longest_slow(beats: list[StepTime | None]) -> int:
    """For how many seconds in a row it read slower."""
    slow = [beat is not None and beat.slower for beat in beats]
    return max((len(list(group)) for is_slow, group in groupby(slow) if is_slow), default=0)


@pytest.mark.parametrize(
    ("job", "rate", "since", "until"),
    [
        # an evaluation and a checkpoint of 4 s in one window of 10 s
        (Job(1.03876, 0.6, 0.01466, evaluates=25, seed=2, saves=(60, 4)), FINE_HZ, 0, 200),
        # ... and in one of 60 s, with steps of three parts
        (Job(5.41432, 0.3, 0.01265, evaluates=40, seed=9, parts=3, saves=(60, 4)),
         TICK_HZ, 0, 490),
        # a checkpoint of 12 s
        (Job(7.12774, 0.3, 0.00542, evaluates=25, seed=16, parts=3, saves=(150, 12)),
         FINE_HZ, 200, 530),
        # an evaluation of 2 s
        (Job(0.30552, 0.6, 0.01104, evaluates=40, seed=23, parts=2, saves=(150, 12)),
         FINE_HZ, 400, 580),
        # steps that scatter by 5 %
        (Job(2.28215, 0.15, 0.049, evaluates=25, seed=6, saves=(60, 4)), TICK_HZ, 0, 530),
        # few steps in a minute
        (Job(5.17551, 0.3, 0.0221, evaluates=40, seed=5), FINE_HZ, 0, 400),
        # three steps repeat themselves nearly as exactly as one
        (Job(1.60710278, 0.3, 0.039015298, evaluates=25, seed=507567813, parts=3, saves=(60, 4)),
         FINE_HZ, 0, 450),
    ],
)  # fmt: skip
def test_what_a_job_does_now_and_then_is_no_slowdown(
    job: Job, rate: int, since: int, until: int
) -> None:
    beats = follow(job.clock(until, rate)[since * rate :], rate=rate)
    assert any(beat and beat.readings for beat in beats)
    assert longest_slow(beats) < SUSTAINED_S


@pytest.mark.parametrize("percent", [5, 20, 100])
@pytest.mark.parametrize("period", [1.04, 5.4])
def test_between_evaluations_and_checkpoints_a_slowdown_is_read(
    period: float, percent: int
) -> None:
    job = Job(
        period, 0.3, 0.012, evaluates=40, saves=(60, 4),
        slower=lambda second: 1 + percent / 100 * (second >= 240),
    )  # fmt: skip
    last = follow(job.clock(400))[-1]
    assert last is not None and last.slower
    assert last.readings[-1].percent == pytest.approx(percent, abs=2.5)


def step(*readings: tuple[int, float, float]) -> StepTime:
    return StepTime(
        1.0,
        1.0,
        "cpu",
        0.9,
        tuple(WindowReading(w, percent, 0.3, lv) for w, percent, lv in readings),
    )


def test_a_window_is_slower_once_the_next_longer_window_begins_to_be() -> None:
    assert not step((10, 5.0, 2.3), (30, -0.2, 1.5), (60, 0.0, 1.5)).slower
    assert step((10, 5.0, 2.3), (30, 1.0, 1.5), (60, 0.0, 1.5)).slower
    # the longest has none beside it
    assert step((60, 3.0, 2.0)).slower
