"""Kept rows of seconds, and what stands at some of their ranks: the reference, in numpy.

To sort a row is dear, and most exchanges of a few of its values leave what stands at the ranks
as it is, or near by.  ``numba_standing`` counts and looks there; here each row with another value
is sorted again.  What stands there is the same.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from reveal_analyzer.arrays import Bools, Floats32, Indices, Ints16

Rows = tuple[Indices, Indices]  # of each kept row its view, and its way: upward, downward


class Standing(NamedTuple):
    """Of every kept row (columns, rows): ``picks`` (and as many ranks) are what stands there.

    ``below`` counts the row's values less than each, ``upto`` those that are not more; neither
    means anything where the row is ``stale``: then its picks are to be taken anew.
    """

    picks: Floats32
    below: Ints16
    upto: Ints16
    stale: Bools

    @classmethod
    def unknown(cls, columns: int, rows: int, ranks: int) -> Standing:
        shape = columns, rows, ranks
        counts = np.zeros(shape, np.int16), np.zeros(shape, np.int16)
        return cls(np.zeros(shape, np.float32), *counts, np.ones(shape[:2], np.bool_))

    def only(self, wanted: Indices | Bools) -> Standing:
        """That of these columns."""
        return Standing(
            self.picks[wanted], self.below[wanted], self.upto[wanted], self.stale[wanted]
        )

    def beside(self, other: Standing) -> Standing:
        """With the columns of another one after its own."""
        return Standing(
            np.concatenate([self.picks, other.picks]), np.concatenate([self.below, other.below]),
            np.concatenate([self.upto, other.upto]), np.concatenate([self.stale, other.stale]),
        )  # fmt: skip


def differing(new: Floats32, rows: Rows, still: Floats32) -> Bools:
    """Columns that in some of the seconds ``new`` (seconds, views, 2, columns) were not so."""
    unlike: Bools = (new[:, *rows] != still).any(axis=(0, 1))
    return unlike


def renew(
    new: Floats32, rows: Rows, columns: Indices, kept: Floats32, first: int, standing: Standing,
    ranks: Indices,
) -> None:  # fmt: skip
    """Put the new seconds of these columns into ``kept`` (columns, rows, places of a ring).

    The ring is full, or all rows are stale.  From the place ``first`` on; a row of which what
    stands at the ``ranks`` may be another, and is not found, is stale then.
    """
    coming = new[:, *rows][:, :, columns].transpose(2, 1, 0)
    places = np.arange(first, first + len(new)) % kept.shape[2]
    standing.stale[:] |= (kept[:, :, places] != coming).any(axis=-1)
    kept[:, :, places] = coming


def stand(ordered: Floats32, ranks: Indices, standing: Standing) -> None:
    """What stands at the ranks of the stale rows, which are here sorted: none is stale then."""
    standing.picks[standing.stale] = ordered[:, ranks]
    standing.stale[:] = False


def bound(
    picks: Floats32, sides: Rows, moving: Indices, still: Floats32, floors: Floats32
) -> tuple[Floats32, Floats32, Bools]:
    """Bounds and middle, as ``Ranges`` has them, and which of the moving columns are calm by now.

    ``picks`` (moving columns, rows, 7): lowest, what stands at the five ranks, highest; ``sides``
    are of each view its rows upward and downward; ``still`` (columns) is what a column that does
    not move has always been, ``floors`` (views) the least spread.
    """
    bounds = np.empty((floors.size, 4, still.size), np.float32)
    bounds[:, :2], bounds[:, 2:] = still, floors[:, None, None]
    middle = still.copy()
    for way, rows in enumerate(sides):
        spread = (picks[:, rows, 4] - picks[:, rows, 2]) / 2
        bounds[:, way, moving] = picks[:, rows, 1 if way else 5].T
        bounds[:, 2 + way, moving] = np.maximum(floors, spread).T
    middle[moving] = picks[:, sides[0][0], 3]
    first, ends = picks[:, 0, 0], picks[:, :, [0, -1]]
    calm: Bools = (ends == first[:, None, None]).all(axis=(1, 2))
    return bounds, middle, calm
