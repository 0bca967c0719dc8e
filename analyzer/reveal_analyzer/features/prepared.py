"""Intermediate results that several features of a window share, computed once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reveal_analyzer.arrays import Bools, Floats

_PAIRWISE_BLOCK = 128


@dataclass(frozen=True, slots=True)
class Prepared:
    """A window (ticks, channels) with its mean, deviations and steps, all per channel."""

    values: Floats
    total: Floats
    mean: Floats
    centered: Floats
    squares: Floats  # of the deviations
    energy: Floats  # sum of the squared deviations
    variance: Floats  # population variance (ddof 0)
    constant: Bools
    steps: Floats

    @property
    def ticks(self) -> int:
        return len(self.values)


def prepare(values: Floats) -> Prepared:
    """Return sums, deviations and steps of a window (ticks, channels)."""
    total = pairwise_sum(values)
    mean = total / len(values)
    centered = values - mean
    squares = centered * centered
    energy = squares.sum(0)
    return Prepared(
        values=values,
        total=total,
        mean=mean,
        centered=centered,
        squares=squares,
        energy=energy,
        variance=energy / len(values),
        constant=(values == values[0]).all(0),
        steps=values[1:] - values[:-1],
    )


def pairwise_sum(values: Floats) -> Floats:
    """Sum over ticks in exactly the order in which numpy sums one contiguous series.

    A plain ``sum(axis=0)`` adds row by row and may differ in the last bit; a sample equal to the
    mean would then count as above it here and not in tsfresh.  Beyond 128 ticks numpy halves
    recursively, and the last bit may differ.
    """
    ticks = len(values)
    if not 8 <= ticks <= _PAIRWISE_BLOCK:
        return np.asarray(values.sum(0))
    whole = ticks - ticks % 8
    lanes = values[:8]
    for first in range(8, whole, 8):
        lanes = lanes + values[first : first + 8]
    total = (lanes[0] + lanes[1]) + (lanes[2] + lanes[3])
    total += (lanes[4] + lanes[5]) + (lanes[6] + lanes[7])
    for row in values[whole:]:
        total += row
    return np.asarray(total)
