"""Jobs whose steps change: by any amount, early, out of range; and jobs that only seem to."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from reveal_analyzer.heartbeat.tracker import RhythmTracker, StepTime
from support.heartbeat_nodes import FINE_HZ, TICK_HZ, Job
from support.tracked_job import follow


def last_percent(beats: Sequence[StepTime | None]) -> float:
    """Return the last reading over 30 seconds."""
    last = beats[-1]
    assert last is not None
    return next(reading.percent for reading in last.readings if reading.window == 30)


@pytest.mark.parametrize(
    ("period", "percent"), [(0.45, 75), (1.0, 80), (1.0, 100), (0.45, 150), (0.7, 200), (2.0, 200)]
)
def test_a_slowdown_of_any_size_is_read_and_so_is_its_end(period: float, percent: float) -> None:
    job = Job(
        period, 0.3, 0.02, evaluates=0,
        slower=lambda second: 1 + percent / 100 * (200 <= second < 320),
    )  # fmt: skip
    beats = follow(job.clock(430, TICK_HZ), rate=TICK_HZ)
    baseline = job.mean_step(20, 180)
    read = beats[319]
    assert read is not None and read.slower
    window = read.readings[-1].window
    assert read.readings[-1].percent == pytest.approx(
        100 * (job.mean_step(320 - window, 320) / baseline - 1), abs=2.0 + percent / 50
    )
    assert beats[-1] is not None and beats[-1].readings
    assert abs(beats[-1].readings[-1].percent) < 2


@pytest.mark.parametrize("onset", [60, 80, 110, 140])
@pytest.mark.parametrize("percent", [10, 20, 100])
def test_a_job_that_becomes_slower_while_it_is_learned_keeps_its_reference(
    onset: int, percent: int
) -> None:
    job = Job(
        1.0, 0.4, 0.02, evaluates=0, slower=lambda second: 1 + percent / 100 * (second >= onset)
    )
    beats = follow(job.clock(onset + 150, TICK_HZ), rate=TICK_HZ)
    late = beats[onset + 60 :]
    assert sum(beat is not None and beat.slower for beat in late) > 0.95 * len(late)
    assert beats[-1] is not None
    assert beats[-1].reference == pytest.approx(job.mean_step(0, onset), rel=0.01)


@pytest.mark.parametrize(
    ("period", "parts", "percent"), [(6.0, 1, 30), (5.0, 1, 50), (4.4, 1, 70), (5.0, 4, 20)]
)
def test_steps_that_outgrow_the_range_or_consist_of_parts_stay_slower(
    period: float, parts: int, percent: float
) -> None:
    job = Job(
        period, 0.3, 0.01, evaluates=0, parts=parts,
        slower=lambda second: 1 + percent / 100 * (second >= 260),
    )  # fmt: skip
    beats = follow(job.clock(480))
    late = [beat for beat in beats[350:] if beat is not None and beat.readings]
    assert len(late) > 0.9 * len(beats[350:])
    assert all(beat.slower for beat in late)
    assert late[-1].readings[-1].percent == pytest.approx(percent, abs=3)


@pytest.mark.parametrize(
    ("period", "duty", "percent", "pause", "evaluates", "seed"),
    [
        (3.1, 0.6, 20, 45, 0, 38),
        (1.59, 0.3, 75, 45, 40, 86),
        (2.26, 0.15, 200, 45, 0, 53),
        (5.19, 0.3, 75, 45, 25, 14),
        (5.26, 0.15, 200, 30, 25, 26),
    ],
)
def test_a_run_that_begins_again_with_longer_steps_keeps_its_reference(
    period: float, duty: float, percent: float, pause: int, evaluates: int, seed: int
) -> None:
    stop = 200
    job = Job(
        period, duty, 0.01, evaluates=evaluates, seed=seed, pause=(stop, pause),
        slower=lambda second: 1 + percent / 100 * (second >= stop),
    )  # fmt: skip
    last = follow(job.clock(stop + pause + 150))[-1]
    assert last is not None and last.slower
    assert last.reference == pytest.approx(job.mean_step(5, stop), rel=0.01)
    assert last.readings[-1].percent == pytest.approx(percent, abs=2 + percent / 50)


def test_a_pause_of_a_job_holds_no_rhythm() -> None:
    job = Job(1.6, 0.3, 0.01, evaluates=0, pause=(100, 60))
    tracker, clock = RhythmTracker(), job.clock(220)
    beats = follow(clock, tracker)
    assert not any(beats[145:190])
    assert beats[-1] is not None
    assert beats[-1].reference == pytest.approx(1.6, rel=0.01)


@pytest.mark.parametrize("since", [10, 11, 12])
def test_a_young_job_whose_steps_become_long_was_not_read_wrongly(since: int) -> None:
    job = Job(5.2273, 0.3, 0.0182, evaluates=0, seed=5, slower=lambda s: 1 + 0.7 * (s >= 150))
    last = follow(job.clock(300)[since * FINE_HZ :])[-1]
    assert last is not None and last.slower
    assert last.reference == pytest.approx(job.mean_step(5, 150), rel=0.015)


def test_a_step_time_that_is_accepted_is_the_reference() -> None:
    job = Job(0.45, 0.2, 0.03, slower=lambda second: 1 + 0.3 * (second >= 200))
    tracker = RhythmTracker()
    follow(job.clock(280), tracker)
    tracker.accept()
    beats = follow(job.clock(400)[280 * FINE_HZ :], tracker)
    assert beats[-1] is not None
    assert abs(last_percent(beats)) < 1
    assert beats[-1].reference == pytest.approx(1.3 * 0.45, rel=0.01)


def test_a_shorter_step_that_lasts_is_the_reference() -> None:
    job = Job(0.45, 0.2, 0.03, slower=lambda second: 1 - 0.2 * (second >= 200))
    beats = follow(job.clock(200 + 600 + 60, TICK_HZ), rate=TICK_HZ)
    assert last_percent(beats[:700]) < -15
    assert abs(last_percent(beats)) < 1


@pytest.mark.parametrize(
    "job",
    [
        Job(3.128, 0.15, 0.0363, evaluates=40, seed=4),
        Job(5.206, 0.6, 0.0433, seed=16),
        Job(3.123, 0.6, 0.0323, parts=3, seed=17),
        Job(3.122, 0.15, 0.0375, evaluates=40, parts=3, seed=24),
        Job(1.6, 0.4, 0.03, evaluates=40),
    ],
)
def test_a_job_whose_steps_scatter_is_not_slower(job: Job) -> None:
    slow = [beat is not None and beat.slower for beat in follow(job.clock(600))]
    assert not any(all(slow[index : index + 5]) for index in range(len(slow)))


@pytest.mark.parametrize(
    ("rate", "job"),
    [
        (TICK_HZ, Job(5.27, 0.6, 0.0432, evaluates=40, parts=3, seed=27, saves=(60, 4))),
        (FINE_HZ, Job(6.919, 0.15, 0.0487, evaluates=0, parts=2, seed=29, saves=(60, 4))),
        (TICK_HZ, Job(10.117, 0.15, 0.0452, evaluates=25, parts=2, seed=15)),
        (TICK_HZ, Job(9.786, 0.15, 0.0165, evaluates=40, parts=2, seed=24, saves=(60, 4))),
    ],
)
def test_a_multiple_of_a_part_is_no_slower_step(rate: int, job: Job) -> None:
    slow = [beat is not None and beat.slower for beat in follow(job.clock(600, rate), rate=rate)]
    assert not any(all(slow[index : index + 5]) for index in range(len(slow)))


@pytest.mark.parametrize(
    ("period", "percent", "lost"), [(0.13, 40, 8), (1.04, 70, 8), (1.6, 200, 15)]
)
def test_a_gap_during_the_onset_of_a_young_job_costs_no_reference(
    period: float, percent: float, lost: int
) -> None:
    onset = 100
    job = Job(period, 0.3, 0.015, evaluates=0, slower=lambda s: 1 + percent / 100 * (s >= onset))
    tracker, clock = RhythmTracker(), job.clock(onset + 150)
    follow(clock[: onset * FINE_HZ], tracker)
    tracker.skip(lost)
    beats = follow(clock[(onset + lost) * FINE_HZ :], tracker)
    last = beats[-1]
    assert last is not None and last.slower
    assert last.readings[-1].percent == pytest.approx(percent, abs=3)


def test_short_bursts_that_the_sampling_aliases_are_no_part_of_a_whole_step() -> None:
    draw = np.random.default_rng(1)
    length = 1.03 * draw.normal(1, 0.002, 190)
    begin = np.concatenate([[0], np.cumsum(length)[:-1]])
    work = 0.03 * draw.normal(1, 0.03, len(begin)).clip(0.3)
    edges = np.ravel(np.column_stack([begin, begin + work]))
    used = np.cumsum(np.ravel(np.column_stack([np.zeros(len(begin)), work])))
    clock = np.diff(np.interp(np.arange(170 * TICK_HZ + 1) / TICK_HZ, edges, used))
    beats = follow(clock, rate=TICK_HZ)
    assert beats[-1] is not None and beats[-1].readings
    assert beats[-1].period == pytest.approx(1.03, rel=0.01)


@pytest.mark.parametrize("period", [0.3, 1.5, 2.5])
def test_work_that_a_timer_begins_is_no_job(period: float) -> None:
    draw = np.random.default_rng(1)
    begin = np.arange(0, 245, period)
    work = 0.1 * period * draw.normal(1, 0.2, len(begin)).clip(0.2)
    edges = np.ravel(np.column_stack([begin, begin + work]))
    used = np.cumsum(np.ravel(np.column_stack([np.zeros(len(begin)), work])))
    tracker = RhythmTracker()
    clock = np.diff(np.interp(np.arange(240 * TICK_HZ + 1) / TICK_HZ, edges, used))
    beats = follow(clock, tracker, rate=TICK_HZ)
    assert beats[-1] is None
    assert "timer" in tracker.reason
