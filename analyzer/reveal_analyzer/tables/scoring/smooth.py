"""Means over neighbouring samples, and the few worst metrics of a sample."""

from __future__ import annotations

import numpy as np

from reveal_analyzer.arrays import Floats

TOP = 5  # metrics in a sample's score: one alone is noise, the mean of all drowns a fault


def centred_mean(values: Floats, width: int) -> Floats:
    """Mean of ``width`` (odd) samples around each along axis 0, the ends repeated outwards."""
    half = width // 2
    ends = [np.repeat(values[:1], half, 0), values, np.repeat(values[-1:], half, 0)]
    padded = np.concatenate(ends)
    count = len(values)
    return _sum_of([padded[at : at + count] for at in range(width)]) / width


def trailing_mean(values: Floats, width: int) -> Floats:
    """Mean of each sample and up to ``width`` - 1 before it, along axis 0."""
    padded = np.concatenate([np.zeros((width - 1, *values.shape[1:])), values])
    count = len(values)
    total = _sum_of([padded[at : at + count] for at in range(width)])
    held = np.minimum(np.arange(1, count + 1), width)
    return total / held.reshape((-1,) + (1,) * (values.ndim - 1))


class WorstMetrics:
    """Mean of the few largest metrics of each sample, gathered from blocks of ``metrics`` in all.

    Five, or a quarter of a table of few metrics: among six the mean of five hides any one.
    ``least`` asks for more than that quarter; ``several`` says whether the table has so many.
    """

    def __init__(self, metrics: int, least: int = 1) -> None:
        self._top = min(TOP, max(least, -(-metrics // 4)))
        self.several = metrics >= least
        self._worst: Floats | None = None

    def add(self, values: Floats) -> None:
        """Take a block of metrics (n, m), whose larger values are worse."""
        found = values if self._worst is None else np.hstack([self._worst, values])
        least = max(0, found.shape[1] - self._top)
        self._worst = np.partition(found, least, axis=1)[:, least:] if least else found

    def mean(self) -> Floats:
        """(n,): of what was taken so far."""
        if self._worst is None:
            raise ValueError("there is no metric to pool")
        # sorted, so that the sum is the same however the blocks were cut
        return np.asarray(np.sort(self._worst, axis=1).mean(1))


def _sum_of(parts: list[Floats]) -> Floats:
    total = parts[0].copy()
    for part in parts[1:]:
        total += part
    return total
