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


class WorstMetrics:
    """Mean of the largest metrics of each sample, collected from blocks of ``metrics`` in all.

    Five metrics, or a quarter of a small table, as among six metrics the mean of five hides any
    one.  ``least`` requires more than that quarter; ``several`` is whether the table has so many
    metrics.
    """

    def __init__(self, metrics: int, least: int = 1) -> None:
        self._top = min(TOP, max(least, -(-metrics // 4)))
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
        if self._worst is None:
            raise ValueError("there is no metric to pool")
        # sorted, so that the sum does not depend on the blocks
        return np.asarray(np.sort(self._worst, axis=1).mean(1))


def _sum_of(parts: list[Floats]) -> Floats:
    total = parts[0].copy()
    for part in parts[1:]:
        total += part
    return total
