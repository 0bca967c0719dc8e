"""Formulas over the seconds of all channels, written as expressions and kept as steps on a stack.

A node has dozens (of each disk, port and GPU some), each of a few numbers: as steps all of them
are one pass over small arrays.  Here they are taken one by one; ``numba_deriving`` does the same,
to the last bit.  What is missing (NaN) makes missing what is made of it, where nothing else is
said; so does a division by zero.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import reduce
from itertools import pairwise
from math import isnan
from typing import NamedTuple

import numpy as np

from reveal_analyzer.arrays import Floats, Indices, Ints8

_MISSING = float("nan")
_LEAST = float(np.nextafter(0.0, 1.0))


class Step(IntEnum):
    """What a step does: put a number on the stack, or make one of its last two or three."""

    READ = 0  # the channel at a place
    KNOWN = 1  # the same, 0 where it is missing
    NUMBER = 2
    ADD = 3
    SUBTRACT = 4
    MULTIPLY = 5
    DIVIDE = 6
    LARGER = 7  # missing where one of the two is
    SMALLER = 8
    LARGER_KNOWN = 9  # missing where both are
    GIVEN = 10  # the first of three, missing where the second is not at least the third


@dataclass(frozen=True, slots=True)
class Formula:
    """Steps that leave one number; each has a place and a number, of which it uses one or none."""

    steps: tuple[tuple[Step, int, float], ...]

    def __add__(self, other: Formula | float) -> Formula:
        return _joined(Step.ADD, self, other)

    def __sub__(self, other: Formula | float) -> Formula:
        return _joined(Step.SUBTRACT, self, other)

    def __rsub__(self, other: float) -> Formula:
        return _joined(Step.SUBTRACT, other, self)

    def __mul__(self, other: Formula | float) -> Formula:
        return _joined(Step.MULTIPLY, self, other)

    def __rmul__(self, other: float) -> Formula:
        return _joined(Step.MULTIPLY, other, self)

    def __truediv__(self, other: Formula | float) -> Formula:
        return _joined(Step.DIVIDE, self, other)


Part = Formula | float


def read(place: int) -> Formula:
    """The channel at this place."""
    return Formula(((Step.READ, int(place), 0.0),))


def known(place: int) -> Formula:
    """The same, 0 where it is missing."""
    return Formula(((Step.KNOWN, int(place), 0.0),))


def total(places: Iterable[int]) -> Formula:
    """The sum of what was read of these channels, 0 of none."""
    several = [known(place) for place in places]
    return reduce(Formula.__add__, several) if several else _formula(0.0)


def larger(one: Part, *others: Part) -> Formula:
    """The largest; missing where one of them is."""
    return _of_all(Step.LARGER, one, *others)


def smaller(one: Part, *others: Part) -> Formula:
    """The smallest; missing where one of them is."""
    return _of_all(Step.SMALLER, one, *others)


def larger_known(one: Part, *others: Part) -> Formula:
    """The largest of those that are not missing."""
    return _of_all(Step.LARGER_KNOWN, one, *others)


def given(value: Part, test: Part, least: float) -> Formula:
    """The value where the test is at least that; missing elsewhere."""
    return _joined(Step.GIVEN, value, test, least)


def share(part: Part, whole: Part) -> Formula:
    """Parts per million; missing where the whole is nothing."""
    return given(1e6 * _formula(part) / whole, whole, _LEAST)


def _formula(part: Part) -> Formula:
    return part if isinstance(part, Formula) else Formula(((Step.NUMBER, 0, float(part)),))


def _of_all(step: Step, *parts: Part) -> Formula:
    return reduce(lambda so_far, part: _joined(step, so_far, part), map(_formula, parts))


def _joined(step: Step, *parts: Part) -> Formula:
    before = (one for part in parts for one in _formula(part).steps)
    return Formula((*before, (step, 0, 0.0)))


class Program(NamedTuple):
    """Formulas one after the other; ``ends``: where the steps of each end."""

    codes: Ints8
    places: Indices
    numbers: Floats
    ends: Indices

    @classmethod
    def of(cls, formulas: Sequence[Formula]) -> Program:
        steps = [step for formula in formulas for step in formula.steps]
        codes, places, numbers = zip(*steps, strict=True) if steps else ((), (), ())
        ends = np.cumsum([len(formula.steps) for formula in formulas])
        return cls(
            np.array(codes, np.int8), np.array(places, np.intp), np.array(numbers, np.float64),
            ends.astype(np.intp),
        )  # fmt: skip

    def run(self, seconds: Floats) -> Floats:
        """The value of each formula."""
        columns = self.codes.tolist(), self.places.tolist(), self.numbers.tolist()
        steps = list(zip(*columns, strict=True))
        bounds = pairwise([0, *self.ends.tolist()])
        values = [_run(steps[first:end], seconds) for first, end in bounds]
        return np.array(values, np.float64)


def _run(steps: Sequence[tuple[int, int, float]], seconds: Floats) -> float:
    stack: list[float] = []
    for code, place, number in steps:
        if code == Step.READ:
            stack.append(seconds.item(place))
        elif code == Step.KNOWN:
            value = seconds.item(place)
            stack.append(0.0 if isnan(value) else value)
        elif code == Step.NUMBER:
            stack.append(number)
        elif code == Step.GIVEN:
            value, test, least = stack[-3:]
            stack[-3:] = [value if test >= least else _MISSING]
        else:
            stack[-2:] = [_OF_TWO[code](*stack[-2:])]
    return stack[0]


def _quotient(one: float, other: float) -> float:
    return one / other if other else _MISSING


def _larger(one: float, other: float) -> float:
    return _MISSING if isnan(one) or isnan(other) else max(one, other)


def _smaller(one: float, other: float) -> float:
    return _MISSING if isnan(one) or isnan(other) else min(one, other)


def _larger_known(one: float, other: float) -> float:
    return one if one >= other or isnan(other) else other


_OF_TWO: dict[int, Callable[[float, float], float]] = {
    Step.ADD: operator.add, Step.SUBTRACT: operator.sub, Step.MULTIPLY: operator.mul,
    Step.DIVIDE: _quotient, Step.LARGER: _larger, Step.SMALLER: _smaller,
    Step.LARGER_KNOWN: _larger_known,
}  # fmt: skip
