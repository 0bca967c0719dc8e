"""What the accepted past covered: for each column highest, lowest and spread of every view."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reveal_analyzer.live import steps
from reveal_analyzer.live.settings import LiveSettings
from reveal_analyzer.live.steps import Singles


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
        return cls.picked(np.sort(past, axis=0)[ranks(len(past))], settings)

    @classmethod
    def picked(cls, picks: Singles, settings: LiveSettings) -> Ranges:
        """Ranges of what stands at the ``ranks`` of the past: (5, views, 2, columns)."""
        lowest, lower, middle, upper, highest = picks
        floors = np.array([settings.floor / np.sqrt(min(width, 3)) for width, _ in settings.views])
        bounds = np.empty((len(floors), 4, picks.shape[-1]), np.float32)
        bounds[:, 0], bounds[:, 1] = highest[:, 0], lowest[:, 1]
        bounds[:, 2:] = np.maximum((upper - lower) / 2, floors[:, None, None])
        return cls(bounds, middle[0, 0])

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
