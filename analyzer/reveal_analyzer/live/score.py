"""The live score of one node: seconds in, scores relative to thresholds out."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from reveal_analyzer.arrays import Bools, Floats, Floats32, Indices, Ints, has_nan
from reveal_analyzer.derive.columns import Column, ColumnPlan, previous_indices
from reveal_analyzer.derive.deriver import Second
from reveal_analyzer.kernels import backend
from reveal_analyzer.live.column_map import ColumnMap
from reveal_analyzer.live.constant_columns import ConstantColumns
from reveal_analyzer.live.learner import Learner, ScoredSecond
from reveal_analyzer.live.missing import MissingColumns
from reveal_analyzer.live.normal import NormalLevels
from reveal_analyzer.live.packing import pack
from reveal_analyzer.live.present import PresentSecond
from reveal_analyzer.live.ranges import Ranges
from reveal_analyzer.live.reference import ColumnReference
from reveal_analyzer.live.regimes import workloads
from reveal_analyzer.live.saved import SavedScore
from reveal_analyzer.live.scaling import ColumnScaling, by_subsystem
from reveal_analyzer.live.settings import LiveSettings
from reveal_analyzer.live.views import SustainedViews
from reveal_analyzer.state.tree import StateTree
from reveal_contract.metric import Subsystem

log = logging.getLogger(__name__)

# sections of a saved state that may be left out, in this order, if it is too large
OPTIONAL = (("learned", "regimes"), ("learned", "new_levels"))

_EARLY_QUARANTINE = 3  # seconds, while the node is learned
_CONSTANT_CHECK = 120  # interval in which constant columns are searched
_CONSTANT_AGAIN = 3600  # and in which reactivated columns are searched as well

_NOTHING: Indices = np.zeros(0, np.intp)
_NO_SUBSYSTEM: Bools = np.zeros(len(Subsystem), np.bool_)


class Scored(NamedTuple):
    """The scores of one second.

    ``over`` is score / threshold by subsystem (more than 1 is anomalous).  ``excess`` (2, columns)
    is the suppressed distance outside the range, upward and downward; ``weighted`` (columns) the
    same weighted by harm.  ``unobserved`` (columns) have not been read for more than 3 s.
    """

    ready: bool
    over: Mapping[Subsystem, float] = MappingProxyType({})
    excess: Floats32 = np.zeros((2, 0), np.float32)
    weighted: Floats32 = np.zeros(0, np.float32)
    unobserved: Bools = np.zeros(0, np.bool_)

    @property
    def worst(self) -> float:
        return max(self.over.values(), default=0.0)

    @property
    def anomalous(self) -> bool:
        return self.ready and self.worst > 1.0


class LiveScore:
    """Learns the baseline of one node and scores its seconds against it.

    Ranges are refitted every ``refit`` seconds, offset by ``phase``, so that nodes which started
    together do not refit in the same second.  ``adopt_table`` comes first in every second, then
    ``score``, then ``reference``, ``deviation`` and ``over``, which are about that second.
    """

    def __init__(self, settings: LiveSettings, phase: int = 0) -> None:
        self.settings = settings
        self._phase = phase
        self.age = 0
        self._normal = NormalLevels(settings)
        self._state: ConstantColumns | None = None
        self._views = SustainedViews(settings.views)
        self._learner = Learner(settings)
        self._missing = MissingColumns()
        self._present = PresentSecond()
        self._saved: SavedScore | None = None  # until the first second
        self._suppressed: Collection[Subsystem] = ()
        self._alarmed: Bools = _NO_SUBSYSTEM

    @property
    def columns(self) -> tuple[Column, ...]:
        """Return all columns, constant ones included."""
        return self._state.columns if self._state else ()

    @property
    def cpus(self) -> int:
        """Return the number of CPUs of the node, derived from its channels."""
        return self._scaling.cpus

    @property
    def learning(self) -> bool:
        return self.age <= self.settings.warmup

    @property
    def ranges(self) -> Ranges | None:
        """Return the ranges of the active columns; None before there is a history."""
        return self._normal.ranges

    @property
    def thresholds(self) -> Floats:
        """Return the threshold of each subsystem."""
        return self._learner.baseline.thresholds

    @property
    def gated_seconds(self) -> Ints:
        """Return for how many seconds each of all columns has been out of its normal range.

        For up to ``give_up`` seconds it is left out of the baseline.  From then on its new level is
        learned, and the seconds count on until the level from before returns.
        """
        levels, seconds = self._learner.new_levels, self._learner.gate.seconds
        if levels.before is None:
            return seconds
        seconds = seconds.copy()
        seconds[levels.columns] = levels.seconds + self.settings.give_up + 1
        return seconds

    def score(
        self,
        second: Second,
        *,
        alarm: bool = False,
        alarmed: Collection[Subsystem] = (),
        opened: bool = False,
        suppressed: Collection[Subsystem] = (),
        values: Floats | None = None,
    ) -> Scored:
        """Score one second whose table was adopted; what is normal in it joins the baseline later.

        ``alarm``: another detector (a certain signature, a slowdown, an open case) reports a fault
        in this second; ``alarmed``: of which subsystems, as far as it is known.  ``opened``: a case
        opened since the last second.  Its fault was visible before, so what deviates is left out of
        the seconds before, too.  The score of a ``suppressed`` subsystem does not exceed its
        threshold.  ``values`` are those of the second that may be scored, if not all may.
        """
        self.age += 1
        values = second.values if values is None else values
        self._activate(self._columns.activate_changed(values))
        self._missing.update(second)
        self._suppressed = suppressed
        active = self._columns.active
        scaled = self._scaling.scale(values[active])
        absent = np.flatnonzero(np.isnan(scaled)) if has_nan(scaled) else _NOTHING
        views = self._sustained(scaled, absent)
        unobserved = self._missing.unobserved
        self._present.update(self._columns, views, active[absent], unobserved)
        if self.ranges is None:  # nothing to compare with yet: learn everything
            self._learner.add_unscored(views)
            self._learner.release(_EARLY_QUARANTINE, self.age)
            return Scored(ready=False, unobserved=unobserved)
        self._alarmed = _flags(alarmed) if alarmed else _NO_SUBSYSTEM
        scored = self._score(views, absent, alarm=alarm, opened=opened)
        if self._due(_CONSTANT_CHECK) and self._is_half_known():
            self._deactivate_constant(values)
        return scored

    def reset_recent(self) -> None:
        """Drop the last seconds, as no view may span a gap."""
        self._views.reset()
        if self._saved is not None:
            self._saved = self._saved.without_recent()

    def save(self) -> StateTree:
        """Return what was learned, for ``restore`` of another process; empty while it is little.

        Seconds in quarantine are left out.  ``OPTIONAL`` names the sections that may be removed.
        """
        if self._saved is not None:  # no second has come since: another process may continue it
            return {**self._saved.tree, "age": self.age}
        if self.ranges is None or self._state is None:
            return {}
        middle = self.ranges.middle
        return {
            "age": self.age,
            "columns": self._columns.save(),
            "learned": self._learner.save(middle),
            "middle": middle,
            "recent": pack(self._views.recent(), middle),
        }

    def restore(self, tree: StateTree) -> None:
        """Continue with what was saved, from the next second on; raises ``StateError``.

        The excess of a column in the next seconds is that of the process that saved it, up to 2 %
        and 0.3 spreads: values are rounded, and seconds in quarantine are not saved.
        """
        if tree:
            self._saved = SavedScore.of(tree, self.settings)
            self.age = self._saved.age

    def baseline(self) -> Floats:
        """Return the normal level of each column in base units; NaN before there is a history."""
        if self.ranges is None:
            return np.full(len(self.columns), np.nan)
        return self._normal.baseline

    def highest(self) -> Floats:
        """Return the highest level that each column sustained for 2 of 3 s, in base units.

        A condition of a signature must last: a burst of one second does not raise this level.
        """
        if self.ranges is None:
            return np.full(len(self.columns), np.inf)
        return self._normal.highest

    def reference(self, columns: Indices) -> ColumnReference:
        """Return what is normal for ``columns`` (indices among all) now, for a case to keep.

        What a fault changed is not learned within ``give_up`` seconds, so in the first seconds of
        a case this is what was normal before it.  For a column in a learned new level it is that
        level.  Before there is a history no value deviates from it.
        """
        return self._normal.reference(self._columns, self._learner.baseline, columns)

    @property
    def plan(self) -> ColumnPlan:
        """The columns of the present second."""
        return self._columns.plan

    def deviation(self, reference: ColumnReference) -> Floats32:
        """Return how far this second is from a reference: weighted excess of its columns (n,).

        It is suppressed and weighted as in the score, and 0 for a column without a value.
        """
        return self._present.deviation(reference)

    def placed(self, reference: ColumnReference, weighted: Floats32) -> Floats32:
        """Return values of a reference's columns (n,) by column of the node, 0 elsewhere."""
        return self._present.placed(reference, weighted)

    def indices(self, reference: ColumnReference) -> Indices:
        """Return the index of each column of a reference, -1 where the node has it no more."""
        return self._present.indices(reference)

    def over(self, weighted: Floats32, thresholds: Floats | None = None) -> dict[Subsystem, float]:
        """Return score / threshold by subsystem for a weighted excess of all columns (columns,).

        The thresholds are those of now unless others are given.
        """
        means = self._columns.whole.means(weighted)
        ratios = means / (self.thresholds if thresholds is None else thresholds)
        return by_subsystem(self._capped(ratios))

    def _sustained(self, scaled: Floats, absent: Indices) -> Floats32:
        """Return the views of this second; a missing value counts as within its range."""
        if absent.size and self.ranges is not None:
            scaled[absent] = self.ranges.middle[absent]
        views = self._views.push(scaled)
        if self.ranges is None or self._due(self.settings.refit):
            self._fit()
        if absent.size and self.ranges is not None:
            views[:, :, absent] = self.ranges.bounds[:, :2, absent]
        return views

    def _score(self, views: Floats32, absent: Indices, *, alarm: bool, opened: bool) -> Scored:
        assert self.ranges is not None, "there is a history"
        scaling, learner, ready = self._scaling, self._learner, not self.learning
        outside, suppressed, scores = backend.current().score_second(
            views, self.ranges.bounds, learner.baseline.own_excess[1], scaling.weights,
            scaling.groups,
        )  # fmt: skip
        ratios = self._capped(scores / self.thresholds)
        self._follow_new_levels()
        active = self._columns.active
        whole = backend.current().scatter(suppressed, active, len(self.columns))
        over = by_subsystem(ratios)
        second = ScoredSecond(
            active, scaling.subsystems, views, outside, suppressed, scores, ratios,
            max(over.values()), self._alarmed, absent,
        )  # fmt: skip
        learner.add(second, ready=ready, alarm=alarm, opened=opened)
        self._keep_given_up()
        learner.release(self.settings.quarantine if ready else _EARLY_QUARANTINE, self.age)
        return Scored(ready, over, whole[:2], whole[2], self._missing.unobserved)

    def _capped(self, ratios: Floats) -> Floats:
        """Return score ratios (subsystems,), those of suppressed subsystems at most 1."""
        if not self._suppressed:
            return ratios
        capped: Floats = np.where(_flags(self._suppressed), np.minimum(ratios, 1.0), ratios)
        return capped

    def _keep_given_up(self) -> None:
        """Keep what was normal for the columns whose new level is learned from now on."""
        if self._learner.gate.idle:
            return
        columns = self._learner.given_up()
        if not columns.size:
            return
        before = self._normal.before(self._columns, self._learner.baseline, columns)
        self._learner.new_levels.add(before)

    def _follow_new_levels(self) -> None:
        """Restore what was normal for the columns whose earlier level has returned."""
        levels = self._learner.new_levels
        before = levels.before
        if before is None:
            return
        excess = before.excess(self._present.views_of(before.columns))
        returned = levels.update(excess, self._present.is_missing(before.columns))
        if returned is not None:
            self._learner.restore(returned, self._columns.positions[returned.columns])
            self._fit()

    def _due(self, period: int) -> bool:
        return (self.age + self._phase) % period == 0

    def _fit(self) -> None:
        self._normal.fit(self._learner.baseline, self._columns)

    @property
    def _columns(self) -> ConstantColumns:
        assert self._state is not None, "adopt_table comes before the first second"
        return self._state

    @property
    def _scaling(self) -> ColumnScaling:
        """Return the scaling of the active columns."""
        return self._columns.scaling

    def adopt_table(self, second: Second) -> None:
        """Adopt the columns of this second's table; a new column was 0 before."""
        previous = self._state
        if previous is None:
            self._start(second)
        elif second.plan is not previous.plan:
            self._state = previous.for_table(second, self.settings)
            source = self._state.source(previous)
            self._learner.adopt_table(source)
            self._missing.remap(source)
            self._remap(previous)
        else:
            return
        # another table may mean other workloads, whose sample joins the history again
        for views in self._learner.regimes.enter(workloads(second.plan.channels)):
            self._learner.baseline.history.append(views)
        self._normal.adopt_table(self._columns)
        self._fit()

    def _start(self, second: Second) -> None:
        """Start with the columns of the first second, and with what was saved, if it fits them."""
        saved, self._saved = self._saved, None
        if saved is not None and saved.columns.fits(second):
            self._continue(second, saved)
        else:
            if saved is not None:
                log.warning("the node has another size now: its saved baseline is dropped")
                self.age = 0
            self._state = ConstantColumns.none(second, self.settings)
            self._learner.start(len(self.columns))
        self._missing.start(len(self.columns))

    def _continue(self, second: Second, saved: SavedScore) -> None:
        columns = ConstantColumns.restored(second, self.settings, saved.columns)
        self._state, self._learner, self._views = columns, saved.learner, saved.views(self.settings)
        if columns.plan.labels == saved.columns.labels:
            return  # nearly always: everything has its place already
        active = previous_indices(columns.labels, saved.columns.active)
        column_map = ColumnMap(active, columns.scaled_levels)
        self._views.remap(column_map)
        self._learner.adopt_table(previous_indices(columns.plan.labels, saved.columns.labels))
        self._learner.remap(column_map)

    def _activate(self, columns: ConstantColumns) -> None:
        """Continue with another set of active columns of the same table."""
        if columns is not self._state:
            previous, self._state = self._columns, columns
            self._remap(previous)

    def _remap(self, previous: ConstantColumns) -> None:
        """Move everything learned to the active columns of now."""
        column_map = self._columns.column_map(previous)
        self._views.remap(column_map)
        self._learner.remap(column_map)
        self._normal.remap(column_map)

    def _is_half_known(self) -> bool:
        return 2 * len(self._learner.baseline.history) >= self.settings.keep

    def _deactivate_constant(self, values: Floats) -> None:
        """Deactivate columns that have never left their level, wherever seconds are kept."""
        level, calm = self._learner.constant(self._columns.active)
        again = self._due(_CONSTANT_AGAIN)
        self._activate(self._columns.deactivate(calm, values, level, again=again))


def _flags(subsystems: Collection[Subsystem]) -> Bools:
    return np.array([subsystem in subsystems for subsystem in Subsystem], np.bool_)
