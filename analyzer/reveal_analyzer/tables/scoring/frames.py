"""Windows of a table: their features, and how a sample takes the score of its windows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

from reveal_analyzer.arrays import Bools, Floats
from reveal_analyzer.features.autocorrelation import autocorrelation
from reveal_analyzer.features.moments import moments
from reveal_analyzer.features.prepared import prepare
from reveal_analyzer.features.table import FEATURES, Family
from reveal_analyzer.features.trend import trend

_LANES = 1 << 15  # metrics x windows worked on at once
_CALCULATORS = {
    Family.MOMENTS: moments,
    Family.TREND: trend,
    Family.AUTOCORRELATION: autocorrelation,
}
_SHAPE = {
    "mean",
    "standard_deviation",
    "variance",
    "minimum",
    "maximum",
    "median",
    "skewness",
    "kurtosis",
    'linear_trend__attr_"slope"',
    "autocorrelation__lag_1",
}
FEATURES_A_METRIC = len(_SHAPE)


@dataclass(frozen=True)
class Frames:
    """Windows of ``size`` samples every ``stride``.

    ``since`` (n,) counts the rows of a stretch before each row: no window spans a gap.  With
    ``to_end`` one more window ends with the last sample; without, what comes later changes
    nothing of what was before.
    """

    size: int
    stride: int
    since: NDArray[np.intp]
    to_end: bool = True

    @cached_property
    def starts(self) -> NDArray[np.intp]:
        """First row of each window; none where the table is shorter than one."""
        last = len(self.since) - self.size
        if last < 0:
            return np.zeros(0, np.intp)
        regular = np.arange(0, last + 1, self.stride)
        return np.unique(np.append(regular, last)) if self.to_end else regular

    @cached_property
    def whole(self) -> Bools:
        """Which windows lie within one stretch."""
        return np.asarray(self.since[self.starts + self.size - 1] >= self.size - 1)

    def covering(self, scores: Floats) -> Floats:
        """Mean score of the windows over each sample (n,), for a report after the run.

        0 where no window is.
        """
        count = len(self.since)
        total, held = np.zeros(count), np.zeros(count)
        starts, known = self.starts[self.whole], scores[self.whole]
        for at in range(self.size):
            total[starts + at] += known
            held[starts + at] += 1.0
        return total / np.maximum(held, 1.0)

    def largest(self, scores: Floats) -> Floats:
        """Largest score of the windows over each sample (n,); 0 where no window is."""
        out = np.zeros(len(self.since))
        starts, known = self.starts[self.whole], scores[self.whole]
        for at in range(self.size):
            out[starts + at] = np.maximum(out[starts + at], known)
        return out

    def finished(self, scores: Floats) -> Floats:
        """Score of the last window that ended with or before each sample of its stretch (n,).

        0 until a first one has ended.
        """
        rows = np.arange(len(self.since))
        ends, known = self.starts[self.whole] + self.size - 1, scores[self.whole]
        if not ends.size:
            return np.zeros(len(rows))
        at = np.searchsorted(ends, rows, side="right") - 1
        same = (at >= 0) & (ends[at] >= rows - self.since)
        return np.where(same, known[at], 0.0)


def window_features(
    values: Floats, frames: Frames, calculate: Callable[[Floats], Floats], single: bool = True
) -> NDArray[Any]:
    """What ``calculate`` makes of each metric's window, as (windows, features x metrics).

    It turns (size, lanes) into (features, lanes).  NaN for windows over a gap; in ``single``
    precision or double.
    """
    metrics = values.shape[1]
    windows = sliding_window_view(values, frames.size, axis=0)
    batch = max(1, _LANES // max(1, metrics))
    made = []
    for first in range(0, len(frames.starts), batch):
        chosen = windows[frames.starts[first : first + batch]]
        lanes = np.ascontiguousarray(chosen.transpose(2, 0, 1).reshape(frames.size, -1))
        found = calculate(lanes).reshape(-1, len(chosen), metrics).transpose(1, 0, 2)
        dtype = np.float32 if single else np.float64
        made.append(found.reshape(len(chosen), -1).astype(dtype))
    out = np.concatenate(made)
    out[~frames.whole] = np.nan
    return out


def shape_features(lanes: Floats) -> Floats:
    """Ten features of the 33, (size, lanes) to (10, lanes); NaN where a sample is missing.

    The others say little on their own where samples are minutes apart, and have to be paid for.
    """
    prepared = prepare(lanes)
    rows = []
    for family, calculate in _CALCULATORS.items():
        names = [feature.suffix for feature in FEATURES if feature.family is family]
        found = zip(names, calculate(prepared), strict=True)
        rows += [values for name, values in found if name in _SHAPE]
    out = np.stack(rows)
    out[:, ~np.isfinite(prepared.total)] = np.nan
    return out
