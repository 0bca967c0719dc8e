"""Learning of one node: which part of a second joins the baseline, and when.

A second waits in quarantine.  What a fault changes in it is marked, in that second or afterwards,
and does not join.  All else does, whatever alarm is on.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from reveal_analyzer.arrays import Bools, Floats, Floats32, Indices
from reveal_analyzer.kernels.live import UNIT, ZERO
from reveal_analyzer.live.baseline import Baseline
from reveal_analyzer.live.column_map import ColumnMap, flagged
from reveal_analyzer.live.gate import CALM_S, ColumnGate, ScoreGate
from reveal_analyzer.live.new_levels import ColumnsBefore, NewLevels
from reveal_analyzer.live.quarantine import Quarantine, QuarantinedSecond
from reveal_analyzer.live.regimes import Regimes
from reveal_analyzer.live.settings import LiveSettings
from reveal_analyzer.state.tree import StateTree, section

_SUPPRESS_FROM = 45  # seconds of age before a column's own excess suppresses it
_ELEVATED = 0.5  # of its threshold: a score that is not learned at once while an alarm is on


class ScoredSecond(NamedTuple):
    """A second with the excess of its ``active`` columns: see ``kernels.live.score_second``.

    ``subsystems`` are the numbers of the columns' subsystems, ``ratios`` the scores relative to
    their thresholds and ``worst`` the highest of them, ``alarmed`` the subsystems of which another
    detector reports a fault, ``absent`` the positions of the columns without a value.
    """

    active: Indices
    subsystems: Indices
    views: Floats32
    outside: Floats32
    suppressed: Floats32
    scores: Floats
    ratios: Floats
    worst: float
    alarmed: Bools
    absent: Indices


class Learner:
    """The baseline of one node, and what may join it."""

    def __init__(self, settings: LiveSettings) -> None:
        self._settings = settings
        self.baseline = Baseline(settings)
        self.regimes = Regimes(settings.keep)
        self.gate = ColumnGate(settings)
        self.new_levels = NewLevels()
        self._score_gate = ScoreGate(settings)
        self._quarantine = Quarantine()
        self._alarm = False

    def start(self, columns: int) -> None:
        """Start with columns of which nothing is known; all are active."""
        self.baseline.start(columns)
        self.gate.start(columns)

    def add_unscored(self, views: Floats32) -> None:
        """Put a second into quarantine that could not be compared with anything."""
        self._quarantine.append(QuarantinedSecond(views))

    def add(self, scored: ScoredSecond, *, ready: bool, alarm: bool, opened: bool) -> None:
        """Put a second into quarantine and mark what may be a fault.

        ``alarm`` and ``opened`` are those of ``LiveScore.score``; while the node is not ``ready``
        there is none.
        """
        second = QuarantinedSecond(scored.views, scored.outside, scored.scores)
        self._quarantine.append(second)
        if scored.absent.size:
            second.leave_out(flagged(scored.absent, scored.active.size))
        if not ready:
            return
        begins, self._alarm = opened or (alarm and not self._alarm), alarm
        on = alarm or begins or scored.worst > 1
        idle = self.gate.idle and self._score_gate.idle
        if idle and not on:
            return  # nearly all seconds of nearly all nodes
        over = scored.ratios > 1
        elevated = (scored.ratios > _ELEVATED) & alarm
        out = _deviating(scored, over) if on else np.zeros(scored.active.size, np.bool_)
        if idle and not (begins or out.any() or elevated.any()):
            return  # an alarm is on, but no column deviates
        self._score_gate.update(over, elevated)
        self._mark(second, scored, out)
        if begins:
            self._mark_before(out)

    def _mark(self, second: QuarantinedSecond, scored: ScoredSecond, out: Bools) -> None:
        active, width = scored.active, self.gate.seconds.size
        missing = flagged(active[scored.absent], width)
        faulty = (scored.alarmed | (scored.ratios > 1))[scored.subsystems]
        self.gate.update(flagged(active[out], width), missing, flagged(active[faulty], width))
        second.leave_out(out & self.gate.young[active])
        second.mark_lasting(self.gate.lasting[active])
        second.mark_unlearned(self._score_gate.lasting)
        # what proves to last was no noise when it began
        begins, scores = self.gate.begins_to_last, self._score_gate.begins_to_last
        if begins.any() or scores.any():
            for earlier in self._quarantine.last(self._settings.transient + 1):
                earlier.mark_lasting(begins[active])
                earlier.mark_unlearned(scores)

    def _mark_before(self, out: Bools) -> None:
        """Mark the seconds before an opening, in which the fault was visible already."""
        own = np.maximum(self.baseline.own_excess[1], UNIT)
        for second in self._quarantine.last(self._settings.detection_delay + 1):
            deviating = out
            if second.excess is not None:
                deviating = out | (second.excess > own).any(axis=0)
            second.leave_out(deviating)
            second.mark_lasting(deviating)
            second.mark_unlearned(self._score_gate.on)

    def given_up(self) -> Indices:
        """Return the columns whose level begins to be learned as that of a fault.

        What merely changed while a fault of another subsystem lasts is learned beside what was
        normal before: both are normal from now on, such as the phases of a job.
        """
        chosen = np.flatnonzero(self.gate.given_up)
        return np.setdiff1d(chosen, self.new_levels.columns)  # the first level before counts

    def restore(self, before: ColumnsBefore, positions: Indices) -> None:
        """Restore the history of columns whose level from before has returned.

        ``positions`` are their positions among the active columns.
        """
        own_excess = before.own_excess.transpose(1, 2, 0)
        self.baseline.restore(positions, before.quantiles, own_excess)
        self.gate.reset(before.columns)
        # only the seconds in which the level was back may join the restored history: the present
        # one, and those before it
        width = self.baseline.own_excess.shape[-1]
        self._quarantine.leave_out(positions, width, but=CALM_S - 1)

    def release(self, hold: int, age: int) -> None:
        """Let seconds join the baseline until ``hold`` are left in quarantine."""
        for second in self._quarantine.released(hold):
            self.baseline.history.append(second.views, second.left_out)
            self.regimes.learn(second.views, second.left_out)
            if age > _SUPPRESS_FROM:
                self.baseline.learn_scores(second)

    def constant(self, active: Indices) -> tuple[Floats32, Bools]:
        """Return the level of each active column, and which have not left it anywhere.

        A column that is out, or in a learned new level, does not count as constant.
        """
        level, calm = self.baseline.constant_levels()
        for waiting in self._quarantine:
            calm &= (waiting.views == level).all(axis=(0, 1))
        calm = self.regimes.constant_in_all(level, calm)
        followed = self.gate.seconds > 0
        followed[self.new_levels.columns] = True
        return level, calm & ~followed[active]

    def save(self, middle: Floats32) -> StateTree:
        """Return what was learned; ``middle`` is that of the active columns."""
        return {
            "baseline": self.baseline.save(),
            "gate": self.gate.save(),
            "new_levels": self.new_levels.save(),
            "regimes": self.regimes.save(middle),
        }

    def load(self, tree: StateTree, columns: int, active: int) -> None:
        """Start with what was saved of so many columns, of which some are active.

        Samples of other workloads and levels from before may have been left out.
        """
        self.baseline.load(section(tree, "baseline"), active)
        self.gate.restore(section(tree, "gate"), columns)
        if "new_levels" in tree:
            history = self.baseline.history
            self.new_levels.restore(section(tree, "new_levels"), columns, history)
        if "regimes" in tree:
            views = len(self._settings.views)
            self.regimes.restore(section(tree, "regimes"), views, active)

    def adopt_table(self, source: Indices) -> None:
        """Adopt another table: previous index of each of its columns, -1 for new ones."""
        self.gate.remap(source)
        self.new_levels.adopt_table(source)

    def remap(self, column_map: ColumnMap) -> None:
        """Adopt another set of active columns."""
        self.baseline.remap(column_map)
        self.regimes.remap(column_map)
        self._quarantine.remap(column_map)


def _deviating(scored: ScoredSecond, over: Bools) -> Bools:
    """Return the columns that may show a fault while an alarm is on.

    In a subsystem over its threshold any excess counts, elsewhere one of more than a spread.
    """
    far: Bools = scored.suppressed[:2].max(axis=0) > UNIT
    if not over.any():
        return far
    outside: Bools = scored.outside.max(axis=0) > ZERO
    return far | (outside & over[scored.subsystems])
