"""Ranges of the accepted history: highest, lowest and spread of each column in every view."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from reveal_analyzer.arrays import Floats32, Indices
from reveal_analyzer.kernels import live
from reveal_analyzer.kernels.order_statistics import range_bounds
from reveal_analyzer.live.column_map import ColumnMap
from reveal_analyzer.live.settings import LiveSettings


@dataclass(frozen=True)
class Ranges:
    """Ranges of all views, and the ``middle`` (columns) of the first view.

    ``bounds`` (views, 4, columns) are highest, lowest, and the spread upward and downward, which
    is never below the floor.
    """

    bounds: Floats32
    middle: Floats32

    @property
    def high(self) -> Floats32:
        return self.bounds[:, 0]

    @property
    def low(self) -> Floats32:
        return self.bounds[:, 1]

    @property
    def spread(self) -> Floats32:
        return self.bounds[:, 2:]

    @classmethod
    def of(cls, history: Floats32, settings: LiveSettings) -> Ranges:
        """Return the ranges of (seconds, views, 2, columns) sustained upward and downward."""
        selected = np.sort(history, axis=0)[selected_ranks(len(history))].astype(np.float32)
        columns, views = history.shape[-1], len(settings.views)
        rows = selected.reshape(len(selected), -1, columns).T  # per column: upward, downward, ...
        sides = np.arange(0, 2 * views, 2), np.arange(1, 2 * views, 2)
        levels, floors = np.zeros(columns, np.float32), spread_floors(settings)
        bounds, middle, _ = range_bounds(rows, sides, np.arange(columns), levels, floors)
        return cls(bounds, middle)

    def remap(self, column_map: ColumnMap, floors: Floats32) -> Ranges:
        """Return the ranges of another set of columns; a new one has always been at its level."""
        bounds, new = column_map.excess(self.bounds), column_map.source < 0
        bounds[:, :2, new], bounds[:, 2:, new] = column_map.level[new], floors[:, None, None]
        return Ranges(bounds, column_map.levels(self.middle))

    def excess(self, views: Floats32) -> Floats32:
        """Return the distance outside in spreads, (2, columns) of the worst view; 0 within."""
        return live.excess(views, self.bounds)


def ranks(count: int) -> list[int]:
    """Return the ranks of lowest, lower, middle, upper and highest among ``count`` sorted values.

    One outlier does not widen the range from 60 s of history on, two from 150 s on.  Lower and
    upper are one standard deviation from the middle of a normal distribution.
    """
    outliers = 0 if count < 60 else 1 if count < 150 else 2
    return [outliers, int(0.16 * count), count // 2, int(0.84 * count), count - 1 - outliers]


def selected_ranks(count: int) -> Indices:
    """Return all ranks that are read: the first, those five, the last."""
    return np.array([0, *ranks(count), count - 1], np.intp)


def spread_floors(settings: LiveSettings) -> Floats32:
    """Return the least spread of each view; a longer view varies less."""
    least = [settings.floor / math.sqrt(min(width, 3)) for width, _ in settings.views]
    return np.array(least, np.float32)
