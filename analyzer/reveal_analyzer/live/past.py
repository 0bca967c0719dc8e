"""The accepted past of one node, kept so that its ranges are cheap to take anew.

Taking them means sorting every column of five minutes.  So each column's seconds lie side by
side, and a column that has stood still all the time is neither sorted nor kept: on most hosts
that is every second one.  What stands at the ranks is kept, and only rows in which that may be
another are looked at again (``standing``).  New seconds wait in rows of their own until somebody
asks: to put each among its column's would touch a thousand places far apart.
"""

from __future__ import annotations

import numpy as np

from reveal_analyzer.arrays import Bools, Floats32, Indices
from reveal_analyzer.kernels import backend
from reveal_analyzer.kernels.order_statistics import RankedValues
from reveal_analyzer.live.ranges import Ranges, floors, picked
from reveal_analyzer.live.remap import Shift
from reveal_analyzer.live.settings import LiveSettings

_WAITING = 32  # seconds
_PICKS = 7


class Past:
    """A ring of the last ``settings.keep`` seconds that were accepted."""

    def __init__(self, settings: LiveSettings) -> None:
        self._settings = settings
        # one row for a view of one second, where both directions are the value itself
        rows = [
            (at, way)
            for at, (width, _) in enumerate(settings.views)
            for way in (0, 1)
            if width > 1 or not way
        ]
        views = range(len(settings.views))
        of_views, ways = (np.array(part, np.intp) for part in zip(*rows, strict=True))
        self._rows = of_views, ways
        upward = [rows.index((at, 0)) for at in views]
        downward = [rows.index((at, 1) if (at, 1) in rows else (at, 0)) for at in views]
        self._sides = np.array(upward, np.intp), np.array(downward, np.intp)
        self._floors = floors(settings)
        self._new: list[Floats32] = []
        self._taken = 0
        self._begin(0)

    def _begin(self, columns: int) -> None:
        self._still: Floats32 = np.zeros(columns, np.float32)
        self._moving: Indices = np.zeros(0, np.intp)  # the columns that have a place in _kept
        rows = self._rows[0].size
        self._kept: Floats32 = np.zeros((0, rows, self._settings.keep), np.float32)
        self._standing = RankedValues.unknown(0, rows, _PICKS)

    def __len__(self) -> int:
        return min(self._taken + len(self._new), self._settings.keep)

    def append(self, views: Floats32) -> None:
        """Take in a second's held values (views, 2, columns), which must not change later."""
        self._new.append(views)
        if len(self._new) >= min(_WAITING, self._settings.keep):
            self._take_in()

    def ranges(self) -> Ranges:
        """What the past covered; needs one second at least."""
        self._take_in()
        self._order()
        bounds, middle, calm = backend.current().range_bounds(
            self._standing.selected, self._sides, self._moving, self._still, self._floors
        )
        if calm.any():
            self._rest(calm)
        return Ranges(bounds, middle)

    def still(self) -> tuple[Floats32, Bools]:
        """Where each column has been since it last moved, and which have not in all that time."""
        self._take_in()
        still = np.ones(self._still.size, np.bool_)
        still[self._moving] = False
        return self._still, still

    def _order(self) -> None:
        """Sort where it is not known what stands at the ranks."""
        stale = self._standing.stale
        if stale.any():
            rows = self._kept[stale, : len(self)]
            rows.sort(axis=-1)
            backend.current().read_ranks(rows, picked(len(self)), self._standing)

    def move(self, shift: Shift) -> None:
        """Columns changed."""
        self._take_in()
        if not self._taken:
            return
        self._still = shift.levels(self._still)
        # the last is nobody's: that of columns that had no place, too
        place = np.full(max(shift.source.max(initial=-1), self._moving.max(initial=-1)) + 2, -1)
        place[self._moving] = np.arange(self._moving.size)
        before = place[shift.source]
        self._moving = np.flatnonzero(before >= 0)
        self._only(before[self._moving])

    def _take_in(self) -> None:
        """Put the seconds that waited in their places."""
        if not self._new:
            return
        if not self._taken:
            self._begin(self._new[0].shape[-1])
            self._still[:] = self._new[0][0, 0]
        use, new = backend.current(), np.array(self._new, np.float32)
        self._add(use.differing(new, self._rows, self._still))
        keep, ranks = self._settings.keep, picked(self._settings.keep)
        if self._taken < keep:  # the ranks become others
            self._standing.stale[:] = True
        first = self._taken % keep
        use.store_seconds(new, self._rows, self._moving, self._kept, first, self._standing, ranks)
        self._taken += len(new)
        self._new = []

    def _add(self, moved: Bools) -> None:
        """Columns that have stood still until now get a place, with what they were so far."""
        moved[self._moving] = False
        fresh = np.flatnonzero(moved)
        if fresh.size:
            shape = fresh.size, *self._kept.shape[1:]
            past = np.broadcast_to(self._still[fresh][:, None, None], shape)
            self._moving = np.concatenate([self._moving, fresh])
            self._kept = np.concatenate([self._kept, past])
            unknown = RankedValues.unknown(fresh.size, self._kept.shape[1], _PICKS)
            self._standing = self._standing.concat(unknown)

    def _rest(self, calm: Bools) -> None:
        """Columns of which every second is now alike stand still again."""
        self._still[self._moving[calm]] = self._standing.selected[calm, 0, 0]
        self._moving = self._moving[~calm]
        self._only(~calm)

    def _only(self, wanted: Indices | Bools) -> None:
        """Go on with these of the columns that had a place."""
        self._kept, self._standing = self._kept[wanted], self._standing.select(wanted)
