"""Windows of a table: their features, and the score of a sample from the scores of its windows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reveal_analyzer.arrays import Bools, Floats
from reveal_analyzer.features.autocorrelation import first_lag
from reveal_analyzer.features.moments import shape_moments
from reveal_analyzer.features.prepared import prepare
from reveal_analyzer.features.trend import slope_alone

_LANES = 1 << 12  # metrics x windows worked on at once: results in between stay in the CPU's cache
FEATURES_A_METRIC = 10


@dataclass(frozen=True)
class Frames:
    """Windows of ``size`` samples every ``stride``.

    ``since`` (n,) counts the rows of a stretch before each row: no window spans a gap.  With
    ``to_end`` one more window ends with the last sample; without it, later samples change nothing
    about earlier ones.
    """

    size: int
    stride: int
    since: NDArray[np.intp]
    to_end: bool = True

    @cached_property
    def starts(self) -> NDArray[np.intp]:
        """Return the first row of each window; none if the table is shorter than a window."""
        last = len(self.since) - self.size
        if last < 0:
            return np.zeros(0, np.intp)
        regular = np.arange(0, last + 1, self.stride)
        return np.unique(np.append(regular, last)) if self.to_end else regular

    @cached_property
    def whole(self) -> Bools:
        """Return which windows are within one stretch."""
        return np.asarray(self.since[self.starts + self.size - 1] >= self.size - 1)

    def covering(self, scores: Floats) -> Floats:
        """Return the mean score of the windows over each sample (n,), for offline mode.

        0 where there is no window.
        """
        count = len(self.since)
        total, counts = np.zeros(count), np.zeros(count)
        starts, known = self.starts[self.whole], scores[self.whole]
        for offset in range(self.size):
            total[starts + offset] += known
            counts[starts + offset] += 1.0
        return total / np.maximum(counts, 1.0)

    def largest(self, scores: Floats) -> Floats:
        """Return the largest score of the windows over each sample (n,); 0 without a window."""
        out = np.zeros(len(self.since))
        starts, known = self.starts[self.whole], scores[self.whole]
        for offset in range(self.size):
            out[starts + offset] = np.maximum(out[starts + offset], known)
        return out

    def finished(self, scores: Floats) -> Floats:
        """Return the score of the last window that ended by each sample of its stretch (n,).

        0 until a first window has ended.
        """
        rows = np.arange(len(self.since))
        ends, known = self.starts[self.whole] + self.size - 1, scores[self.whole]
        if not ends.size:
            return np.zeros(len(rows))
        last_window = np.searchsorted(ends, rows, side="right") - 1
        same = (last_window >= 0) & (ends[last_window] >= rows - self.since)
        return np.where(same, known[last_window], 0.0)


def window_features(
    values: Floats, frames: Frames, calculate: Callable[[Floats], Floats], single: bool = True
) -> NDArray[Any]:
    """Return the result of ``calculate`` for each window, as (windows, features x metrics).

    ``calculate`` turns (size, lanes) into (features, lanes).  NaN for windows over a gap; in
    ``single`` precision or double.
    """
    metrics = values.shape[1]
    offsets = np.arange(frames.size)[:, None]
    batch = max(1, _LANES // max(1, metrics))
    results = []
    for first in range(0, len(frames.starts), batch):
        starts = frames.starts[first : first + batch]
        lanes = values[starts + offsets].reshape(frames.size, -1)
        found = calculate(lanes).reshape(-1, len(starts), metrics).transpose(1, 0, 2)
        dtype = np.float32 if single else np.float64
        results.append(found.astype(dtype, order="C").reshape(len(starts), -1))
    out = np.concatenate(results)
    out[~frames.whole] = np.nan
    return out


def shape_features(lanes: Floats) -> Floats:
    """Return ten of the 33 features, (size, lanes) to (10, lanes); NaN where a sample is missing.

    They are mean, variance, standard deviation, skewness, kurtosis, minimum, maximum, median, slope
    and autocorrelation at lag 1.  The others add little where samples are minutes apart, and cost
    time.
    """
    prepared = prepare(lanes)
    out = np.stack([*shape_moments(prepared), slope_alone(prepared), first_lag(prepared)])
    out[:, ~np.isfinite(prepared.total)] = np.nan
    return out
