"""Reference of a job: the step time of its first two minutes, and the scatter of its readings."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from reveal_analyzer.heartbeat.guards import LEAST_REFERENCE_S, MOST_SCATTER, is_timer
from reveal_analyzer.heartbeat.slowdown_percent import slowdown_percent
from reveal_analyzer.state.tree import StateError, StateTree, finite_array, number, section

WINDOWS = (10, 30, 60)
REFERENCE_S = 120
# a slowdown is at least this many percent, and this many times the job's own scatter
LEAST_SLOWDOWN, SLOWDOWN_SPREADS = 1.5, 4.0
LEAST_SCATTER = 0.5  # percent: least scatter for the width of an interval
_TIMER_SCATTER = 0.3  # percent: a smaller scatter is that of a timer, not of a computation
_PERCENT_PER_DEVIATION = 148.26  # median deviation to one spread of a normal law, in percent


@dataclass(frozen=True)
class WindowReading:
    """By how many percent the steps of a window (s) are slower than the reference.

    ``scatter`` is the job's own (one spread); a slowdown is more than ``level`` percent.
    """

    window: int
    percent: float
    scatter: float
    level: float

    @property
    def slower(self) -> bool:
        return self.percent > self.level

    @property
    def margin(self) -> float:
        """Half the width of the interval, in percent."""
        return 2 * max(self.scatter, LEAST_SCATTER)


class StepReference:
    """The step time of a job, learned once from its first healthy minutes after a lock."""

    def __init__(self) -> None:
        self.period = 0.0  # s; 0 until it is known
        self._values: dict[int, list[float]] = {window: [] for window in WINDOWS}
        self._scatters: dict[int, float] = {}

    def learn(self, periods: dict[int, float]) -> None:
        """Add one healthy second: the period (s) over each window that could be read."""
        for window, period in periods.items():
            if len(self._values[window]) < REFERENCE_S:
                self._values[window].append(period)
                self._scatters = {}
        shortest = self._values[self._shortest()]
        if len(shortest) >= LEAST_REFERENCE_S and not self._scatters:
            self.period = float(np.median(shortest))
            self._scatters = {window: self._scatter(window) for window in WINDOWS}

    @property
    def is_learned(self) -> bool:
        """Whether the two minutes are over."""
        return len(self._values[self._shortest()]) >= REFERENCE_S

    def unreadable_reason(self) -> str:
        """Return why there are no readings; empty if there are."""
        if not self.period:
            return "its baseline step time is being learned"
        scatter = self._scatters[self._shortest()]
        return f"its steps scatter by {scatter:.1f} %" if scatter > 100 * MOST_SCATTER else ""

    def is_timer(self) -> bool:
        """Return whether a timer paces the job, so that its step time says nothing about work."""
        exact = self.period and self._scatters[self._shortest()] < _TIMER_SCATTER
        return bool(exact) and is_timer(self.period)

    def readings(self, periods: dict[int, float]) -> tuple[WindowReading, ...]:
        """Return a reading for each window whose scatter is known, shortest first."""
        if self.unreadable_reason():
            return ()
        readings = []
        for window, period in sorted(periods.items()):
            if len(self._values[window]) >= LEAST_REFERENCE_S:
                scatter = self._scatters[window]
                level = max(LEAST_SLOWDOWN, SLOWDOWN_SPREADS * scatter)
                percent = slowdown_percent(period, self.period)
                readings.append(WindowReading(window, percent, scatter, level))
        return tuple(readings)

    def save(self) -> StateTree:
        """Return the state: the period, and the values so far as deviations from ``base``."""
        firsts = [values[0] for values in self._values.values() if values]
        base = self.period or max(firsts, default=1.0)
        deviations = {
            str(window): (np.array(values) / base - 1).astype(np.float16)
            for window, values in self._values.items()
        }
        return {"period": self.period, "base": base, "deviations": deviations}

    @classmethod
    def restored(cls, tree: StateTree) -> StepReference:
        """Return the reference of a saved state."""
        reference = cls()
        period, base = number(tree, "period"), number(tree, "base")
        if period < 0 or base <= 0:
            raise StateError("a step time must be above 0")
        deviations = section(tree, "deviations")
        for window in WINDOWS:
            saved = finite_array(deviations, str(window), np.float64, (None,))
            reference._values[window] = (base * (1 + saved[:REFERENCE_S])).tolist()
        reference.period = period
        if period:
            reference._scatters = {window: reference._scatter(window) for window in WINDOWS}
        return reference

    def _shortest(self) -> int:
        """Return the shortest window with enough values, else the one with most."""
        known = {window: min(len(self._values[window]), LEAST_REFERENCE_S) for window in WINDOWS}
        return max(WINDOWS, key=lambda window: (known[window], -window))

    def _scatter(self, window: int) -> float:
        """Return one spread of the values of a window, in percent of the reference.

        Two minutes hold few long windows that do not overlap.  The scatter of a long window is
        therefore at least what independent steps leave of the scatter of the shortest one.
        """
        values = np.array(self._values[window])
        own = 0.0
        if values.size:
            off = np.abs(values - np.median(values))
            own = _PERCENT_PER_DEVIATION * float(np.median(off)) / self.period
        shortest = self._shortest()
        if window <= shortest:
            return own
        return max(own, self._scatter(shortest) * math.sqrt(shortest / window))
