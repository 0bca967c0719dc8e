"""Reference of a job: the step time of its first two minutes, and the scatter of its readings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from reveal_analyzer.heartbeat.guards import (
    LEAST_REFERENCE_S,
    MOST_SCATTER,
    SAME_RHYTHM,
    is_timer,
)
from reveal_analyzer.heartbeat.scatter import (
    ReadingScatter,
    readings_scatter,
    scatter,
    step_scatter,
)
from reveal_analyzer.heartbeat.slowdown_percent import slowdown_percent
from reveal_analyzer.state.tree import StateError, StateTree, finite_array, number, section

WINDOWS = (10, 30, 60)
REFERENCE_S = 120
MOST_STEPS_S = 180  # with the minute before the first readings
LEAST_SCATTER = 0.5  # percent: least scatter for the width of an interval
_CERTAIN_S = 60  # seconds after which a reference is exact enough to tell a timer, or a scatter
_TIMER_SCATTER = 0.2  # percent: a smaller scatter is that of a timer, not of a computation
_STEP = "step"  # in a saved state: lengths of single steps
_MOST_WORK = 1.5  # times the work a second of the reference: a job that does more is not slowed


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
        """Half the width of the interval, in percent.

        Steps that are longer scatter by more of the reference's step, and fewer fit into a window.
        """
        longer = 1 + max(0.0, self.percent) / 100
        return float(2 * max(self.scatter, LEAST_SCATTER) * longer**1.5)


class StepReference:
    """The step time of a job, learned from its first healthy minutes.

    It belongs to the job and not to a lock: it is kept while the job is slower, whatever its
    rhythm does.  ``work`` is what its counter counted in a second, 0 if that is not known.
    """

    def __init__(self) -> None:
        self.period = 0.0  # s; 0 until it is known
        self.work = 0.0
        self._values: dict[int, list[float]] = {window: [] for window in WINDOWS}
        self._steps: list[float] = []  # s, one a second
        self._scatters: dict[int, ReadingScatter] = {}
        self._read_scatter = 0.0  # percent, of the readings over the shortest window

    def learn(self, periods: Mapping[int, float], work: float = 0.0) -> None:
        """Add one healthy second: the period (s) over each window, and the work of a second."""
        if self.is_learned:
            return
        for window, period in periods.items():
            if len(self._values[window]) < REFERENCE_S:
                self._values[window].append(period)
        self.work += (work - self.work) / max(1, len(self._values[self._shortest()]))
        self._evaluate()

    def learn_step(self, length: float) -> None:
        """Add how long (s) one of the last steps took: its scatter tells that of readings."""
        if not self.is_learned and len(self._steps) < MOST_STEPS_S:
            self._steps.append(length)

    @property
    def has_steps(self) -> bool:
        """Whether lengths of single steps were learned."""
        return bool(self._steps)

    def forget_last(self, seconds: int) -> None:
        """Forget the last seconds, in which the job was changing already."""
        if self.is_learned:
            return
        for values in (*self._values.values(), self._steps):
            del values[max(LEAST_REFERENCE_S, len(values) - seconds) :]
        self._evaluate()

    @property
    def is_learned(self) -> bool:
        """Whether the two minutes are over."""
        return len(self._values[self._shortest()]) >= REFERENCE_S

    def may_be(self, period: float, work: float) -> bool:
        """Return whether a rhythm may be that of this job, made slower by whatever amount.

        Steps far shorter than those of the reference are other steps.  So are those of a job that
        does more work a second than before.
        """
        is_busier = self.work > 0 and work > _MOST_WORK * self.work
        return 0 < SAME_RHYTHM[0] * self.period < period and not is_busier

    def unreadable_reason(self) -> str:
        """Return why there are no readings; empty if there are."""
        if not self.period:
            return "its baseline step time is being learned"
        if self._may_be_timer():
            return "its rhythm may be that of a timer"
        percent = self._read_scatter
        return f"its steps scatter by {percent:.1f} %" if percent > 100 * MOST_SCATTER else ""

    def is_timer(self) -> bool:
        """Return whether a timer paces the job, so that its step time says nothing about work."""
        is_certain = len(self._values[self._shortest()]) >= _CERTAIN_S
        return bool(self.period) and is_certain and self._may_be_timer()

    def readings(self, periods: Mapping[int, float]) -> tuple[WindowReading, ...]:
        """Return a reading for each window that is not shorter than those learned from."""
        if self.unreadable_reason():
            return ()
        return tuple(
            self._reading(window, period)
            for window, period in sorted(periods.items())
            if window in self._scatters
        )

    def save(self) -> StateTree:
        """Return the state: the period, and the values so far as deviations from ``base``."""
        firsts = [values[0] for values in self._values.values() if values]
        base = self.period or max(firsts, default=1.0)
        deviations = {
            str(window): (np.array(values) / base - 1).astype(np.float16)
            for window, values in (*self._values.items(), (_STEP, self._steps))
        }
        return {"period": self.period, "work": self.work, "base": base, "deviations": deviations}

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
        if _STEP in deviations:  # an earlier version saved none
            saved = finite_array(deviations, _STEP, np.float64, (None,))
            reference._steps = (base * (1 + saved[:MOST_STEPS_S])).tolist()
        reference._evaluate()
        # the values are rounded, the period is not
        reference.period = period if reference.period else 0.0
        # an earlier version saved no work
        reference.work = number(tree, "work") if "work" in tree else 0.0
        return reference

    def _evaluate(self) -> None:
        shortest = self._shortest()
        if len(self._values[shortest]) < LEAST_REFERENCE_S:
            return
        self.period = float(np.median(self._values[shortest]))
        least = scatter(self._values[shortest], shortest, self.period)
        self._read_scatter = least.percent
        longer = (window for window in WINDOWS if window > shortest)
        self._scatters = {shortest: least} | {
            window: self._longer_scatter(window, least.over(shortest, window)) for window in longer
        }
        steps = step_scatter(self._steps, self.period)
        # a young rhythm may turn out to be a multiple of the job's: its readings must be many first
        if steps is not None and len(self._values[shortest]) >= _CERTAIN_S:
            self._scatters = {
                window: min(found, self._of_steps(window, steps), key=lambda known: known.chance)
                for window, found in self._scatters.items()
            }

    def _of_steps(self, window: int, steps: ReadingScatter) -> ReadingScatter:
        """Return the scatter that steps leave in a window, more if its readings scatter by more.

        Steps that wander slowly are not independent.
        """
        found, values = steps.of_steps(window, self.period), self._values[window]
        if len(values) < LEAST_REFERENCE_S:
            return found
        return found.raised_by(readings_scatter(values, window, self.period))

    def _longer_scatter(self, window: int, least: ReadingScatter) -> ReadingScatter:
        """Return the scatter of a longer window: its own, at least what independent steps leave.

        Two minutes hold few long windows that do not overlap.
        """
        values = self._values[window]
        if len(values) < LEAST_REFERENCE_S:
            return least
        own = scatter(values, window, self.period)
        return ReadingScatter(max(own.percent, least.percent), least.independent)

    def _may_be_timer(self) -> bool:
        return self._read_scatter < _TIMER_SCATTER and is_timer(self.period)

    def _reading(self, window: int, period: float) -> WindowReading:
        shortest, found = self._shortest(), self._scatters[window]
        level = found.level(window, len(self._values[shortest]) + shortest)
        percent = slowdown_percent(period, self.period)
        return WindowReading(window, percent, found.percent, level)

    def _shortest(self) -> int:
        """Return the shortest window with enough values, else the one with most."""
        known = {window: min(len(self._values[window]), LEAST_REFERENCE_S) for window in WINDOWS}
        return max(WINDOWS, key=lambda window: (known[window], -window))
