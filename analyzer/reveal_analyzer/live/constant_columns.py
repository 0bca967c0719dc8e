"""Columns that rest: what has long stood still is neither held nor judged until it moves.

On most hosts that is every second column.  What was learned of one can be told from its level
alone, so that it goes on as if it had been held all the time.  To take it in costs as much as a
second of the node: one that moved after it was put to rest is not so soon put to rest again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from reveal_analyzer.arrays import Bools, Floats, Floats32, Indices
from reveal_analyzer.derive.columns import Column, Plan, places_before
from reveal_analyzer.derive.deriver import Second
from reveal_analyzer.kernels import backend
from reveal_analyzer.live.remap import Shift
from reveal_analyzer.live.scaling import Weighing
from reveal_analyzer.live.settings import LiveSettings

WORTH = 16  # columns that rest together: for fewer the others are not moved


@dataclass(frozen=True, eq=False)
class Resting:
    """The columns of a plan, and which of them are judged.

    ``rests`` and ``level``, the value that a column rests at, are of all columns; ``places`` are
    those that do not rest, and ``weighing`` is theirs.  ``woken`` have moved after they rested.
    """

    plan: Plan
    whole: Weighing
    rests: Bools
    woken: Bools
    level: Floats
    places: Indices
    weighing: Weighing

    @classmethod
    def none(cls, second: Second, settings: LiveSettings) -> Resting:
        """All columns are judged."""
        whole, width = Weighing(second, settings), len(second.plan.columns)
        rests, woken = np.zeros(width, np.bool_), np.zeros(width, np.bool_)
        return cls(second.plan, whole, rests, woken, np.zeros(width), np.arange(width), whole)

    @property
    def columns(self) -> tuple[Column, ...]:
        """All of them."""
        return self.plan.columns

    @property
    def labels(self) -> tuple[str, ...]:
        """Of the columns that are judged."""
        return tuple(self.plan.labels[at] for at in self.places)

    @property
    def seen(self) -> Floats32:
        """The levels of the columns that are judged, as they were when they rested."""
        return self.weighing.seen(self.level[self.places]).astype(np.float32)

    def usual(self) -> Floats:
        """The levels of all columns, to the precision of what is learned."""
        return self.whole.base_units(self.whole.seen(self.level).astype(np.float32))

    def following(self, second: Second, settings: LiveSettings) -> Resting:
        """The same of another plan's columns, of which new ones are judged at once."""
        made = Resting.none(second, settings)
        source = made.source(self)
        rests, woken = ((source >= 0) & held[source] for held in (self.rests, self.woken))
        level = np.where(source >= 0, self.level[source], 0.0)
        return replace(made, woken=woken, level=level)._with(rests)

    def source(self, before: Resting) -> Indices:
        """Where each column of all was before, -1 where it was not."""
        return places_before(self.plan.labels, before.plan.labels)

    def stirred(self, values: Floats) -> Resting:
        """After a second of these values, in which a missing one is no news."""
        found = backend.current().changed_columns(values, self.level, self.rests)
        if not found.size:
            return self
        rests, woken = self.rests.copy(), self.woken.copy()
        rests[found], woken[found] = False, True
        return replace(self, woken=woken)._with(rests)

    def rested(self, calm: Bools, values: Floats, seen: Floats32, *, again: bool) -> Resting:
        """Those of the judged columns that are ``calm`` rest, at what they are in this second.

        ``seen`` is what was held of the judged ones; ``again``: woken ones, too.
        """
        level = np.where(np.isnan(values), 0.0, values)
        same = self.weighing.seen(level[self.places]).astype(np.float32) == seen
        chosen = self.places[calm & same & (again | ~self.woken[self.places])]
        if chosen.size < WORTH:
            return self
        rests = self.rests.copy()
        rests[chosen] = True
        return replace(self, level=np.where(rests & ~self.rests, level, self.level))._with(rests)

    def shift(self, before: Resting) -> Shift:
        """From the columns judged before to those judged now."""
        return Shift(places_before(self.labels, before.labels), self.seen)

    def _with(self, rests: Bools) -> Resting:
        places = np.flatnonzero(~rests)
        weighing = self.whole.only(places)
        return replace(self, rests=rests, places=places, weighing=weighing)
