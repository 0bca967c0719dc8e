"""Compiled loops derive from slices and conditions exactly what numpy derives."""

from __future__ import annotations

import numpy as np
import pytest

from reveal_analyzer.derive.columns import LARGEST, TOTAL, folds
from reveal_analyzer.kernels import backend, conditions, derive
from reveal_analyzer.kernels.conditions import Conditions
from reveal_analyzer.kernels.derive import Recipe, Ticks
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
)

pytest.importorskip("numba")
FAST, SLOW = 23, 9
CHANNELS = FAST + SLOW


@pytest.fixture(scope="module")
def fast() -> backend.Backend:
    return backend.numba_backend()


def ticks(rng: np.random.Generator, missing: float) -> Ticks:
    """Return small and large counts; sometimes whole channels are missing."""
    counted = rng.integers(-(2**40), 2**55, (10, FAST)) >> rng.integers(0, 50, FAST)
    gone = rng.random(counted.shape) < missing
    gone[:, rng.random(FAST) < missing] = True
    return Ticks(counted, gone, rng.integers(0, 99, SLOW), rng.random(SLOW) < missing)


def formula(rng: np.random.Generator, depth: int = 5) -> Formula:
    """Return a random formula over few numbers, so that parts are often equal, 0 or missing."""
    if not depth or rng.random() < 0.1:
        kind, channel = rng.integers(0, 3), int(rng.integers(0, CHANNELS))
        return [read(channel), read_or_zero(channel), total([])][kind]
    left, other = formula(rng, depth - 1), formula(rng, depth - 1)
    formulas = (left + other, left - other, left * 0.5, 3.0 - other, left * other, left / other,
            maximum(left, other), minimum(left, other), maximum_known(left, other),
            guarded(left, other, 2.0), share(left, other))  # fmt: skip
    return formulas[rng.integers(0, len(formulas))]


def recipe(rng: np.random.Generator) -> Recipe:
    folded = [
        (str(rng.choice([LARGEST, TOTAL])), rng.integers(0, CHANNELS, rng.integers(1, 30)).tolist())
        for _ in range(6)
    ]
    take, changes = rng.permutation(CHANNELS)[:20], rng.permutation(CHANNELS)[:7]
    program = Program.of([formula(rng) for _ in range(9)])
    scale = 10 ** rng.random(CHANNELS)
    return Recipe(scale, take, changes, folds(folded), program, 20 + 7 + 6 + 9 + 2)


@pytest.mark.parametrize("missing", [0.0, 0.05, 0.5])
@pytest.mark.parametrize("seed", range(5))
def test_seconds(seed: int, missing: float, fast: backend.Backend) -> None:
    rng = np.random.default_rng(seed)
    drawn, lasts, before = recipe(rng), rng.choice([1.0, 0.1], CHANNELS), np.zeros(0)
    for _ in range(5):
        slice_ = ticks(rng, missing)
        expected = derive.derive_second(slice_, lasts, before, drawn)
        found = fast.derive_second(slice_, lasts, before, drawn)
        np.testing.assert_array_equal(found[0], expected[0], strict=True)
        np.testing.assert_array_equal(found[1][:-2], expected[1][:-2], strict=True)
        before = expected[0]


@pytest.mark.parametrize("seed", range(20))
def test_formulas(seed: int, fast: backend.Backend) -> None:
    """Formulas over small integers: equal values, missing values and division by zero."""
    rng = np.random.default_rng(seed)
    drawn, values = recipe(rng), rng.integers(-2, 3, SLOW + FAST)
    gone = rng.random(SLOW + FAST) < 0.2
    slice_ = Ticks(values[None, :FAST], gone[None, :FAST], values[FAST:], gone[FAST:])
    drawn = drawn._replace(scale=np.ones(CHANNELS))
    _, expected = derive.derive_second(slice_, np.ones(CHANNELS), np.zeros(0), drawn)
    _, found = fast.derive_second(slice_, np.ones(CHANNELS), np.zeros(0), drawn)
    np.testing.assert_array_equal(found[:-2], expected[:-2], strict=True)


@pytest.mark.parametrize("seed", range(20))
def test_conditions(seed: int, fast: backend.Backend) -> None:
    rng = np.random.default_rng(seed)
    limits = np.column_stack(
        [rng.integers(-2, 2, 60), rng.choice([3, np.inf], 60), rng.choice([0, 0, 1.5], 60)]
    )
    columns, divisors = rng.integers(0, 30, (2, 60))
    entries = Conditions(
        columns, np.where(rng.random(60) < 0.7, -1, divisors), limits, rng.random(60) < 0.3
    )
    values, highest = rng.integers(-1, 4, (2, 30)).astype(float)
    values[rng.random(30) < 0.1] = np.nan
    found = fast.matching(entries, values, highest, 4.0)
    np.testing.assert_array_equal(
        found, conditions.matching(entries, values, highest, 4.0), strict=True
    )
