"""What the accepted past covered: for each column highest, lowest and spread of every view."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from reveal_analyzer.live import steps
from reveal_analyzer.live.settings import LiveSettings
from reveal_analyzer.live.steps import Places, Singles


@dataclass(frozen=True)
class Ranges:
    """Ranges of all views, ``middle`` (columns) of the first.

    ``bounds`` (views, 4, columns) are highest, lowest, and the spread upward and downward, which
    is never below the floor.
    """

    bounds: Singles
    middle: Singles

    @property
    def high(self) -> Singles:
        return self.bounds[:, 0]

    @property
    def low(self) -> Singles:
        return self.bounds[:, 1]

    @property
    def spread(self) -> Singles:
        return self.bounds[:, 2:]

    @classmethod
    def of(cls, past: Singles, settings: LiveSettings) -> Ranges:
        """Ranges of (seconds, views, 2, columns) of values held upward and downward."""
        picks = np.sort(past, axis=0)[ranks(len(past))]
        made = cls.still(picks[0, 0, 0], settings)
        made.settle(np.arange(picks.shape[-1]), picks[:, :, 0], picks[:, :, 1])
        return made

    @classmethod
    def still(cls, values: Singles, settings: LiveSettings) -> Ranges:
        """Ranges of columns that have never been anything else."""
        floors = [settings.floor / math.sqrt(min(width, 3)) for width, _ in settings.views]
        bounds = np.empty((len(floors), 4, values.size), np.float32)
        bounds[:, :2], bounds[:, 2:] = values, np.array(floors)[:, None, None]
        return cls(bounds, values.astype(np.float32))

    def settle(self, columns: Places, upward: Singles, downward: Singles) -> None:
        """Take these columns' from what stands at the ``ranks``: (5, views, columns) each."""
        bounds = self.bounds
        bounds[:, 0, columns], bounds[:, 1, columns] = upward[-1], downward[0]
        for at, picks in enumerate((upward, downward), 2):
            floor = bounds[:, at, columns]  # so far
            bounds[:, at, columns] = np.maximum((picks[3] - picks[1]) / 2, floor)
        self.middle[columns] = upward[2, 0]

    def excess(self, views: Singles) -> Singles:
        """How far outside, in spreads: (2, columns) of the worst view; 0 within."""
        return steps.excess(views, self.bounds)


def ranks(count: int) -> list[int]:
    """Which of so many sorted values are lowest, lower, middle, upper and highest.

    One outlier from a minute of past on, two from 150 s on do not widen the range; lower and
    upper are one deviation from the middle, were it normal.
    """
    spare = 0 if count < 60 else 1 if count < 150 else 2
    return [spare, int(0.16 * count), count // 2, int(0.84 * count), count - 1 - spare]
