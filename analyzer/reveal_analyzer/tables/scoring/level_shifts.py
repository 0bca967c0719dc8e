"""Levels that change and stay: the change is reported, and later samples are judged by it.

A run that is its own reference has no normal level if it changes for good: half of it would be
abnormal, or none.  A change counts if both sides are steady, it happens within a few samples, and
several metrics share it or it is large.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reveal_analyzer.arrays import Bools, Floats
from reveal_analyzer.tables.scoring.metric_rank import MetricRank
from reveal_analyzer.tables.scoring.scales import CAP, MAD, quantiles, thinned

_BINS = 1_000  # medians in which a change is located
_CELLS = 1 << 18  # values that are sorted at once
_BEFORE = 0.08  # share of the run: what changes earlier is a warm-up
_AFTER = 0.04  # share of the run: what changes later is not known to stay
_LEAST_ROWS = 30  # on either side
_SEPARATE = 0.98  # share of samples on their side of the middle between the levels
CHANGED = 6.0  # spreads of the noise on either side
_CHANGED_ALONE = 10.0  # of the only metric that changes
_LEAST_CHANGE = 0.1  # of the value: a counter of a few things changes by one and stays
_TOGETHER = 0.01  # share of the run within which metrics change together
_SUDDEN = 0.02  # share of the run that a change takes
_RAMP = 0.25  # of the change: a side that moves by more is no level
_EXPLAINED = 0.6  # share of the variance that two levels explain


@dataclass(frozen=True)
class LevelShift:
    """A change of level at row ``first``, and the metrics that changed, the largest first."""

    first: int
    metrics: tuple[MetricRank, ...]

    @property
    def size(self) -> float:
        """Return the largest change in spreads."""
        return self.metrics[0].score


@dataclass(frozen=True)
class _Change:
    metric: int
    first: int
    before: float
    after: float
    spreads: float


class ShiftFinder:
    """Finds changes of level in blocks of metrics, and takes them from the values."""

    def __init__(self, rows: int) -> None:
        self._rows = rows
        self._changes: list[_Change] = []
        self._metrics = 0

    def settled(self, values: Floats) -> Floats:
        """Return values (n, m) in which the level after a change is that before it."""
        changes = _changes(values)
        if not changes:
            self._metrics += values.shape[1]
            return values
        out = values.copy()
        for each in changes:
            out[each.first :, each.metric] -= each.after - each.before
        offset = self._metrics
        self._changes += [
            _Change(offset + each.metric, each.first, each.before, each.after, each.spreads)
            for each in changes
        ]
        self._metrics += values.shape[1]
        return out

    def shifts(self, names: tuple[str, ...]) -> list[LevelShift]:
        """Return the changes that count, those of several metrics at a time together."""
        near = max(5, int(_TOGETHER * self._rows))
        groups: list[list[_Change]] = []
        for change in sorted(self._changes, key=lambda each: each.first):
            if groups and change.first - groups[-1][0].first <= near:
                groups[-1].append(change)
            else:
                groups.append([change])
        return [_shift(group, names) for group in groups if _counts(group)]


def _counts(group: list[_Change]) -> bool:
    return len(group) > 1 or group[0].spreads >= _CHANGED_ALONE


def _shift(group: list[_Change], names: tuple[str, ...]) -> LevelShift:
    largest = sorted(group, key=lambda each: -each.spreads)
    metrics = tuple(
        MetricRank(names[each.metric], "mean", each.spreads, each.after, each.before, each.first)
        for each in largest
    )
    return LevelShift(min(each.first for each in group), metrics)


def _changes(values: Floats) -> list[_Change]:
    """Return the change of level of each metric (n, m) that has one."""
    rows = len(values)
    least = max(_LEAST_ROWS, int(_BEFORE * rows))
    last = rows - max(_LEAST_ROWS, int(_AFTER * rows))
    if last <= least:
        return []
    bins, width = _binned(values)
    splits, explained = _best_split(bins)
    found = []
    for metric in np.flatnonzero(explained > _EXPLAINED).tolist():
        change = _change(values[:, metric], int(splits[metric]) * width, width, least, last)
        if change is not None:
            found.append(_Change(metric, *change))
    return found


def _binned(values: Floats) -> tuple[Floats, int]:
    """Return medians of neighboring rows, and how many rows each is of."""
    width = max(1, -(-len(values) // _BINS))
    count = len(values) // width
    whole = values[: count * width].reshape(count, width, values.shape[1])
    if width == 1:
        return whole[:, 0], width
    step = max(1, _CELLS // max(1, width * values.shape[1]))
    parts = [_middle(whole[first : first + step]) for first in range(0, count, step)]
    middle = np.concatenate(parts)
    return np.where(np.isfinite(middle), middle, np.nan), width


def _middle(values: Floats) -> Floats:
    """Return the median (bins, m) of known values (bins, width, m), the upper one of two."""
    known = np.where(np.isfinite(values), values, np.inf)
    width = known.shape[1]
    if width == 2:
        return np.asarray(known.max(axis=1))
    lanes = known.transpose(0, 2, 1).copy()  # neighbors in memory are sorted fast
    lanes.sort(axis=2)
    return np.asarray(lanes[:, :, width // 2])


def _best_split(bins: Floats) -> tuple[NDArray[np.intp], Floats]:
    """Return the split (m,) into two levels that explains most, and the share it explains."""
    low, center, high = quantiles(bins, (0.01, 0.5, 0.99))
    off = np.clip(np.nan_to_num(np.where(np.isnan(bins), center, bins)), low, high)
    off = off - off.mean(0)
    total = np.einsum("ij,ij->j", off, off)
    count = len(off)
    before = np.arange(1, count)[:, None]
    sums = np.cumsum(off, axis=0)[:-1]
    between = sums * sums * (1.0 / before + 1.0 / (count - before))
    split = between.argmax(0)
    explained = np.take_along_axis(between, split[None], axis=0)[0]
    return split + 1, np.where(total > 0.0, explained / np.where(total > 0.0, total, 1.0), 0.0)


def _change(
    values: Floats, split: int, width: int, least: int, last: int
) -> tuple[int, float, float, float] | None:
    """Return row, levels before and after, and the size in spreads; None for no clear change."""
    before, after = _known(values[:split]), _known(values[split:])
    if not least <= split <= last or min(len(before), len(after)) < _LEAST_ROWS:
        return None
    levels = float(np.median(before)), float(np.median(after))
    first = _onset(values, split, width, levels)
    size = abs(levels[1] - levels[0])
    if not least <= first <= last or size < _LEAST_CHANGE * max(map(abs, levels)):
        return None
    later = first + max(5, int(_SUDDEN * len(values))) // 2
    sides = (_Side(_known(values[:first]), levels), _Side(_known(values[later:]), levels[::-1]))
    if not all(side.is_steady for side in sides):
        return None
    spreads = size / max(*(side.spread for side in sides), size / CAP)
    return (first, *levels, spreads) if spreads >= CHANGED else None


@dataclass(frozen=True)
class _Side:
    """Values before or after a change, and their level and the other."""

    values: Floats
    levels: tuple[float, float]

    @property
    def is_steady(self) -> bool:
        """Return whether values stay at their level; a ramp moves from one third to another."""
        third = len(self.values) // 3
        if not third:
            return False
        own, other = (np.abs(self.values - level) for level in self.levels)
        parts = [self.values[part * third : (part + 1) * third] for part in range(3)]
        middles = [float(np.median(thinned(part))) for part in parts]
        apart = max(middles) - min(middles) <= _RAMP * abs(self.levels[1] - self.levels[0])
        return apart and bool((own < other).mean() >= _SEPARATE)

    @property
    def spread(self) -> float:
        """Return the spread about the level."""
        return MAD * float(np.median(np.abs(self.values - self.levels[0])))


def _known(values: Floats) -> Floats:
    return values[np.isfinite(values)]


def _onset(values: Floats, split: int, width: int, levels: tuple[float, float]) -> int:
    """Return the first row around a split that is nearer to the level after it."""
    begin, end = max(0, split - 2 * width - 2), min(len(values), split + 2 * width + 2)
    around = values[begin:end]
    beyond = np.abs(around - levels[1]) < np.abs(around - levels[0])
    return _last_switch(beyond, begin)


def _last_switch(beyond: Bools, begin: int) -> int:
    """Return the row that divides samples best into those before and after a change."""
    wrong = np.concatenate([[0], np.cumsum(beyond)]) - np.concatenate([[0], np.cumsum(~beyond)])
    return begin + int(np.argmin(wrong))
