"""Views of one node's seconds: what a column held for k of the last w of them."""

from __future__ import annotations

from collections import deque
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from reveal_analyzer.live.settings import Views

Floats = NDArray[np.float64]
_Any = TypeVar("_Any", bound=np.floating[Any])


class Held:
    """The last seconds, sorted column by column and kept so from second to second.

    To sort ten rows anew each second would cost as much as all else that the score does.
    """

    def __init__(self, views: Views) -> None:
        self._views = views
        self._recent: deque[Floats] = deque(maxlen=max(width for width, _ in views))
        self._sorted: dict[int, Floats] = {}

    @property
    def last(self) -> Floats | None:
        """The second pushed last, as it was seen."""
        return self._recent[-1] if self._recent else None

    def push(self, seen: Floats) -> Floats:
        """Take in a second (columns); (views, 2, columns) held upward and downward."""
        out = np.empty((len(self._views), 2, seen.size))
        before = len(self._recent)
        leaving = {width: self._recent[-width] for width, _ in self._views if width <= before}
        self._recent.append(seen)
        for at, (width, need) in enumerate(self._views):
            window = self._window(width, seen, leaving.get(width))
            k = min(need, len(window))
            out[at, 0], out[at, 1] = window[len(window) - k], window[k - 1]
        return out

    def forget(self) -> None:
        """After a gap no view may span it."""
        self._recent.clear()
        self._sorted.clear()

    def move(self, source: NDArray[np.intp]) -> None:
        """Columns changed: where each came from, -1 for those that were 0 before."""
        self._recent = deque((moved(row, source) for row in self._recent), self._recent.maxlen)
        self._sorted.clear()

    def _window(self, width: int, seen: Floats, leaving: Floats | None) -> Floats:
        if width == 1:
            return seen[None]
        held = self._sorted.get(width)
        if held is None or leaving is None:
            held = np.sort(np.array(self._recent)[-width:], axis=0)
        else:
            held = _exchanged(held, leaving, seen)
        if len(held) == width:
            self._sorted[width] = held
        return held


def _exchanged(rows: Floats, leaving: Floats, coming: Floats) -> Floats:
    """Sorted rows in which one value of each column gives way to another."""
    rest = np.where(rows[:-1] < leaving, rows[:-1], rows[1:])
    out = np.empty_like(rows)
    np.minimum(rest, coming, out=out[:-1])
    out[-1] = coming
    np.maximum(out[1:], rest, out=out[1:])
    return out


def held_over(seen: Floats, runs: list[tuple[int, int]], views: Views) -> Floats:
    """The views of every second of a recording: (seconds, views, 2, columns).

    ``runs`` are (first, end) of stretches without a gap.
    """
    out = np.empty((len(seen), len(views), 2, seen.shape[1]))
    for first, end in runs:
        held = Held(views)
        for at in range(first, end):
            out[at] = held.push(seen[at])
    return out


def moved(rows: NDArray[_Any], source: NDArray[np.intp]) -> NDArray[_Any]:
    """Rows in the order of other columns; 0 where ``source`` is -1."""
    made = rows[..., source]
    made[..., source < 0] = 0.0
    return made
