"""What the accepted past covered: for each column highest, lowest and spread of every view."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reveal_analyzer.live.settings import LiveSettings

Floats = NDArray[np.float64]
_CLIP = 50.0  # spreads beyond which more is not worse


@dataclass(frozen=True)
class Ranges:
    """Ranges of all views: ``high`` and ``low`` (views, columns), ``middle`` (columns).

    ``spread`` (views, 2, columns) upward and downward, never below the floor.
    """

    high: Floats
    low: Floats
    spread: Floats
    middle: Floats

    @classmethod
    def of(cls, past: Floats, settings: LiveSettings) -> Ranges:
        """Ranges of (seconds, views, 2, columns) of values held upward and downward."""
        return cls.picked(np.sort(past, axis=0)[ranks(len(past))], settings)

    @classmethod
    def picked(cls, picks: Floats, settings: LiveSettings) -> Ranges:
        """Ranges of what stands at the ``ranks`` of the past: (5, views, 2, columns)."""
        lowest, lower, middle, upper, highest = picks
        floors = np.array([settings.floor / np.sqrt(min(width, 3)) for width, _ in settings.views])
        return cls(
            high=highest[:, 0],
            low=lowest[:, 1],
            spread=np.maximum((upper - lower) / 2, floors[:, None, None]),
            middle=middle[0, 0],
        )

    def excess(self, views: Floats) -> Floats:
        """How far outside, in spreads: (2, columns) of the worst view; 0 within."""
        outside = np.empty_like(self.spread)
        np.subtract(views[:, 0], self.high, out=outside[:, 0])
        np.subtract(self.low, views[:, 1], out=outside[:, 1])
        outside /= self.spread
        excess: Floats = np.clip(outside.max(axis=0), 0.0, _CLIP)
        return excess


def ranks(count: int) -> list[int]:
    """Which of so many sorted values are lowest, lower, middle, upper and highest.

    One outlier from a minute of past on, two from 150 s on do not widen the range; lower and
    upper are one deviation from the middle, were it normal.
    """
    spare = 0 if count < 60 else 1 if count < 150 else 2
    return [spare, int(0.16 * count), count // 2, int(0.84 * count), count - 1 - spare]
