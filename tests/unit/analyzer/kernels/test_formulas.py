"""Formulas use numpy's arithmetic and its rules for missing values."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveal_analyzer.kernels.formulas import (
    Formula,
    Program,
    guarded,
    maximum,
    maximum_known,
    minimum,
    read,
    read_or_zero,
    share,
    total,
    total_or_zero,
)

NUMBERS = st.one_of(st.just(math.nan), st.integers(-3, 3).map(float), st.floats(-1e12, 1e12))


def value(formula: Formula, *seconds: float) -> float:
    (found,) = Program.of([formula]).run(np.array(seconds)).tolist()
    assert isinstance(found, float)
    return found


@given(NUMBERS, NUMBERS)
def test_arithmetic_is_numpys(left: float, right: float) -> None:
    with np.errstate(all="ignore"):
        expected = [
            np.add(left, right), np.subtract(left, right), np.multiply(left, right),
            np.divide(left, right) if right else np.nan,
            np.maximum(left, right), np.minimum(left, right), np.fmax(left, right),
        ]  # fmt: skip
    a, b = read(0), read(1)
    formulas = (a + b, a - b, a * b, a / b, maximum(a, b), minimum(a, b), maximum_known(a, b))
    found = [value(formula, left, right) for formula in formulas]
    np.testing.assert_array_equal(found, expected)


@given(st.lists(NUMBERS, max_size=8))
def test_a_total_is_that_of_what_was_read(numbers: list[float]) -> None:
    known = [number for number in numbers if not math.isnan(number)]
    found = value(total(range(len(numbers))), *numbers)
    # nothing was read: unknown, not 0
    np.testing.assert_array_equal(found, sum(known) if known or not numbers else math.nan)
    assert value(total_or_zero(range(len(numbers))), *numbers) == sum(known)


@pytest.mark.parametrize(
    ("part", "whole", "expected"),
    [(1.0, 4.0, 250_000.0), (1.0, 0.0, None), (0.0, 0.0, None), (1.0, -2.0, None),
     (1.0, 5e-324, math.inf), (math.nan, 1.0, None), (1.0, math.nan, None)],
)  # fmt: skip
def test_of_nothing_there_is_no_share(part: float, whole: float, expected: float | None) -> None:
    found = value(share(read(0), read(1)), part, whole)
    assert math.isnan(found) if expected is None else found == expected


def test_a_value_is_given_from_the_least_on() -> None:
    formula = guarded(read(0), read(1), 2.0)
    found = [value(formula, 7.0, test) for test in (1.9, 2.0, 3.0, math.nan)]
    np.testing.assert_array_equal(found, [math.nan, 7.0, 7.0, math.nan])


def test_numbers_on_either_side() -> None:
    formula = 10.0 - 2.0 * read(0) / read_or_zero(1)
    assert value(formula, 6.0, 4.0) == 7.0
    assert math.isnan(value(formula, 6.0, math.nan))


def test_of_none_there_is_nothing() -> None:
    assert Program.of([]).run(np.zeros(3)).size == 0
