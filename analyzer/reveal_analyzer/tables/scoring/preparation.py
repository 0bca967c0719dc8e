"""Values as they are scored and ranked: without what is a job's own, and without lasting changes.

A profile of days with sharp edges is subtracted (``season``), events that recur by the clock are
removed (``recurring``), and a level that changes and stays is moved back (``level_shifts``); the
change itself is reported once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reveal_analyzer.arrays import Floats
from reveal_analyzer.tables.scoring.event_trains import Clock
from reveal_analyzer.tables.scoring.level_shifts import LevelShift, ShiftFinder
from reveal_analyzer.tables.scoring.recurring import RecurringEvents
from reveal_analyzer.tables.scoring.rows import TableRows
from reveal_analyzer.tables.scoring.scales import Scale, Spreads
from reveal_analyzer.tables.scoring.season import Flattened, NormalLevel, learn_level


@dataclass(frozen=True)
class Prepared:
    """A block's values (n, m) as they are scored, and their spreads.

    ``known_level`` is their normal level, if the preparation learned it.
    """

    values: Floats
    spreads: Spreads
    known_level: NormalLevel | None

    def level(self, rows: TableRows) -> NormalLevel:
        """Return the normal level of the values."""
        if self.known_level is not None:
            return self.known_level
        period_ns = rows.table.period_ns
        return learn_level(rows.times, self.values, period_ns, self.spreads, newest=False)


class Preparation:
    """Prepares the blocks of a table, in their order."""

    def __init__(self, rows: TableRows) -> None:
        self._names = rows.table.names
        self._times, self._period_ns = rows.times, rows.table.period_ns
        self._clock = Clock.of(rows.times, rows.since, rows.table.period_ns)
        self._baseline_rows = rows.baseline_rows
        # beside a baseline a level that changes is abnormal, and is compared with it
        self._shifts = None if rows.baseline_rows else ShiftFinder(len(rows))

    def prepared(self, values: Floats) -> Prepared:
        """Return the values (n, m) of the next block as they are scored."""
        spreads = Spreads.of(values)
        flat = Flattened.of(self._times, values, self._period_ns, spreads)
        scale = spreads.scale() if flat.values is values else None
        own = self._recurring(flat.values, scale).removed(flat.values, self._clock)
        out = values
        if own is not flat.values or flat.edges.any():
            # a smooth profile is left to the views that know it
            out = np.where(flat.edges, own, values + (own - flat.values))
        out = self._shifts.settled(out) if self._shifts else out
        if out is values:
            return Prepared(out, spreads, flat.level)
        return Prepared(out, Spreads.of(out), None)

    def _recurring(self, values: Floats, scale: Scale | None) -> RecurringEvents:
        found = RecurringEvents.learn(values, self._clock, scale)
        if not self._baseline_rows:
            return found
        # what recurs in the run alone is not normal by the baseline
        return found.known_before(self._baseline_rows, self._clock)

    def shifts(self) -> list[LevelShift]:
        """Return the lasting changes of level in the blocks so far."""
        return self._shifts.shifts(self._names) if self._shifts else []
