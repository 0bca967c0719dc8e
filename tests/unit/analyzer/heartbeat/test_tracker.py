"""A tracked job: its measured and simulated slowdown, and no reading without a rhythm."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from reveal_analyzer.heartbeat.acquisition import NO_RHYTHM, RhythmSearch
from reveal_analyzer.heartbeat.ring import RingBuffer
from reveal_analyzer.heartbeat.tracker import UNREAD, RhythmTracker, StepTime
from reveal_analyzer.state.codec import Position, SavedState, encode
from support.heartbeat_nodes import FINE_HZ, TICK_HZ, Job
from support.property_tests import examples
from support.tracked_job import CLOCK, follow

LEARNED = 170


def slowed(percent: float, begin: float, end: float) -> Job:
    return Job(0.45, 0.2, 0.03, slower=lambda second: 1 + percent / 100 * (begin <= second < end))


def percent(beat: StepTime | None, window: int) -> float:
    assert beat is not None
    return next(reading.percent for reading in beat.readings if reading.window == window)


@pytest.mark.parametrize("period", [0.128, 0.25, 0.45, 1.57, 2.2])
def test_a_healthy_job_is_locked_within_forty_seconds_and_keeps_its_step(period: float) -> None:
    job = Job(period, 0.3, 0.03)
    beats = follow(job.clock(300))
    assert next(index for index, beat in enumerate(beats) if beat) < 40
    read = [reading for beat in beats[LEARNED:] if beat for reading in beat.readings]
    assert len(read) > 120
    slow = [beat is not None and beat.slower for beat in beats]
    assert not any(all(slow[index : index + 5]) for index in range(len(slow)))
    of_thirty = [abs(reading.percent) for reading in read if reading.window >= 30]
    assert np.percentile(of_thirty, 90) < 1.5


@pytest.mark.parametrize("cost", [6.0, 10.0, 30.0])
def test_a_slowdown_is_read_to_a_point_after_thirty_seconds(cost: float) -> None:
    job = slowed(cost, 200, 262)
    beats = follow(job.clock(262))
    baseline = job.mean_step(20, 150)
    assert percent(beats[-1], 30) == pytest.approx(
        100 * (job.mean_step(232, 262) / baseline - 1), abs=1.0
    )
    assert percent(beats[-1], 10) == pytest.approx(
        100 * (job.mean_step(252, 262) / baseline - 1), abs=2.0
    )
    assert beats[-1] is not None and beats[-1].slower


def test_a_slowdown_of_three_percent_is_detected_in_a_minute() -> None:
    beats = follow(slowed(3, 200, 262).clock(262))
    assert any(beat is not None and beat.slower for beat in beats[205:])


def test_a_long_step_is_tracked_by_its_autocorrelation() -> None:
    job = Job(5.5, 0.1, 0.01, slower=lambda second: 1 + 0.1 * (second >= 240))
    beats = follow(job.clock(312))
    baseline = job.mean_step(20, 180)
    assert percent(beats[-1], 60) == pytest.approx(
        100 * (job.mean_step(252, 312) / baseline - 1), abs=2.0
    )


def test_what_is_over_is_not_called_slower_by_a_longer_window() -> None:
    beats = follow(slowed(10, 200, 262).clock(285))
    assert percent(beats[-1], 60) > 3
    assert beats[-1] is not None and not beats[-1].slower


def test_a_job_that_gains_is_below_zero_and_never_slower() -> None:
    beats = follow(slowed(-8, 200, 262).clock(262))
    assert percent(beats[-1], 30) < -5
    assert not any(beat.slower for beat in beats if beat)


@pytest.mark.parametrize(
    ("job", "reason"),
    [
        (Job(0.03, 0.5, 0.0), "alias"),
        (Job(0.43, 0.4, 0.3), ""),
        (Job(0.2, 0.3, 0.003, evaluates=0), "timer"),
    ],
)
def test_without_a_reliable_rhythm_nothing_is_read(job: Job, reason: str) -> None:
    tracker = RhythmTracker()
    beats = follow(job.clock(260), tracker)
    assert not any(beat.readings for beat in beats if beat)
    assert reason in tracker.reason
    assert tracker.reason


def test_a_server_of_random_requests_is_never_read() -> None:
    counted = np.random.default_rng(4).poisson(3, 300 * FINE_HZ) * 2e-3
    tracker = RhythmTracker()
    assert not any(beat.readings for beat in follow(counted, tracker) if beat)
    assert tracker.reason


def test_ten_ticks_a_second_are_enough_for_slow_steps_that_swing() -> None:
    job = Job(1.57, 0.15, 0.03)
    beats = follow(job.clock(200, TICK_HZ), rate=TICK_HZ)
    assert beats[-1] is not None and beats[-1].readings


def test_a_job_that_ends_is_lost_and_not_slowed() -> None:
    clock = Job(0.45, 0.2, 0.03).clock(260)
    clock[200 * FINE_HZ :] = np.nan
    tracker = RhythmTracker()
    beats = follow(clock, tracker)
    assert beats[-1] is None
    assert not any(beat.slower for beat in beats if beat)
    assert tracker.reason == UNREAD


def test_a_rhythm_that_changes_beyond_recognition_is_lost() -> None:
    tracker = RhythmTracker()
    first = Job(0.45, 0.2, 0.03).clock(200)
    beats = follow(np.concatenate([first, Job(0.13, 0.2, 0.03).clock(30)]), tracker)
    assert not any(beat.slower for beat in beats[:200] if beat)
    assert beats[-1] is None or not beats[-1].readings


def test_a_pause_is_noted_and_a_gap_is_none() -> None:
    job = Job(0.45, 0.2, 0.02, pause=(200, 15))
    clock = job.clock(300)
    beats = follow(clock)
    assert beats[190] is not None and beats[190].resumed is None
    assert beats[-1] is not None and beats[-1].resumed == pytest.approx(300 - 215, abs=2)
    clock[200 * FINE_HZ : 215 * FINE_HZ] = np.nan
    beats = follow(clock)
    assert beats[-1] is not None and beats[-1].resumed is None


def test_a_rhythm_that_is_back_soon_meets_its_reference_again() -> None:
    clock = slowed(12, 200, 900).clock(330)
    clock[190 * FINE_HZ : 205 * FINE_HZ] = np.nan  # lost while it becomes slower
    beats = follow(clock)
    assert beats[207] is None
    assert percent(beats[-1], 30) == pytest.approx(12, abs=2)


@pytest.mark.parametrize("lost", [3, 4, 10, 30, 55])
def test_a_gap_of_less_than_a_minute_costs_neither_rhythm_nor_reference(lost: int) -> None:
    """The job becomes slower in the gap."""
    clock = slowed(12, 200 + lost / 2, 900).clock(200 + lost + 35)
    tracker = RhythmTracker()
    follow(clock[: 200 * FINE_HZ], tracker)
    tracker.skip(lost)
    assert tracker.is_unread
    after = follow(clock[(200 + lost) * FINE_HZ :], tracker)
    assert all(beat is None for beat in after[:9])
    assert percent(after[11], 10) == pytest.approx(12, abs=3)
    assert percent(after[-1], 30) == pytest.approx(12, abs=1.5)
    assert not tracker.is_unread


@pytest.mark.parametrize("period", [1.57, 2.2, 5.5])
def test_a_long_step_needs_a_longer_window_after_a_gap(period: float) -> None:
    window = 30 if period < 3 else 60
    clock = Job(period, 0.1, 0.01, evaluates=0).clock(300 + 20 + window + 5)
    tracker = RhythmTracker()
    before = follow(clock[: 300 * FINE_HZ], tracker)
    assert before[-1] is not None and before[-1].readings
    tracker.skip(20)
    for second in clock[320 * FINE_HZ :].reshape(-1, FINE_HZ):
        beat = tracker.update({CLOCK: second})
        assert beat is not None or tracker.is_unread
    assert abs(percent(beat, window)) < 2


def test_a_gap_of_more_than_a_minute_costs_the_rhythm_and_keeps_the_reference() -> None:
    clock = slowed(12, 200, 900).clock(330)
    tracker = RhythmTracker()
    follow(clock[: 200 * FINE_HZ], tracker)
    tracker.skip(90)
    assert not tracker.is_unread
    after = follow(clock[290 * FINE_HZ :], tracker)
    assert after[20] is None
    follow(slowed(12, 0, 900).clock(20), tracker)
    after = follow(slowed(12, 0, 900).clock(60), tracker)
    assert percent(after[-1], 30) == pytest.approx(12, abs=2)


def test_a_counter_that_is_away_for_some_seconds_of_each_minute_is_read_in_between() -> None:
    job = Job(0.45, 0.2, 0.03, evaluates=0, slower=lambda second: 1 + 0.12 * (second >= 200))
    clock = job.clock(420)
    for begin in range(205, 420, 40):
        clock[begin * FINE_HZ : (begin + 7) * FINE_HZ] = np.nan
    beats = follow(clock)[215:]
    assert sum(beat is not None for beat in beats) > 0.5 * len(beats)
    assert {beat.slower for beat in beats if beat and beat.readings} == {True}


def test_a_pause_right_after_a_gap_ends_no_rhythm() -> None:
    clock = Job(0.45, 0.2, 0.03).clock(260)
    clock[210 * FINE_HZ : 225 * FINE_HZ] = 0.0
    tracker = RhythmTracker()
    follow(clock[: 200 * FINE_HZ], tracker)
    tracker.skip(10)
    after = follow(clock[210 * FINE_HZ :], tracker)
    assert after[-1] is not None
    assert abs(percent(after[-1], 10)) < 2


@pytest.mark.parametrize("job", [slowed(9, 200, 900), Job(1.57, 0.3, 0.02, evaluates=0)])
def test_a_restart_goes_on_with_the_rhythm_and_its_reference(job: Job) -> None:
    clock, window = job.clock(250), 10 if job.period < 1 else 30
    tracker = RhythmTracker()
    before = follow(clock[: 210 * FINE_HZ], tracker)
    tree = tracker.save()
    assert tree is not None
    restored = RhythmTracker.restored(tree)
    assert restored.is_unread
    whole, after = (follow(clock[210 * FINE_HZ :], each) for each in (tracker, restored))
    assert before[-1] is not None and after[-1] is not None and whole[-1] is not None
    assert after[-1].reference == before[-1].reference
    assert percent(after[-1], window) == pytest.approx(percent(whole[-1], window), abs=0.3)
    assert after[-1].slower == whole[-1].slower


def test_a_restart_in_the_middle_of_learning_goes_on_learning() -> None:
    clock = Job(0.45, 0.2, 0.02).clock(200)
    tracker = RhythmTracker()
    follow(clock[: 80 * FINE_HZ], tracker)
    tree = tracker.save()
    assert tree is not None
    beats = follow(clock[80 * FINE_HZ :], RhythmTracker.restored(tree))
    alone = follow(clock[80 * FINE_HZ :])
    first, first_alone = (
        next(i for i, beat in enumerate(each) if beat and beat.readings) for each in (beats, alone)
    )
    assert first < first_alone


def test_a_saved_rhythm_is_small() -> None:
    tracker = RhythmTracker()
    follow(Job(0.45, 0.2, 0.02).clock(260), tracker)
    tree = tracker.save()
    assert tree is not None
    saved = SavedState(Position("n1", b"b" * 16, 1, 1), 1, tree)
    assert len(encode(saved)) < 2048


def test_without_a_rhythm_nothing_is_saved() -> None:
    assert RhythmTracker().save() is None


def test_nothing_is_learned_during_an_alarm() -> None:
    tracker = RhythmTracker()
    beats = follow(Job(0.45, 0.2, 0.03).clock(200), tracker, learn=False)
    assert beats[-1] is not None
    assert beats[-1].readings == ()
    assert "being learned" in tracker.reason


def test_a_few_lost_samples_change_little() -> None:
    job = slowed(10, 200, 262)
    clock = job.clock(262)
    clock[np.random.default_rng(0).random(clock.size) < 0.02] = np.nan
    assert percent(follow(clock)[-1], 30) == pytest.approx(10, abs=1.5)


def test_the_same_counters_give_the_same_readings() -> None:
    clock = slowed(6, 200, 240).clock(240)
    assert follow(clock) == follow(clock)


def test_a_search_begins_when_it_is_its_turn() -> None:
    ring = RingBuffer(FINE_HZ)
    for second in np.random.default_rng(0).poisson(3, 40 * FINE_HZ).reshape(-1, FINE_HZ):
        ring.push(second * 1e-3)
    search = RhythmSearch(wait=3, reason="waiting")
    whys = []
    for _ in range(4):
        assert search.update({CLOCK: ring}) is None
        whys.append(search.reason)
    assert whys == ["waiting", "waiting", NO_RHYTHM, NO_RHYTHM]


@pytest.mark.parametrize(
    "then",
    [
        Job(1.9, 0.6, 0.03),
        Job(0.2, 0.5, 0.05),
        Job(0.83, 0.6, 0.05),
        Job(0.05, 0.9, 0.3),
    ],
)
def test_a_job_that_goes_on_to_something_else_is_not_slower(then: Job) -> None:
    clock = np.concatenate([Job(0.45, 0.2, 0.03).clock(200), then.clock(90)])
    slow = [beat is not None and beat.slower for beat in follow(clock)]
    assert not any(all(slow[index : index + 5]) for index in range(len(slow)))


def test_steps_of_small_parts_are_read_as_whole_steps() -> None:
    """Work done once a step does not shift the rhythm of the small steps."""
    job = Job(
        5.5, 0.15, 0.01, parts=8, evaluates=0, slower=lambda second: 1 + 0.1 * (second >= 260)
    )  # fmt: skip
    beats = follow(job.clock(330))
    assert beats[-1] is not None
    assert beats[-1].period == pytest.approx(6.05, rel=0.05)
    baseline = job.mean_step(60, 240)
    assert percent(beats[-1], 60) == pytest.approx(
        100 * (job.mean_step(270, 330) / baseline - 1), abs=2.5
    )


@given(
    st.lists(
        arrays(np.float64, FINE_HZ, elements=st.sampled_from([0.0, 1.0, -3.0, 20e3, 1e12, np.nan])),
        min_size=1, max_size=4,
    ),
    st.integers(35, 130),
)  # fmt: skip
@examples(25)
def test_no_counter_however_odd_breaks_it_or_is_slower(
    seconds: list[np.ndarray], lasts: int
) -> None:
    """A few repeated seconds with gaps and jumps keep their step."""
    tracker = RhythmTracker()
    beats = [tracker.update({CLOCK: seconds[second % len(seconds)]}) for second in range(lasts)]
    assert not any(beat.slower for beat in beats if beat)
    assert tracker.reason or beats[-1] is not None
