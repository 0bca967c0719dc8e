"""The accepted past of one node, kept so that its ranges are cheap to take anew.

Taking them means sorting every column of five minutes.  So each column's seconds lie side by
side, in single precision (a value's seventh digit decides nothing), and a column that has
stood still all the time is not sorted at all: on most hosts that is every second one.  New
seconds wait in rows of their own until somebody asks: to put each among its column's would
touch a thousand places far apart.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from reveal_analyzer.live.ranges import Ranges, ranks
from reveal_analyzer.live.settings import LiveSettings
from reveal_analyzer.live.steps import Singles

Bools = NDArray[np.bool_]
_WAITING = 32  # seconds


class Past:
    """A ring of the last ``settings.keep`` seconds that were accepted."""

    def __init__(self, settings: LiveSettings) -> None:
        self._settings = settings
        # one row for a view of one second, where both directions are the value itself
        self._rows = [
            (at, way)
            for at, (width, _) in enumerate(settings.views)
            for way in (0, 1)
            if width > 1 or not way
        ]
        self._ways = tuple(np.array(self._rows).T)
        self._new: list[Singles] = []
        self._taken = 0
        self._begin(0)

    def _begin(self, columns: int) -> None:
        shape = columns, len(self._rows), self._settings.keep
        self._kept: Singles = np.zeros(shape, np.float32)
        self._still: Singles = np.zeros(columns, np.float32)
        self._moving: Bools = np.zeros(columns, np.bool_)

    def __len__(self) -> int:
        return min(self._taken + len(self._new), self._settings.keep)

    def append(self, views: Singles) -> None:
        """Take in a second's held values (views, 2, columns), which must not change later."""
        self._new.append(views)
        if len(self._new) >= min(_WAITING, self._settings.keep):
            self._take_in()

    def ranges(self) -> Ranges:
        """What the past covered; needs one second at least."""
        self._take_in()
        count = len(self)
        wanted = ranks(count)
        picks = np.empty((len(wanted), len(self._rows), len(self._kept)), np.float32)
        picks[:] = self._still
        moving = np.flatnonzero(self._moving)
        ordered = self._kept[moving, :, :count]
        ordered.sort(axis=-1)
        picks[:, :, moving] = ordered[:, :, wanted].T
        self._settle(moving, ordered)
        return Ranges.picked(self._both_ways(picks), self._settings)

    def move(self, source: NDArray[np.intp]) -> None:
        """Columns changed: where each came from, -1 for those that were 0 before."""
        self._take_in()
        if not self._taken:
            return
        new = source < 0
        self._kept, self._still = self._kept[source], self._still[source]
        self._moving = self._moving[source] & ~new
        self._kept[new], self._still[new] = 0.0, 0.0

    def _take_in(self) -> None:
        """Put the seconds that waited in their places."""
        if not self._new:
            return
        if not self._taken:
            self._begin(self._new[0].shape[-1])
            self._still[:] = self._new[0][0, 0]
        rows = np.array(self._new, np.float32)[:, self._ways[0], self._ways[1]]
        places = np.arange(self._taken, self._taken + len(rows)) % self._settings.keep
        self._kept[:, :, places] = rows.transpose(2, 1, 0)
        self._moving |= (rows != self._still).any(axis=(0, 1))
        self._taken += len(rows)
        self._new = []

    def _settle(self, moving: NDArray[np.intp], ordered: Singles) -> None:
        """Columns of which every second is now alike stand still again."""
        first = ordered[:, 0, 0]
        alike = (ordered[:, :, 0] == first[:, None]) & (ordered[:, :, -1] == first[:, None])
        calm = alike.all(axis=1)
        self._moving[moving[calm]] = False
        self._still[moving[calm]] = first[calm]

    def _both_ways(self, picks: Singles) -> Singles:
        """(5, rows, columns) to (5, views, 2, columns)."""
        place = {row: at for at, row in enumerate(self._rows)}
        views = range(len(self._settings.views))
        order = [place.get((at, way), place[at, 0]) for at in views for way in (0, 1)]
        return picks[:, order].reshape(len(picks), len(views), 2, -1)
