"""Exponential backoff: doubling, limit, jitter, reset."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveal_contract.runtime.backoff import HALF_JITTER, Backoff, delay, spread, uniform


@pytest.mark.parametrize(
    ("failures", "expected"), [(0, 0.5), (1, 1.0), (2, 2.0), (6, 32.0), (7, 60.0), (10_000, 60.0)]
)
def test_a_delay_doubles_up_to_its_limit(failures: int, expected: float) -> None:
    assert delay(failures, 0.5, 60.0) == expected


def test_whole_nanoseconds_stay_whole() -> None:
    assert delay(3, 1_000_000_000, 60_000_000_000) == 8_000_000_000
    assert isinstance(delay(30, 1, 5), int)


def test_failures_count_until_an_attempt_succeeds() -> None:
    backoff = Backoff(1.0, 5.0)
    assert [backoff.next() for _ in range(4)] == [1.0, 2.0, 4.0, 5.0]
    assert backoff.failures == 4
    backoff.reset()
    assert (backoff.failures, backoff.next()) == (0, 1.0)


@pytest.mark.parametrize(("random", "expected"), [(0.0, 2.0), (0.5, 3.0), (1.0, 4.0)])
def test_jitter_is_a_factor_between_two_bounds(random: float, expected: float) -> None:
    backoff = Backoff(4.0, 4.0, HALF_JITTER, lambda: random)
    assert backoff.next() == expected


@given(st.integers(0, 1_000), st.floats(0.01, 10.0), st.floats(10.0, 1e4))
def test_a_delay_stays_between_half_of_it_and_all_of_it(
    failures: int, first: float, longest: float
) -> None:
    whole = delay(failures, first, longest)
    assert whole / 2 <= spread(whole, HALF_JITTER) <= whole <= longest


def test_random_numbers_differ_and_stay_below_1() -> None:
    numbers = [uniform() for _ in range(200)]
    assert len(set(numbers)) > 1
    assert all(0 <= number < 1 for number in numbers)
