"""Means over neighboring samples, and the worst metrics of a sample."""

from __future__ import annotations

import numpy as np

from reveal_analyzer.arrays import Floats

_MANY = 32  # metrics of which the worst are selected before they are compared one by one
_ALL = slice(None)

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
    """The largest metrics of each of ``rows`` samples, collected from blocks of ``metrics`` in all.

    They are ``top``; by default five, or a quarter of a small table, as among six metrics the mean
    of five hides any one.  ``least`` requires more than that quarter; ``several`` is whether the
    table has so many metrics.
    """

    def __init__(self, rows: int, metrics: int, least: int = 1, top: int | None = None) -> None:
        top = top or min(TOP, max(least, -(-metrics // 4)))
        self.several = metrics >= least
        self._complete = metrics >= top
        # by rank, the largest first
        self._worst = [np.full(rows, -np.inf) for _ in range(min(top, metrics))]

    def add(self, values: Floats, rows: slice = _ALL) -> None:
        """Add a block of metrics (n, m) in some rows, whose larger values are worse."""
        count, width = len(self._worst), values.shape[1]
        if width > _MANY:
            values = np.partition(values, width - count, axis=1)[:, width - count :]
        ranks = [worst[rows] for worst in self._worst]
        for column in values.T:
            _insert(ranks, column.copy())

    def mean(self) -> Floats:
        """Return the mean (n,) of the worst metrics so far."""
        if not self._worst:
            raise ValueError("there is no metric to pool")
        # from the smallest on, so that a sum does not depend on the blocks
        return np.asarray(np.stack(self._worst[::-1], axis=1).mean(1))

    def lowest(self) -> Floats:
        """Return what each of the worst metrics so far reaches (n,); 0 with fewer metrics."""
        return self._worst[-1] if self._complete else np.zeros_like(self._worst[0])


def _insert(ranks: list[Floats], values: Floats) -> None:
    """Insert a value of each sample into its ``ranks``, in place; the smallest is dropped."""
    smaller = np.empty_like(values)
    for rank in ranks:
        np.minimum(rank, values, out=smaller)
        np.maximum(rank, values, out=rank)
        values, smaller = smaller, values


def _sum_of(parts: list[Floats]) -> Floats:
    total = parts[0].copy()
    for part in parts[1:]:
        total += part
    return total
