"""Views of the last seconds of one node: what a column sustained for k of the last w of them."""

from __future__ import annotations

import numpy as np

from reveal_analyzer.arrays import Floats, Floats32
from reveal_analyzer.kernels import backend
from reveal_analyzer.live.column_map import ColumnMap
from reveal_analyzer.live.settings import Views


class SustainedViews:
    """The last seconds, sorted column by column and kept sorted from second to second.

    Sorting ten rows every second would cost as much as the rest of the score.
    """

    def __init__(self, views: Views) -> None:
        widths = [width if width > 1 else 0 for width, _ in views]
        firsts = np.cumsum([0, *widths])
        self._spans = np.array([(*view, first) for view, first in zip(views, firsts, strict=False)])
        self._depth = max(width for width, _ in views)
        self._seconds = self._slot = 0
        self._ring: Floats32 = np.zeros((self._depth, 0), np.float32)
        self._rows: Floats32 = np.zeros((int(firsts[-1]), 0), np.float32)

    def push(self, values: Floats) -> Floats32:
        """Add a second (columns); return (views, 2, columns) sustained upward and downward."""
        if not self._seconds:
            self._start(values.size)
        out = np.empty((len(self._spans), 2, values.size), np.float32)
        self._seconds = min(self._seconds + 1, self._depth)
        position = self._slot, self._seconds
        slide_windows = backend.current().slide_windows
        slide_windows(self._ring, self._rows, self._spans, position, values, out)
        self._slot = (self._slot + 1) % self._depth
        return out

    def recent(self) -> Floats32:
        """Return the seconds that are known, oldest first: (seconds, columns)."""
        slots = (self._slot - self._seconds + np.arange(self._seconds)) % self._depth
        return self._ring[slots]

    def reset(self) -> None:
        """Drop all seconds, as no view may span a gap."""
        self._seconds = self._slot = 0

    def remap(self, column_map: ColumnMap) -> None:
        """Adopt a new set of columns."""
        if self._seconds:
            self._ring, self._rows = column_map.levels(self._ring), column_map.levels(self._rows)
            self._blank()

    def _start(self, columns: int) -> None:
        if self._ring.shape[1] != columns:
            self._ring = np.empty((self._depth, columns), np.float32)
            self._rows = np.empty((len(self._rows), columns), np.float32)
        self._blank()

    def _blank(self) -> None:
        """Set seconds that do not exist yet to infinity, so that they sort last."""
        self._ring[self._seconds :] = np.inf
        for width, _, first in self._spans.tolist():
            if width > 1:
                self._rows[first + min(width, self._seconds) : first + width] = np.inf
