"""Means over neighboring samples, and the worst metrics of a sample."""

from __future__ import annotations

import numpy as np

from reveal_analyzer.arrays import Floats

TOP = 5  # metrics in a sample's score: one alone is noise, and the mean of all hides a fault


def centered_mean(values: Floats, width: int) -> Floats:
    """Return the mean of ``width`` (odd) samples around each along axis 0, with repeated ends."""
    half = width // 2
    ends = [np.repeat(values[:1], half, 0), values, np.repeat(values[-1:], half, 0)]
    padded = np.concatenate(ends)
    count = len(values)
    return _sum_of([padded[offset : offset + count] for offset in range(width)]) / width


def trailing_mean(values: Floats, width: int) -> Floats:
    """Return the mean of each sample and up to ``width`` - 1 before it, along axis 0."""
    padded = np.concatenate([np.zeros((width - 1, *values.shape[1:])), values])
    count = len(values)
    total = _sum_of([padded[offset : offset + count] for offset in range(width)])
    counts = np.minimum(np.arange(1, count + 1), width)
    return total / counts.reshape((-1,) + (1,) * (values.ndim - 1))


def lasting(values: Floats) -> Floats:
    """Return the value that three samples in a row reach, for each of the three, along axis 0."""
    reached = values.copy()
    np.minimum(reached[1:], values[:-1], out=reached[1:])
    np.minimum(reached[:-1], values[1:], out=reached[:-1])
    if len(values):
        reached[0] = reached[-1] = -np.inf  # a row at the end has a single neighbor
    out = reached.copy()
    np.maximum(out[1:], reached[:-1], out=out[1:])
    np.maximum(out[:-1], reached[1:], out=out[:-1])
    return np.maximum(out, 0.0)


class WorstMetrics:
    """The largest metrics of each sample, collected from blocks of ``metrics`` in all.

    They are ``top``; by default five, or a quarter of a small table, as among six metrics the mean
    of five hides any one.  ``least`` requires more than that quarter; ``several`` is whether the
    table has so many metrics.
    """

    def __init__(self, metrics: int, least: int = 1, top: int | None = None) -> None:
        self._top = top or min(TOP, max(least, -(-metrics // 4)))
        self.several = metrics >= least
        self._worst: Floats | None = None

    def add(self, values: Floats) -> None:
        """Add a block of metrics (n, m), whose larger values are worse."""
        values_so_far = values if self._worst is None else np.hstack([self._worst, values])
        least = max(0, values_so_far.shape[1] - self._top)
        self._worst = (
            np.partition(values_so_far, least, axis=1)[:, least:] if least else values_so_far
        )

    def mean(self) -> Floats:
        """Return the mean (n,) of the worst metrics so far."""
        return np.asarray(self._ordered().mean(1))

    def lowest(self) -> Floats:
        """Return what each of the worst metrics so far reaches (n,); 0 with fewer metrics."""
        ordered = self._ordered()
        return ordered[:, 0] if ordered.shape[1] == self._top else np.zeros(len(ordered))

    def _ordered(self) -> Floats:
        """Return the worst metrics in order, so that a sum does not depend on the blocks."""
        if self._worst is None:
            raise ValueError("there is no metric to pool")
        return np.sort(self._worst, axis=1)


def _sum_of(parts: list[Floats]) -> Floats:
    total = parts[0].copy()
    for part in parts[1:]:
        total += part
    return total
