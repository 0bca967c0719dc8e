"""What the accepted past covered: for each column highest, lowest and spread of every view."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from reveal_analyzer.arrays import Floats32, Indices
from reveal_analyzer.kernels import live
from reveal_analyzer.kernels.order_statistics import range_bounds
from reveal_analyzer.live.remap import Shift
from reveal_analyzer.live.settings import LiveSettings


@dataclass(frozen=True)
class Ranges:
    """Ranges of all views, ``middle`` (columns) of the first.

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
    def of(cls, past: Floats32, settings: LiveSettings) -> Ranges:
        """Ranges of (seconds, views, 2, columns) of values held upward and downward."""
        picks = np.sort(past, axis=0)[picked(len(past))].astype(np.float32)
        columns, views = past.shape[-1], len(settings.views)
        rows = picks.reshape(len(picks), -1, columns).T  # of each column upward, downward, ...
        sides = np.arange(0, 2 * views, 2), np.arange(1, 2 * views, 2)
        still = np.zeros(columns, np.float32)
        bounds, middle, _ = range_bounds(rows, sides, np.arange(columns), still, floors(settings))
        return cls(bounds, middle)

    def moved(self, shift: Shift, floors: Floats32) -> Ranges:
        """Columns changed; one that is new has never been anything else than it was."""
        bounds, new = shift.excess(self.bounds), shift.source < 0
        bounds[:, :2, new], bounds[:, 2:, new] = shift.level[new], floors[:, None, None]
        return Ranges(bounds, shift.levels(self.middle))

    def excess(self, views: Floats32) -> Floats32:
        """How far outside, in spreads: (2, columns) of the worst view; 0 within."""
        return live.excess(views, self.bounds)


def ranks(count: int) -> list[int]:
    """Which of so many sorted values are lowest, lower, middle, upper and highest.

    One outlier from a minute of past on, two from 150 s on do not widen the range; lower and
    upper are one deviation from the middle, were it normal.
    """
    spare = 0 if count < 60 else 1 if count < 150 else 2
    return [spare, int(0.16 * count), count // 2, int(0.84 * count), count - 1 - spare]


def picked(count: int) -> Indices:
    """The ranks of all that is picked: lowest, those five, highest."""
    return np.array([0, *ranks(count), count - 1], np.intp)


def floors(settings: LiveSettings) -> Floats32:
    """The least spread of each view: of more seconds it is less."""
    least = [settings.floor / math.sqrt(min(width, 3)) for width, _ in settings.views]
    return np.array(least, np.float32)
