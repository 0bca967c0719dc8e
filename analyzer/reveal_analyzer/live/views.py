"""Views of one node's seconds: what a column held for k of the last w of them."""

from __future__ import annotations

import numpy as np

from reveal_analyzer.arrays import Floats, Floats32
from reveal_analyzer.kernels import backend
from reveal_analyzer.live.remap import Shift
from reveal_analyzer.live.settings import Views


class Held:
    """The last seconds, sorted column by column and kept so from second to second.

    To sort ten rows anew each second would cost as much as all else that the score does.
    """

    def __init__(self, views: Views) -> None:
        widths = [width if width > 1 else 0 for width, _ in views]
        firsts = np.cumsum([0, *widths])
        self._spans = np.array([(*view, first) for view, first in zip(views, firsts, strict=False)])
        self._deepest = max(width for width, _ in views)
        self._seconds = self._at = 0
        self._ring: Floats32 = np.zeros((self._deepest, 0), np.float32)
        self._rows: Floats32 = np.zeros((int(firsts[-1]), 0), np.float32)

    def push(self, seen: Floats) -> Floats32:
        """Take in a second (columns); (views, 2, columns) held upward and downward."""
        if not self._seconds:
            self._begin(seen.size)
        out = np.empty((len(self._spans), 2, seen.size), np.float32)
        self._seconds = min(self._seconds + 1, self._deepest)
        place = self._at, self._seconds
        backend.current().slide_windows(self._ring, self._rows, self._spans, place, seen, out)
        self._at = (self._at + 1) % self._deepest
        return out

    def forget(self) -> None:
        """After a gap no view may span it."""
        self._seconds = self._at = 0

    def move(self, shift: Shift) -> None:
        """Columns changed."""
        if self._seconds:
            self._ring, self._rows = shift.levels(self._ring), shift.levels(self._rows)
            self._blank()

    def _begin(self, columns: int) -> None:
        if self._ring.shape[1] != columns:
            self._ring = np.empty((self._deepest, columns), np.float32)
            self._rows = np.empty((len(self._rows), columns), np.float32)
        self._blank()

    def _blank(self) -> None:
        """Seconds that were not yet are infinite: above all others they stand last."""
        self._ring[self._seconds :] = np.inf
        for width, _, first in self._spans.tolist():
            if width > 1:
                self._rows[first + min(width, self._seconds) : first + width] = np.inf


def held_over(seen: Floats, runs: list[tuple[int, int]], views: Views) -> Floats32:
    """The views of every second of a recording: (seconds, views, 2, columns).

    ``runs`` are (first, end) of stretches without a gap.
    """
    out = np.empty((len(seen), len(views), 2, seen.shape[1]), np.float32)
    for first, end in runs:
        held = Held(views)
        for at in range(first, end):
            out[at] = held.push(seen[at])
    return out
