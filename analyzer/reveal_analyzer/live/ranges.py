"""What the accepted past covered: for each column highest, lowest and spread of one view."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_CLIP = 50.0  # spreads beyond which more is not worse


@dataclass(frozen=True)
class Ranges:
    """The range of one view, upward and downward; spreads never below the floor."""

    high: Floats
    low: Floats
    spread_up: Floats
    spread_down: Floats
    middle: Floats

    @classmethod
    def of(cls, up: Floats, down: Floats, floor: float) -> Ranges:
        """Ranges of (seconds, columns) of values held upward and downward.

        One outlier from a minute of past on, two from 150 s on do not widen the range.
        """
        count = len(up)
        spare = 0 if count < 60 else 1 if count < 150 else 2
        up, down = np.sort(up, axis=0), np.sort(down, axis=0)
        upper, lower = int(0.84 * count), int(0.16 * count)  # one deviation, were it normal
        return cls(
            high=up[count - 1 - spare],
            low=down[spare],
            spread_up=np.maximum((up[upper] - up[lower]) / 2, floor),
            spread_down=np.maximum((down[upper] - down[lower]) / 2, floor),
            middle=up[count // 2],
        )

    def excess(self, up: Floats, down: Floats) -> Floats:
        """How far outside, in spreads: (2, columns), upward and downward; 0 within."""
        outside = np.array(
            [(up - self.high) / self.spread_up, (self.low - down) / self.spread_down]
        )
        excess: Floats = np.clip(outside, 0.0, _CLIP)
        return excess


def held(recent: deque[Floats], views: tuple[tuple[int, int], ...]) -> Floats:
    """(views, 2, columns): the value held for k of the last w seconds, upward and downward."""
    rows = np.array(recent)
    out = np.empty((len(views), 2, rows.shape[1]))
    for at, (width, need) in enumerate(views):
        window = np.sort(rows[-width:], axis=0)
        k = min(need, len(window))
        out[at, 0], out[at, 1] = window[len(window) - k], window[k - 1]
    return out


def held_over(
    seen: Floats, runs: list[tuple[int, int]], views: tuple[tuple[int, int], ...]
) -> Floats:
    """``held`` for every second of a recording: (seconds, views, 2, columns).

    ``runs`` are (first, end) of stretches without a gap.
    """
    out = np.empty((len(seen), len(views), 2, seen.shape[1]))
    longest = max(width for width, _ in views)
    for first, end in runs:
        recent: deque[Floats] = deque(maxlen=longest)
        for at in range(first, end):
            recent.append(seen[at])
            out[at] = held(recent, views)
    return out
