"""What is usual for a job: the step time of its first two minutes, and how its readings scatter."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from reveal_analyzer.heartbeat.guards import LEAST_REFERENCE_S, STEADY, is_timer

WINDOWS = (10, 30, 60)
REFERENCE_S = 120
LEVEL, SPREADS = 1.5, 4.0  # percent, and of the job's own: what is a slowdown
LEAST_SCATTER = 0.5  # percent: what the interval allows for at least
_PUNCTUAL = 0.3  # percent of scatter: a clock's, not a computation's
_DEVIATION = 148.26  # a median deviation as one spread of a normal law, in percent


@dataclass(frozen=True)
class Reading:
    """How much slower the steps of a window (s) are than the reference, in percent.

    ``scatter`` is the job's own (one spread), ``level`` what is called a slowdown.
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
        """Half the interval, in percent."""
        return 2 * max(self.scatter, LEAST_SCATTER)


class Usual:
    """Learned once, from the first healthy minutes after a lock."""

    def __init__(self) -> None:
        self.reference = 0.0
        self._values: dict[int, list[float]] = {window: [] for window in WINDOWS}
        self._scatters: dict[int, float] = {}

    def learn(self, periods: dict[int, float]) -> None:
        """One healthy second: the period (s) over each window that could be read."""
        for window, period in periods.items():
            if len(self._values[window]) < REFERENCE_S:
                self._values[window].append(period)
                self._scatters = {}
        shortest = self._values[self._shortest()]
        if len(shortest) >= LEAST_REFERENCE_S and not self._scatters:
            self.reference = float(np.median(shortest))
            self._scatters = {window: self._scatter(window) for window in WINDOWS}

    @property
    def is_learned(self) -> bool:
        """Whether its minutes are over."""
        return len(self._values[self._shortest()]) >= REFERENCE_S

    def why_not(self) -> str:
        """Why nothing can be read; empty where something can."""
        if not self.reference:
            return "its usual step is being learned"
        scatter = self._scatters[self._shortest()]
        return f"its steps scatter by {scatter:.1f} %" if scatter > 100 * STEADY else ""

    def is_timer(self) -> bool:
        """Whether it steps by the clock: then it says nothing about work."""
        punctual = self.reference and self._scatters[self._shortest()] < _PUNCTUAL
        return bool(punctual) and is_timer(self.reference)

    def readings(self, periods: dict[int, float]) -> tuple[Reading, ...]:
        """Of each window of which enough has been seen to know its scatter."""
        if self.why_not():
            return ()
        made = []
        for window, period in sorted(periods.items()):
            if len(self._values[window]) >= LEAST_REFERENCE_S:
                scatter = self._scatters[window]
                level = max(LEVEL, SPREADS * scatter)
                percent = 100 * (period / self.reference - 1)
                made.append(Reading(window, percent, scatter, level))
        return tuple(made)

    def _shortest(self) -> int:
        """The shortest window of which enough is known, else the one of which most is."""
        known = {window: min(len(self._values[window]), LEAST_REFERENCE_S) for window in WINDOWS}
        return max(WINDOWS, key=lambda window: (known[window], -window))

    def _scatter(self, window: int) -> float:
        """One spread of the values of a window, in percent of the reference.

        The windows of two minutes are few that do not overlap: what steps that differ by chance
        leave of the scatter of a shorter window is the least to expect.
        """
        values = np.array(self._values[window])
        own = 0.0
        if values.size:
            off = np.abs(values - np.median(values))
            own = _DEVIATION * float(np.median(off)) / self.reference
        shortest = self._shortest()
        if window <= shortest:
            return own
        return max(own, self._scatter(shortest) * math.sqrt(shortest / window))
