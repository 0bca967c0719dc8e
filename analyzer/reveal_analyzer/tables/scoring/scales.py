"""Center and spread of each metric, with a floor under the spread; missing values are ignored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from reveal_analyzer.arrays import Floats, Indices

CAP = 30.0  # spreads; a larger distance says nothing more

_FLOOR = 0.03  # of the range: many metrics are constant most of the time
_ROUNDING = 1e-9  # of the value: a smaller step is rounding
_SIZE = 1e6  # spreads: their fourth powers fit into single precision
_ROWS = 20_000  # rows; more are thinned for a quantile
_SIDE_BY_SIDE = 1_024  # values that are compared at once
_OUTER = 0.001  # share on either side that is not part of the range
MAD = 1.4826  # median absolute deviation of a normal distribution as its standard deviation


@dataclass(frozen=True)
class Scale:
    """Center (m,) and spread (m,) of metrics, in their own units."""

    center: Floats
    spread: Floats

    def distance(self, values: Floats) -> Floats:
        """Return the signed distance from the center in spreads (n, m), capped; 0 where missing.

        A metric that was 0 throughout the reference has no spread: any deviation is at the cap.
        """
        distance = values - self.center
        distance /= self.spread
        np.clip(distance, -CAP, CAP, out=distance)
        distance[np.isnan(distance)] = 0.0
        return distance

    def in_spreads(self, values: Floats) -> Floats:
        """Return the same without the cap, NaN where missing: for sums of squares in any unit."""
        distance = values - self.center
        distance /= np.where(self.spread > 0.0, self.spread, 1.0)
        return np.clip(distance, -_SIZE, _SIZE, out=distance)


@dataclass(frozen=True)
class Spreads:
    """Median, scaled median absolute deviation and least spread of metrics (m,).

    They take two sorts of the values, which cost more than most of what follows.
    """

    center: Floats
    spread: Floats
    least: Floats

    @classmethod
    def of(cls, values: Floats) -> Self:
        """Return those of values (n, m)."""
        few = thinned(values)
        ordered = _Ordered.of(few)
        center = ordered.median()
        return cls(
            center, MAD * median(np.abs(few - center)), _least_spread(ordered, extremes(values))
        )

    def scale(self) -> Scale:
        """Return center and spread, at least ``least``."""
        return Scale(self.center, np.maximum(self.spread, self.least))


def robust_scale(values: Floats, floor: Floats | None = None) -> Scale:
    """Return median and scaled median absolute deviation of (n, m), at least ``floor``."""
    if floor is None:
        return Spreads.of(values).scale()
    few = thinned(values)
    center = median(few)
    return Scale(center, np.maximum(MAD * median(np.abs(few - center)), floor))


def plain_scale(values: Floats, floor: Floats | None = None) -> Scale:
    """Return mean and standard deviation (population) of (n, m), at least ``floor``."""
    spread = deviation(values)
    return Scale(mean(values), np.maximum(spread, least_spread(values) if floor is None else floor))


def least_spread(values: Floats) -> Floats:
    """Return 3 % of the range between the outer thousandths (m,), of the whole range if that is 0.

    It is nearly 0 for a constant metric, and 0 for one that is 0 or never known.
    """
    return _least_spread(_Ordered.of(thinned(values)), extremes(values))


def _least_spread(ordered: _Ordered, extreme: tuple[Floats, Floats]) -> Floats:
    inner = ordered.quantile(1.0 - _OUTER) - ordered.quantile(_OUTER)
    low, high = extreme
    whole = np.where(high > low, high - low, 0.0)
    size = np.where(high >= low, np.maximum(np.abs(low), np.abs(high)), 0.0)
    return np.maximum(_FLOOR * np.where(inner > 0.0, inner, whole), _ROUNDING * size)


def extremes(values: Floats) -> tuple[Floats, Floats]:
    """Return smallest and largest value of each metric (m,); (inf, -inf) if unknown."""
    rows, width = values.shape
    # neighboring rows side by side: a reduction of a few columns is slow
    together = max(1, _SIDE_BY_SIDE // max(1, width))
    whole = rows - rows % together
    low, high = np.full(width, np.inf), np.full(width, -np.inf)
    for part, folded in ((values[:whole], together), (values[whole:], 1)):
        lanes = part.reshape(-1, folded * width)
        low = np.fmin(low, np.fmin.reduce(lanes, axis=0, initial=np.inf).reshape(-1, width).min(0))
        top = np.fmax.reduce(lanes, axis=0, initial=-np.inf)
        high = np.fmax(high, top.reshape(-1, width).max(0))
    return low, high


def median(values: Floats) -> Floats:
    """Return the median of the known values of each metric (m,); 0 if none is known."""
    return _Ordered.of(values).median()


def quantiles(values: Floats, shares: Sequence[float]) -> Floats:
    """Return quantiles of the known values of each metric (shares, m); 0 if none is known."""
    ordered = _Ordered.of(values)
    found = np.stack([ordered.quantile(share) for share in shares])
    return np.where(ordered.count > 0, found, 0.0)


def mean(values: Floats) -> Floats:
    """Return the mean of the known values of each metric (m,); 0 if none is known."""
    known = ~np.isnan(values)
    return np.asarray(np.where(known, values, 0.0).sum(0) / np.maximum(known.sum(0), 1))


def deviation(values: Floats) -> Floats:
    """Return the standard deviation (population) of the known values of each metric (m,)."""
    known = ~np.isnan(values)
    off = np.where(known, values - mean(values), 0.0)
    return np.asarray(np.sqrt(np.einsum("ij,ij->j", off, off) / np.maximum(known.sum(0), 1)))


def thinned(values: Floats) -> Floats:
    """Return every k-th row, at most 20,000: enough for a quantile, and always the same."""
    return values[:: thinning(len(values))]


def thinning(rows: int) -> int:
    """Return the k of ``thinned``."""
    return max(1, -(-rows // _ROWS))


@dataclass(frozen=True)
class _Ordered:
    """Values of each metric in order (m, n), NaN last, and the number of known values (m,)."""

    lanes: Floats
    count: Indices

    @classmethod
    def of(cls, values: Floats) -> Self:
        lanes = values.T.copy(order="C")  # neighbors in memory: sorted twice as fast
        lanes.sort(axis=1)
        return cls(lanes, lanes.shape[1] - np.isnan(lanes).sum(1))

    def median(self) -> Floats:
        """Return the median of each metric (m,); 0 if no value is known."""
        below = self._in_rows(np.maximum(self.count - 1, 0) // 2)
        above = self._in_rows(np.minimum(self.count // 2, np.maximum(self.count - 1, 0)))
        return np.where(self.count > 0, 0.5 * below + 0.5 * above, 0.0)

    def quantile(self, share: float) -> Floats:
        """Return a quantile of each metric by linear interpolation; NaN if no value is known."""
        last = np.maximum(self.count - 1, 0)
        position = share * last
        row = np.floor(position).astype(np.intp)
        below, above = self._in_rows(row), self._in_rows(np.minimum(row + 1, last))
        return below + (position - row) * (above - below)

    def _in_rows(self, rows: Indices) -> Floats:
        return np.asarray(self.lanes[np.arange(len(rows)), rows])
