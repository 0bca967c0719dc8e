"""Waiting with a limit: time in which the machine stood still is not waited."""

from __future__ import annotations

import pytest

from support import polling


class Clock:
    """A clock whose steps are given."""

    def __init__(self, *steps: float) -> None:
        self._steps, self._now, self.sleeps = list(steps), 0.0, 0

    def monotonic(self) -> float:
        self._now += self._steps.pop(0) if self._steps else 0.1
        return self._now

    def sleep(self, _: float) -> None:
        self.sleeps += 1


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock(0.0, 0.1, 60.0)
    monkeypatch.setattr(polling, "time", found)
    return found


def test_a_condition_that_becomes_true_after_a_standstill_is_in_time(clock: Clock) -> None:
    asked = iter([False, False, False, True])
    assert polling.becomes_true(lambda: next(asked), 10)
    assert clock.sleeps == 3


def test_a_condition_that_stays_false_is_not(clock: Clock) -> None:
    assert not polling.becomes_true(lambda: False, 10)
    assert 40 < clock.sleeps < 60  # ten seconds, of which the standstill is five
