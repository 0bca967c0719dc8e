"""The live score of one node: seconds in, scores relative to thresholds out."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from itertools import islice
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from reveal_analyzer.arrays import Floats, Floats32
from reveal_analyzer.derive.columns import Column
from reveal_analyzer.derive.deriver import Second
from reveal_analyzer.kernels import backend
from reveal_analyzer.live.baseline import Baseline, BaselineSnapshot
from reveal_analyzer.live.constant_columns import ConstantColumns
from reveal_analyzer.live.new_normal import CALM_S, AlarmReference, NewNormal
from reveal_analyzer.live.ranges import Ranges, spread_floors
from reveal_analyzer.live.regimes import Regimes, workloads
from reveal_analyzer.live.scaling import ColumnScaling, by_subsystem
from reveal_analyzer.live.settings import LiveSettings
from reveal_analyzer.live.views import SustainedViews
from reveal_contract.metric import Subsystem

_SIGNATURE_VIEW = 1  # signatures compare with what was sustained for 2 of 3 s
_MIN_HISTORY = 6  # seconds before a range means anything
_EARLY_QUARANTINE = 3  # seconds, while the node is learned
_CONSTANT_CHECK = 120  # interval in which constant columns are searched
_CONSTANT_AGAIN = 3600  # and in which reactivated columns are searched as well
_SUPPRESS_FROM = 45  # seconds of age before a column's own excess suppresses it


class Scored(NamedTuple):
    """The scores of one second.

    ``over`` is score / threshold by subsystem (more than 1 is anomalous).  ``excess`` (2, columns)
    is the suppressed distance outside the range, upward and downward; ``weighted`` (columns) the
    same weighted by harm.  ``new_normal`` are the subsystems with a level that was learned after an
    alarm and is still there.
    """

    ready: bool
    over: Mapping[Subsystem, float] = MappingProxyType({})
    excess: Floats32 = np.zeros((2, 0), np.float32)
    weighted: Floats32 = np.zeros(0, np.float32)
    new_normal: frozenset[Subsystem] = frozenset()

    @property
    def worst(self) -> float:
        return max(self.over.values(), default=0.0)

    @property
    def anomalous(self) -> bool:
        return self.ready and self.worst > 1.0


@dataclass(slots=True)
class _QuarantinedSecond:
    """A second that may join the history; ``scores`` is None before there was a reference."""

    views: Floats32
    excess: Floats32 | None
    scores: Floats | None
    alarm: bool


class LiveScore:
    """Learns the baseline of one node and scores its seconds against it.

    Ranges are refitted every ``refit`` seconds, offset by ``phase``, so that nodes which started
    together do not refit in the same second.  ``adopt_table`` comes first in every second, then
    ``score``.
    """

    def __init__(self, settings: LiveSettings, phase: int = 0) -> None:
        self.settings = settings
        self._phase = phase
        self.age = 0
        self.alarm_seconds = 0
        self.ranges: Ranges | None = None
        self._state: ConstantColumns | None = None
        self._views = SustainedViews(settings.views)
        self._learned = Baseline(settings)
        self._snapshot: BaselineSnapshot | None = None  # from before the alarm that is learned
        self._regimes = Regimes(settings.keep)
        self._new_normal = NewNormal()
        self._alarm_reference: AlarmReference | None = None  # from the start of the present alarm
        self._quarantine: deque[_QuarantinedSecond] = deque()
        self._dropping = self._finding_open = False
        self._floors = spread_floors(settings)
        # of all columns, constant ones included
        self._baseline: Floats = np.zeros(0)
        self._highest: Floats = np.zeros(0)

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

    def score(
        self,
        second: Second,
        *,
        alarm: bool = False,
        finding_open: bool = False,
        suppressed: Collection[Subsystem] = (),
    ) -> Scored:
        """Score one second whose table was adopted; it joins the history later if it is normal.

        ``alarm``: another detector (a certain signature, a slowdown) reports a fault in this
        second.  ``finding_open``: a finding is open; this second, and those just before the finding
        opened, stay out of the baseline.  The score of a ``suppressed`` subsystem does not exceed
        its threshold.
        """
        if finding_open and not self._finding_open:
            # the fault was visible before it was found: keep that out of the history, too
            for waiting in islice(reversed(self._quarantine), self.settings.detection_delay):
                waiting.alarm = True
        self._finding_open = finding_open
        self.age += 1
        self._activate(self._columns.activate_changed(second.values))
        views = self._views.push(self._scaling.scale(second.values[self._columns.active]))
        if self.ranges is None or self._due(self.settings.refit):
            self._fit()
        if self.ranges is None:
            # nothing to compare with yet: learn everything
            self._quarantine.append(_QuarantinedSecond(views, None, None, alarm=False))
            self._release(_EARLY_QUARANTINE)
            return Scored(ready=False)
        scored = self._score(views, self.ranges, alarm or finding_open, suppressed)
        if self._due(_CONSTANT_CHECK) and self._is_calm():
            self._deactivate_constant(second.values)
        return scored

    def reset_recent(self) -> None:
        """Drop the last seconds, as no view may span a gap."""
        self._views.reset()

    def baseline(self) -> Floats:
        """Return the normal level of each column in base units; NaN before there is a history."""
        if self.ranges is None:
            return np.full(len(self.columns), np.nan)
        return self._baseline

    def highest(self) -> Floats:
        """Return the highest level that each column sustained for 2 of 3 s, in base units.

        A condition of a signature must last, so a burst of one second in the history does not raise
        this level.  While the level of a learned alarm is still there, it is that of the history
        before the alarm.
        """
        if self.ranges is None:
            return np.full(len(self.columns), np.inf)
        reference = self._new_normal.reference
        return self._highest if reference is None else reference.highest

    def _score(
        self, views: Floats32, ranges: Ranges, alarm: bool, suppressed: Collection[Subsystem]
    ) -> Scored:
        scaling, learned = self._scaling, self._learned
        excess, weighted, scores = backend.current().score_second(
            views, ranges.bounds, learned.own_excess[1], scaling.weights, scaling.groups
        )
        over = by_subsystem(scores / learned.thresholds)
        over |= {subsystem: min(over[subsystem], 1.0) for subsystem in suppressed}
        ready = not self.learning
        new_normal = self._new_normal.update(views, scaling)
        if self._new_normal.returned:
            self._restore_baseline()
        whole = backend.current().scatter(weighted, self._columns.active, len(self.columns))
        scored = Scored(ready, over, whole[:2], whole[2], new_normal)
        self._track_alarm(ready and (scored.anomalous or alarm))
        # an alarm that outlasts give_up is learned as the new normal
        left_out = 0 < self.alarm_seconds <= self.settings.give_up
        self._quarantine.append(_QuarantinedSecond(views, excess, scores, left_out))
        self._release(self.settings.quarantine if ready else _EARLY_QUARANTINE)
        return scored

    def _track_alarm(self, on: bool) -> None:
        """Count the seconds of an alarm; keep the reference from its start for later."""
        self.alarm_seconds = self.alarm_seconds + 1 if on else 0
        if self.alarm_seconds == 1 and self.ranges is not None:
            own_excess, thresholds = self._learned.own_excess[1].copy(), self._learned.thresholds
            self._alarm_reference = AlarmReference(
                self.ranges, own_excess, thresholds, self._highest
            )
        elif (
            # from now on the alarm is learned; of overlapping alarms the first is tracked
            self.alarm_seconds == self.settings.give_up
            and self._alarm_reference is not None
            and self._new_normal.start(self._alarm_reference)
        ):
            self._snapshot = BaselineSnapshot.of(self._learned, self._columns.labels)

    def _restore_baseline(self) -> None:
        """Restore the baseline from before an alarm whose levels are gone."""
        if self._snapshot is not None:
            columns = self._columns
            self._learned = self._snapshot.restore(columns.labels, columns.scaled_levels)
            self._snapshot = None
            # only the last, calm seconds may join the restored history
            for waiting in islice(self._quarantine, max(0, len(self._quarantine) - CALM_S)):
                waiting.alarm = True
            self._fit()

    def _due(self, period: int) -> bool:
        return (self.age + self._phase) % period == 0

    def _fit(self) -> None:
        history = self._learned.history
        if len(history) < _MIN_HISTORY:
            return
        self.ranges, active = history.ranges(), self._columns.active
        self._baseline, self._highest = self._baseline.copy(), self._highest.copy()
        self._baseline[active] = _six_digits(self._scaling.base_units(self.ranges.middle))
        self._highest[active] = self._scaling.base_units(self.ranges.high[_SIGNATURE_VIEW])

    def _release(self, hold: int) -> None:
        """Release seconds from quarantine until ``hold`` of them are left.

        Calm seconds join the history.  Of an alarm of up to ``transient`` seconds the scores are
        learned, but not the values.  Of a longer alarm neither is, until it has lasted ``give_up``.
        """
        while len(self._quarantine) > hold:
            if self._quarantine[0].alarm:
                self._release_alarm()
            else:
                self._learn(self._quarantine.popleft())

    def _release_alarm(self) -> None:
        run = []
        while self._quarantine and self._quarantine[0].alarm:
            run.append(self._quarantine.popleft())
        ended = bool(self._quarantine)
        # a short alarm is normal for the node; a run that was cut off before is a longer one
        if ended and not self._dropping and len(run) <= self.settings.transient:
            for second in run:
                self._learn_score(second)
        self._dropping = not ended

    def _learn(self, second: _QuarantinedSecond) -> None:
        self._learned.history.append(second.views)
        self._regimes.learn(second.views)
        self._learn_score(second)

    def _learn_score(self, second: _QuarantinedSecond) -> None:
        if second.excess is None or second.scores is None or self.age <= _SUPPRESS_FROM:
            return
        self._learned.learn_score(second.excess, second.scores)

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
            self._state = ConstantColumns.none(second, self.settings)
            self._learned.start(len(self.columns))
        elif second.plan is not previous.plan:
            self._state = previous.for_table(second, self.settings)
            source = self._state.source(previous)
            self._new_normal.adopt_table(source)
            if self._alarm_reference is not None:
                self._alarm_reference = self._alarm_reference.for_table(source)
            self._remap(previous)
        else:
            return
        # another table may mean other workloads, whose sample joins the history again
        for views in self._regimes.enter(workloads(second.plan.channels)):
            self._learned.history.append(views)
        self._highest = self._columns.rounded_levels()
        self._baseline = _six_digits(self._highest)
        self._fit()

    def _activate(self, columns: ConstantColumns) -> None:
        """Continue with another set of active columns of the same table."""
        if columns is not self._state:
            previous, self._state = self._columns, columns
            self._remap(previous)

    def _remap(self, previous: ConstantColumns) -> None:
        """Move everything learned to the active columns of now."""
        columns = self._columns
        column_map = columns.column_map(previous)
        self._views.remap(column_map)
        self._learned.remap(column_map)
        self._regimes.remap(column_map)
        self._new_normal.remap(column_map, self._floors, columns.active)
        if self.ranges is not None:
            self.ranges = self.ranges.remap(column_map, self._floors)
        if self._alarm_reference is not None:
            self._alarm_reference = self._alarm_reference.remap(
                column_map, self._floors, columns.active
            )
        for waiting in self._quarantine:
            waiting.views = column_map.levels(waiting.views)
            if waiting.excess is not None:
                waiting.excess = column_map.excess(waiting.excess)

    def _is_calm(self) -> bool:
        """Return whether half of the history is known and no alarm is on or tracked."""
        known = 2 * len(self._learned.history) >= self.settings.keep
        return known and not self.alarm_seconds and self._new_normal.reference is None

    def _deactivate_constant(self, values: Floats) -> None:
        """Deactivate columns that have never left their level, wherever seconds are kept."""
        level, calm = self._learned.constant_levels()
        for waiting in self._quarantine:
            calm &= (waiting.views == level).all(axis=(0, 1))
        calm = self._regimes.constant_in_all(level, calm)
        again = self._due(_CONSTANT_AGAIN)
        self._activate(self._columns.deactivate(calm, values, level, again=again))


def _six_digits(values: Floats) -> Floats:
    """Round to six significant digits, as the seventh is noise of single precision."""
    with np.errstate(divide="ignore"):
        unit = 10.0 ** np.clip(np.floor(np.log10(np.abs(values))) - 5, -300, 300)
    rounded: Floats = np.round(values / unit) * unit
    return rounded
