"""How long silent nodes are taken for nodes that only start."""

from __future__ import annotations

from reveal_operator.silence import PATIENCE_S, Settling, SilenceTracker
from support.fake_clock import FakeClock


def test_a_status_is_kept_for_two_minutes_and_then_judged() -> None:
    clock = FakeClock()
    tracker = SilenceTracker(clock)
    assert tracker.update("p", 3, "Unknown") == Settling("Unknown", PATIENCE_S)
    clock.now += PATIENCE_S - 1
    assert tracker.update("p", 2, "Unknown") == Settling("Unknown", 1)
    clock.now += 1
    assert tracker.update("p", 2, "Unknown") == Settling()


def test_each_silence_has_its_own_time() -> None:
    clock = FakeClock()
    tracker = SilenceTracker(clock)
    tracker.update("p", 3, "True")
    clock.now += PATIENCE_S
    assert tracker.update("p", 0, "True") == Settling()
    assert tracker.update("p", 1, "True") == Settling("True", PATIENCE_S)
    tracker.forget("p")
    clock.now += 1
    assert tracker.update("p", 1, "True") == Settling("True", PATIENCE_S)


def test_after_a_restart_of_the_operator_an_error_stays_an_error() -> None:
    assert SilenceTracker(FakeClock()).update("p", 3, "False") == Settling()
