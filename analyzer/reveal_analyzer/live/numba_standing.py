"""What stands at some ranks of kept rows by compiled loops: what ``standing`` finds.

A value that comes and one that leaves move the counts below and up to what stands at a rank;
while the rank lies between the two counts, the same stands there.
"""

from __future__ import annotations

import numpy as np

from reveal_analyzer.compiling import kernel
from reveal_analyzer.live.standing import Bools, Rows, Standing
from reveal_analyzer.live.steps import Places, Singles


@kernel
def differing(new: Singles, rows: Rows, still: Singles) -> Bools:
    """As ``standing.differing``."""
    views, ways = rows
    unlike = np.zeros(still.size, np.bool_)
    for second in range(len(new)):
        for row in range(views.size):
            values = new[second, views[row], ways[row]]
            for column in range(still.size):
                unlike[column] |= values[column] != still[column]
    return unlike


@kernel
def renew(
    new: Singles, rows: Rows, columns: Places, kept: Singles, first: int, standing: Standing,
    ranks: Places,
) -> None:  # fmt: skip
    """As ``standing.renew``, but rows in which all picks still stand are not stale."""
    views, ways = rows
    for place in range(columns.size):
        for row in range(views.size):
            values, known = kept[place, row], not standing.stale[place, row]
            picks = standing.picks[place, row]
            less, most = standing.below[place, row], standing.upto[place, row]
            other = False
            for second in range(len(new)):
                at = first + second
                at = at - values.size if at >= values.size else at
                before, now = values[at], new[second, views[row], ways[row], columns[place]]
                values[at] = now
                if known and before != now:
                    other = True
                    for rank in range(ranks.size):
                        pick = picks[rank]
                        less[rank] += np.int16(now < pick) - np.int16(before < pick)
                        most[rank] += np.int16(now <= pick) - np.int16(before <= pick)
            if other:
                for rank in range(ranks.size):
                    moved = less[rank] > ranks[rank] or most[rank] <= ranks[rank]
                    standing.stale[place, row] |= moved


@kernel
def stand(ordered: Singles, ranks: Places, standing: Standing) -> None:
    """As ``standing.stand``."""
    number = 0
    for place in range(len(standing.stale)):
        for row in range(standing.stale.shape[1]):
            if not standing.stale[place, row]:
                continue
            values = ordered[number]
            for rank in range(ranks.size):
                value = values[ranks[rank]]
                standing.picks[place, row, rank] = value
                standing.below[place, row, rank] = np.searchsorted(values, value)
                standing.upto[place, row, rank] = np.searchsorted(values, value, side="right")
            standing.stale[place, row] = False
            number += 1
