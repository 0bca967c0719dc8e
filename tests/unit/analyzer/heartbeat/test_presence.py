"""Presence of a locked rhythm: one that stays, moves, fades, or gives place to another."""

from __future__ import annotations

import numpy as np
import pytest

from reveal_analyzer.heartbeat import comb
from reveal_analyzer.heartbeat.acquisition import RhythmLock, needed_strength
from reveal_analyzer.heartbeat.presence import Presence, PresenceCheck
from support.heartbeat_nodes import FINE_HZ, Job

MINUTE, PERIOD = 60, 0.45
PRESENT, MOVED, LOST = Presence


def check_of(period: float) -> PresenceCheck:
    needed = needed_strength(FINE_HZ, period)
    return PresenceCheck(RhythmLock(period, "cpu", 0.5, needed, None, ("cpu",)))


def spectrum(period: float, duty: float = 0.2) -> comb.Spectrum:
    return comb.spectrum(Job(period, duty, 0.0, evaluates=0).clock(MINUTE), FINE_HZ)


def constant() -> comb.Spectrum:
    return comb.spectrum(np.ones(MINUTE * FINE_HZ), FINE_HZ)


def results(
    check: PresenceCheck, current: comb.Spectrum, count: int, *, has_reference: bool = True
) -> list[Presence]:
    return [
        check.check(current, PERIOD, has_reference=has_reference, is_whole=False)
        for _ in range(count)
    ]


def test_a_rhythm_that_stays_is_present_with_its_strength() -> None:
    check = check_of(PERIOD)
    assert results(check, spectrum(PERIOD), 3) == [PRESENT] * 3
    assert check.strength > 0.5


def test_a_rhythm_has_moved_when_two_checks_agree() -> None:
    check = check_of(PERIOD)
    assert results(check, spectrum(0.55), 2) == [PRESENT, MOVED]
    assert check.moved_to == pytest.approx(0.55, rel=0.01)


def test_a_small_change_is_no_move() -> None:
    assert results(check_of(PERIOD), spectrum(1.04 * PERIOD), 4) == [PRESENT] * 4


@pytest.mark.parametrize(("has_reference", "lost_after"), [(True, 6), (False, 2)])
def test_a_rhythm_that_fades_is_lost_later_if_it_has_a_reference(
    has_reference: bool, lost_after: int
) -> None:
    found = results(check_of(PERIOD), constant(), lost_after, has_reference=has_reference)
    assert found == [PRESENT] * (lost_after - 1) + [LOST]


def test_a_strong_other_rhythm_replaces_it_after_two_checks() -> None:
    assert results(check_of(PERIOD), spectrum(1.9), 2) == [PRESENT, LOST]


def test_the_parts_of_a_whole_step_are_no_other_rhythm() -> None:
    check, parts = check_of(2.0), spectrum(0.5)
    found = [check.check(parts, 2.0, has_reference=True, is_whole=True) for _ in range(2)]
    assert found == [PRESENT] * 2
