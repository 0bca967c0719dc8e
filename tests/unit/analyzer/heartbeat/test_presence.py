"""Presence of a locked rhythm: one that stays, moves, fades, or gives place to another."""

from __future__ import annotations

import numpy as np
import pytest

from reveal_analyzer.heartbeat import comb
from reveal_analyzer.heartbeat.acquisition import RhythmLock, needed_strength
from reveal_analyzer.heartbeat.presence import Presence, PresenceCheck
from reveal_analyzer.heartbeat.reference import StepReference
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


def reference_of(period: float, work: float = 0.2) -> StepReference:
    """Return the reference of a job that does so much work a second."""
    reference = StepReference()
    for _ in range(30):
        reference.learn({10: period}, work)
    return reference


KNOWN = reference_of(PERIOD)


def results(
    check: PresenceCheck, current: comb.Spectrum, count: int, reference: StepReference = KNOWN
) -> list[Presence]:
    return [check.check(current, PERIOD, reference, is_whole=False) for _ in range(count)]


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


@pytest.mark.parametrize(("reference", "lost_after"), [(KNOWN, 6), (StepReference(), 2)])
def test_a_rhythm_that_fades_is_lost_later_if_it_has_a_reference(
    reference: StepReference, lost_after: int
) -> None:
    found = results(check_of(PERIOD), constant(), lost_after, reference)
    assert found == [PRESENT] * (lost_after - 1) + [LOST]


@pytest.mark.parametrize("percent", [75, 100, 150, 200, 400])
def test_a_job_that_is_slower_by_any_amount_has_moved(percent: float) -> None:
    check = check_of(PERIOD)
    slower = spectrum(PERIOD * (1 + percent / 100))
    assert results(check, slower, 3) == [PRESENT, PRESENT, MOVED]
    assert check.moved_to == pytest.approx(PERIOD * (1 + percent / 100), rel=0.01)


@pytest.mark.parametrize(
    ("current", "reference"),
    [
        (spectrum(0.2), KNOWN),  # much faster
        (spectrum(0.83, duty=0.6), KNOWN),  # three times the work a second
        (spectrum(1.9), StepReference()),  # nothing is known of the job yet
    ],
)
def test_another_rhythm_replaces_it_after_two_checks(
    current: comb.Spectrum, reference: StepReference
) -> None:
    assert results(check_of(PERIOD), current, 2, reference) == [PRESENT, LOST]


def test_the_parts_of_a_whole_step_are_no_other_rhythm() -> None:
    check, parts = check_of(2.0), spectrum(0.5)
    found = [check.check(parts, 2.0, reference_of(2.0), is_whole=True) for _ in range(2)]
    assert found == [PRESENT] * 2


def test_a_whole_step_that_grows_is_followed() -> None:
    job = Job(5.0, 0.3, 0.0, parts=4, evaluates=0, slower=lambda _: 1.3)
    check = check_of(5.0)
    slower = comb.spectrum(job.clock(MINUTE), FINE_HZ)
    found = [check.check(slower, 5.0, reference_of(5.0), is_whole=True) for _ in range(2)]
    assert found == [PRESENT, MOVED]
    assert check.moved_to == pytest.approx(6.5, rel=0.02)
