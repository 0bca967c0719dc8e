"""Formulas over the channels of one second, compiled to instructions of a stack machine.

A node has dozens of formulas, some for each disk, port and GPU, with few operands each.  As one
list of instructions they are a single pass over small arrays.  This module runs them one
instruction at a time; ``numba_derive`` runs the same instructions and gives the same bits.  A
missing operand (NaN) makes the result missing unless an operation says otherwise; so does a
division by zero.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import reduce
from itertools import pairwise
from math import inf, isnan
from typing import NamedTuple

import numpy as np

from reveal_analyzer.arrays import Floats, Indices, Ints8

_MISSING = float("nan")
_LEAST = float(np.nextafter(0.0, 1.0))


class Opcode(IntEnum):
    """Instructions: push a number, or replace the last two or three numbers by one."""

    READ = 0  # push a channel
    READ_OR_ZERO = 1  # push a channel, 0 if it is missing
    NUMBER = 2
    ADD = 3
    SUBTRACT = 4
    MULTIPLY = 5
    DIVIDE = 6
    MAXIMUM = 7  # missing if either is missing
    MINIMUM = 8
    MAXIMUM_KNOWN = 9  # missing if both are missing
    GUARDED = 10  # the first of three if the second is at least the third, else missing


@dataclass(frozen=True, slots=True)
class Formula:
    """Instructions that leave one number.

    Each instruction has a channel and a constant and uses at most one of them.
    """

    steps: tuple[tuple[Opcode, int, float], ...]

    def __add__(self, other: Formula | float) -> Formula:
        return _combined(Opcode.ADD, self, other)

    def __sub__(self, other: Formula | float) -> Formula:
        return _combined(Opcode.SUBTRACT, self, other)

    def __rsub__(self, other: float) -> Formula:
        return _combined(Opcode.SUBTRACT, other, self)

    def __mul__(self, other: Formula | float) -> Formula:
        return _combined(Opcode.MULTIPLY, self, other)

    def __rmul__(self, other: float) -> Formula:
        return _combined(Opcode.MULTIPLY, other, self)

    def __truediv__(self, other: Formula | float) -> Formula:
        return _combined(Opcode.DIVIDE, self, other)


Operand = Formula | float


def read(channel: int) -> Formula:
    """Return the value of a channel."""
    return Formula(((Opcode.READ, int(channel), 0.0),))


def read_or_zero(channel: int) -> Formula:
    """Return the value of a channel, 0 if it is missing."""
    return Formula(((Opcode.READ_OR_ZERO, int(channel), 0.0),))


def total(channels: Iterable[int]) -> Formula:
    """Return the sum of the channels that are not missing; missing if all are, 0 of none."""
    several = list(channels)
    if len(several) < 2:
        return read(several[0]) if several else _formula(0.0)
    return guarded(total_or_zero(several), maximum_known(*map(read, several)), -inf)


def total_or_zero(channels: Iterable[int]) -> Formula:
    """Return the sum of the channels that are not missing, 0 if there is none."""
    several = [read_or_zero(channel) for channel in channels]
    return reduce(Formula.__add__, several) if several else _formula(0.0)


def maximum(first: Operand, *others: Operand) -> Formula:
    """Return the largest operand; missing if any operand is missing."""
    return _reduced(Opcode.MAXIMUM, first, *others)


def minimum(first: Operand, *others: Operand) -> Formula:
    """Return the smallest operand; missing if any operand is missing."""
    return _reduced(Opcode.MINIMUM, first, *others)


def maximum_known(first: Operand, *others: Operand) -> Formula:
    """Return the largest operand that is not missing."""
    return _reduced(Opcode.MAXIMUM_KNOWN, first, *others)


def guarded(value: Operand, test: Operand, least: float) -> Formula:
    """Return the value if ``test`` is at least ``least``, otherwise missing."""
    return _combined(Opcode.GUARDED, value, test, least)


def share(part: Operand, whole: Operand) -> Formula:
    """Return parts per million; missing if the whole is 0."""
    return guarded(1e6 * _formula(part) / whole, whole, _LEAST)


def _formula(part: Operand) -> Formula:
    return part if isinstance(part, Formula) else Formula(((Opcode.NUMBER, 0, float(part)),))


def _reduced(step: Opcode, *parts: Operand) -> Formula:
    return reduce(lambda so_far, part: _combined(step, so_far, part), map(_formula, parts))


def _combined(step: Opcode, *parts: Operand) -> Formula:
    steps = (each for part in parts for each in _formula(part).steps)
    return Formula((*steps, (step, 0, 0.0)))


class Program(NamedTuple):
    """Formulas one after the other; ``ends`` is where the instructions of each formula end."""

    codes: Ints8
    channels: Indices
    numbers: Floats
    ends: Indices

    @classmethod
    def of(cls, formulas: Sequence[Formula]) -> Program:
        steps = [step for formula in formulas for step in formula.steps]
        codes, channels, numbers = zip(*steps, strict=True) if steps else ((), (), ())
        ends = np.cumsum([len(formula.steps) for formula in formulas])
        return cls(
            np.array(codes, np.int8), np.array(channels, np.intp), np.array(numbers, np.float64),
            ends.astype(np.intp),
        )  # fmt: skip

    def run(self, seconds: Floats) -> Floats:
        """Return the value of each formula."""
        columns = self.codes.tolist(), self.channels.tolist(), self.numbers.tolist()
        steps = list(zip(*columns, strict=True))
        bounds = pairwise([0, *self.ends.tolist()])
        values = [_run(steps[first:end], seconds) for first, end in bounds]
        return np.array(values, np.float64)


def _run(steps: Sequence[tuple[int, int, float]], seconds: Floats) -> float:
    stack: list[float] = []
    for code, channel, number in steps:
        if code == Opcode.READ:
            stack.append(seconds.item(channel))
        elif code == Opcode.READ_OR_ZERO:
            value = seconds.item(channel)
            stack.append(0.0 if isnan(value) else value)
        elif code == Opcode.NUMBER:
            stack.append(number)
        elif code == Opcode.GUARDED:
            value, test, least = stack[-3:]
            stack[-3:] = [value if test >= least else _MISSING]
        else:
            stack[-2:] = [_BINARY_OPERATIONS[code](*stack[-2:])]
    return stack[0]


def _quotient(left: float, right: float) -> float:
    return left / right if right else _MISSING


def _maximum(left: float, right: float) -> float:
    return _MISSING if isnan(left) or isnan(right) else max(left, right)


def _minimum(left: float, right: float) -> float:
    return _MISSING if isnan(left) or isnan(right) else min(left, right)


def _maximum_known(left: float, right: float) -> float:
    return left if left >= right or isnan(right) else right


_BINARY_OPERATIONS: dict[int, Callable[[float, float], float]] = {
    Opcode.ADD: operator.add, Opcode.SUBTRACT: operator.sub, Opcode.MULTIPLY: operator.mul,
    Opcode.DIVIDE: _quotient, Opcode.MAXIMUM: _maximum, Opcode.MINIMUM: _minimum,
    Opcode.MAXIMUM_KNOWN: _maximum_known,
}  # fmt: skip
