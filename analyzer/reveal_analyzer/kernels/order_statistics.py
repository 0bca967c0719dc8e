"""Values at given ranks of rows of kept seconds: the numpy reference.

Sorting a row is expensive, and replacing a few of its values mostly leaves the values at the ranks
unchanged or near.  ``numba_order_statistics`` therefore counts and searches from there; this
module sorts each changed row again.  Both find the same values.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from reveal_analyzer.arrays import Bools, Floats32, Indices, Ints16

KeptRows = tuple[Indices, Indices]  # view and direction (0 upward, 1 downward) of each kept row


class RankedValues(NamedTuple):
    """Values at the ranks of every kept row (columns, rows).

    ``selected`` (columns, rows, ranks) are the values.  ``below`` counts the values of the row that
    are less than each, ``not_above`` those that are less or equal.  A ``stale`` row must be ranked
    again; its other fields mean nothing.
    """

    selected: Floats32
    below: Ints16
    not_above: Ints16
    stale: Bools

    @classmethod
    def unknown(cls, columns: int, rows: int, ranks: int) -> RankedValues:
        """Return stale rows."""
        shape = columns, rows, ranks
        counts = np.zeros(shape, np.int16), np.zeros(shape, np.int16)
        return cls(np.zeros(shape, np.float32), *counts, np.ones(shape[:2], np.bool_))

    def select(self, chosen: Indices | Bools) -> RankedValues:
        """Return the rows of these columns."""
        return RankedValues(
            self.selected[chosen], self.below[chosen], self.not_above[chosen], self.stale[chosen]
        )

    def concat(self, other: RankedValues) -> RankedValues:
        """Return these columns followed by those of ``other``."""
        return RankedValues(
            np.concatenate([self.selected, other.selected]),
            np.concatenate([self.below, other.below]),
            np.concatenate([self.not_above, other.not_above]),
            np.concatenate([self.stale, other.stale]),
        )


def differing(new: Floats32, rows: KeptRows, levels: Floats32) -> Bools:
    """Return which columns left their level in any of the seconds (seconds, views, 2, columns)."""
    unequal: Bools = (new[:, *rows] != levels).any(axis=(0, 1))
    return unequal


def store_seconds(
    new: Floats32,
    rows: KeptRows,
    columns: Indices,
    kept: Floats32,
    first: int,
    ranked: RankedValues,
    ranks: Indices,
) -> None:
    """Store the new seconds of these columns in ``kept`` (columns, rows, slots of a ring).

    ``first`` is the slot of the first new second.  The ring is full, or all rows are stale.  A row
    becomes stale if its values at the ``ranks`` may have changed and the new ones were not found.
    """
    incoming = new[:, *rows][:, :, columns].transpose(2, 1, 0)
    slots = np.arange(first, first + len(new)) % kept.shape[2]
    ranked.stale[:] |= (kept[:, :, slots] != incoming).any(axis=-1)
    kept[:, :, slots] = incoming


def read_ranks(ordered: Floats32, ranks: Indices, ranked: RankedValues) -> None:
    """Read the values at the ranks of the stale rows, which ``ordered`` holds sorted."""
    ranked.selected[ranked.stale] = ordered[:, ranks]
    ranked.stale[:] = False


def range_bounds(
    selected: Floats32, sides: KeptRows, varying: Indices, levels: Floats32, floors: Floats32
) -> tuple[Floats32, Floats32, Bools]:
    """Return bounds and middle, as in ``Ranges``, and which varying columns are constant by now.

    ``selected`` (varying columns, rows, 7) are lowest, the values at the five ranks, and highest.
    ``sides`` are the rows upward and downward of each view.  ``levels`` (columns) are the values of
    the columns that do not vary, ``floors`` (views) the least spreads.
    """
    bounds = np.empty((floors.size, 4, levels.size), np.float32)
    bounds[:, :2], bounds[:, 2:] = levels, floors[:, None, None]
    middle = levels.copy()
    for way, rows in enumerate(sides):
        spread = (selected[:, rows, 4] - selected[:, rows, 2]) / 2
        bounds[:, way, varying] = selected[:, rows, 1 if way else 5].T
        bounds[:, 2 + way, varying] = np.maximum(floors, spread).T
    middle[varying] = selected[:, sides[0][0], 3]
    first, ends = selected[:, 0, 0], selected[:, :, [0, -1]]
    constant: Bools = (ends == first[:, None, None]).all(axis=(1, 2))
    return bounds, middle, constant
