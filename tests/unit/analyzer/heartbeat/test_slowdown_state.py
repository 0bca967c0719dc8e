"""The state of one job's slowdown: begin and end, missing values, and a restart."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reveal_analyzer.heartbeat.reference import WindowReading
from reveal_analyzer.heartbeat.slowdown_state import (
    ACCEPTED_RESUMED_S,
    ACCEPTED_S,
    CALM_LOST_S,
    CALM_S,
    GONE_S,
    MOST_GAP_S,
    SUSTAINED_S,
    SlowdownState,
)
from reveal_analyzer.heartbeat.tracker import StepTime
from reveal_analyzer.state.tree import StateError
from reveal_contract.finding import Resolution
from reveal_contract.time_units import NS_PER_SECOND

BEGIN = 1_700_000_000


def beat(*percents: float) -> StepTime:
    windows = (10, 30, 60)[: len(percents)]
    readings = tuple(
        WindowReading(window, percent, 0.5, 2.0)
        for window, percent in zip(windows, percents, strict=True)
    )
    return StepTime(0.5, 0.45, "cpu.subject.usage.fine", 0.5, readings)


HEALTHY, SLOW = beat(0, 0, 0), beat(9, 9, 9)


class Played:
    """A state and the second that it is at."""

    def __init__(self, state: SlowdownState | None = None, second: int = 0) -> None:
        self.state, self.second = state or SlowdownState("/train"), second

    def add(
        self, step: StepTime | None, count: int, *, unread: bool = False, gone: bool = False
    ) -> Played:
        for _ in range(count):
            self.second += 1
            end_ns = (BEGIN + self.second) * NS_PER_SECOND
            self.state.update(step, end_ns, unread=unread, gone=gone)
        return self

    def skip(self, seconds: int) -> Played:
        self.second += seconds
        return self


def test_a_few_slow_seconds_are_no_slowdown() -> None:
    played = Played().add(HEALTHY, 60).add(beat(9, 3, 1), SUSTAINED_S - 1)
    assert played.state.since_ns is None
    assert played.add(beat(9, 3, 1), 1).state.since_ns is not None


def test_the_longest_window_within_the_slowdown_gives_its_impact() -> None:
    young = Played().add(HEALTHY, 60).add(beat(10, 4, 2), 6).state.impact
    old = Played().add(HEALTHY, 60).add(beat(10, 9.5, 9), 90).state.impact
    assert young is not None
    assert (young.window_s, young.slowdown_percent) == (10, 10)
    assert old is not None
    assert (old.window_s, old.slowdown_percent) == (60, 9)
    assert old.confidence > young.confidence


def test_a_steady_job_counts_its_seconds() -> None:
    played = Played().add(HEALTHY, 61)
    assert played.state.steady == 61
    assert played.add(SLOW, 1).state.steady == 0


def slowed() -> Played:
    played = Played().add(HEALTHY, 60).add(SLOW, 40)
    assert played.state.since_ns is not None
    return played


@pytest.mark.parametrize("seconds", [1, 10, 59])
def test_a_gap_of_less_than_a_minute_ends_nothing(seconds: int) -> None:
    played = slowed()
    since_ns = played.state.since_ns
    played.skip(seconds).add(None, 10, unread=True).add(SLOW, 30)
    assert played.state.since_ns == since_ns
    assert played.state.end is None


def test_after_a_longer_gap_nobody_knows_whether_it_lasts() -> None:
    played = slowed().skip(MOST_GAP_S + 1).add(None, 1, unread=True)
    assert played.state.since_ns is None
    assert played.state.end is not None
    assert played.state.end.resolution is Resolution.UNOBSERVED


def test_counters_that_are_not_read_for_a_minute_end_it_as_unobserved() -> None:
    played = slowed().add(None, MOST_GAP_S + 5, unread=True)
    assert played.state.since_ns is not None
    played.add(None, 1)
    assert played.state.end is not None
    assert played.state.end.resolution is Resolution.UNOBSERVED


def test_a_job_that_recovers_ends_it() -> None:
    played = slowed().add(HEALTHY, 12)
    assert played.state.end is not None
    assert played.state.end.resolution is Resolution.ENDED


def test_a_slowdown_that_reads_a_little_below_its_threshold_has_not_ended() -> None:
    played = Played().add(HEALTHY, 60).add(beat(2.4, 2.4, 2.4), 40).add(beat(1.8, 1.9, 1.9), 60)
    assert played.state.since_ns is not None
    played.add(beat(0.6, 1.9, 1.9), CALM_S)
    assert played.state.since_ns is None


def test_a_window_that_cannot_show_a_slowdown_does_not_end_it() -> None:
    def scattered(shortest: float, longer: float) -> StepTime:
        readings = (WindowReading(10, shortest, 1.5, 6.0), WindowReading(30, longer, 0.5, 2.0))
        return StepTime(0.5, 0.45, "cpu.subject.usage.fine", 0.5, readings)

    played = Played().add(HEALTHY, 60).add(scattered(3.2, 3.0), 40).add(scattered(0.9, 2.8), 30)
    assert played.state.since_ns is not None
    played.add(scattered(0.2, 0.3), CALM_S)
    assert played.state.since_ns is None


def test_a_window_that_began_before_a_slowdown_does_not_end_it() -> None:
    played = Played().add(HEALTHY, 60).add(beat(9, 9, 9), 6)
    longest = StepTime(0.5, 0.45, "cpu.subject.usage.fine", 0.5, beat(0, 0, 0.5).readings[2:])
    assert played.add(longest, 30).state.since_ns is not None
    assert played.add(longest, 30).state.since_ns is None


def test_a_reading_of_a_period_that_the_job_left_ends_nothing() -> None:
    played = slowed().add(replace(HEALTHY, is_certain=False), 30)
    assert played.state.since_ns is not None
    assert played.add(HEALTHY, CALM_S).state.since_ns is None


def test_longer_steps_have_a_wider_interval_within_which_they_are_steady() -> None:
    assert beat(300).readings[0].margin == pytest.approx(8 * beat(0).readings[0].margin)
    assert beat(-20).readings[0].margin == beat(0).readings[0].margin
    played = Played().add(HEALTHY, 60).add(beat(200), 30).add(beat(203), 8)
    assert played.state.impact is not None
    assert played.state.impact.slowdown_percent == 203


def test_a_slowdown_that_ends_unread_ends_once_it_is_read_again() -> None:
    played = slowed().add(None, 30, unread=True).add(HEALTHY, 9)
    assert played.state.since_ns is not None
    played.add(HEALTHY, 1)
    assert played.state.end is not None
    assert played.state.end.resolution is Resolution.ENDED


@pytest.mark.parametrize(
    ("gone", "after", "resolution"),
    [(True, GONE_S, Resolution.ENDED), (False, CALM_LOST_S, Resolution.UNOBSERVED)],
)
def test_a_job_that_is_gone_has_ended_and_a_lost_rhythm_is_unobserved(
    gone: bool, after: int, resolution: Resolution
) -> None:
    played = slowed().add(None, after - 1, gone=gone)
    assert played.state.since_ns is not None
    played.add(None, 1, gone=gone)
    assert played.state.end is not None
    assert played.state.end.resolution is resolution


@pytest.mark.parametrize(
    ("resumed", "lasts"), [(None, ACCEPTED_S), (400, ACCEPTED_S), (20, ACCEPTED_RESUMED_S)]
)
def test_a_slowdown_that_lasts_is_accepted_sooner_after_a_pause(
    resumed: int | None, lasts: int
) -> None:
    played = Played().add(HEALTHY, 60).add(replace(SLOW, resumed=resumed), lasts - 10)
    assert played.state.resumed is (resumed == 20)
    assert not played.state.is_accepted
    played.add(SLOW, 20)
    assert played.state.is_accepted
    played.state.accept()
    assert played.state.end is not None
    assert played.state.end.resolution is Resolution.ACCEPTED
    assert (played.state.since_ns, played.state.is_accepted) == (None, False)


def test_a_slowdown_that_changes_is_not_accepted() -> None:
    played = Played().add(HEALTHY, 60).add(SLOW, ACCEPTED_S).add(beat(30, 12, 10), 3)
    assert not played.state.is_accepted


def test_what_is_not_read_is_not_accepted() -> None:
    played = Played().add(HEALTHY, 60).add(SLOW, 60).add(None, ACCEPTED_S, unread=True)
    assert not played.state.is_accepted


def test_a_slowdown_that_is_read_late_began_with_the_last_reading_before() -> None:
    played = Played().add(HEALTHY, 60).add(None, 30).add(beat(90, 90, 90), 5)
    assert played.state.since_ns == (BEGIN + 60) * NS_PER_SECOND


def test_missing_values_are_no_steady_seconds() -> None:
    played = Played().add(HEALTHY, 60).add(None, 20, unread=True)
    assert played.state.steady == 60
    assert played.add(None, 1).state.steady == 0


@pytest.mark.parametrize("step", [-7200, 7200])
def test_a_clock_that_is_set_moves_no_onset(step: int) -> None:
    played = Played().add(HEALTHY, 60).add(SLOW, 3).skip(step).add(SLOW, 40)
    assert played.state.since_ns is not None
    began = played.state.since_ns / NS_PER_SECOND - BEGIN - step
    assert 50 <= began <= 70


def test_a_restart_goes_on_with_the_same_slowdown() -> None:
    before = slowed()
    state = SlowdownState.restored("/train", before.state.save())
    assert (state.since_ns, state.impact) == (before.state.since_ns, before.state.impact)
    after = Played(state, before.second).skip(20).add(None, 10, unread=True).add(SLOW, 20)
    assert after.state.since_ns == before.state.since_ns
    after.add(HEALTHY, 12)
    assert after.state.end is not None


def test_a_restart_after_more_than_a_minute_knows_nothing_of_it() -> None:
    before = slowed()
    state = SlowdownState.restored("/train", before.state.save())
    after = Played(state, before.second).skip(200).add(SLOW, 1)
    assert after.state.since_ns is None
    assert after.state.end is not None
    assert after.state.end.resolution is Resolution.UNOBSERVED


def test_a_damaged_state_is_refused() -> None:
    tree = dict(slowed().state.save())
    with pytest.raises(StateError):
        SlowdownState.restored("/train", {**tree, "steady": "many"})
    with pytest.raises(StateError):
        SlowdownState.restored("/train", {**tree, "impact": {"subject": 1}})
