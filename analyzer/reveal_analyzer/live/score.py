"""The live score of one node: seconds in, scores over cuts out."""

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
from reveal_analyzer.live.baseline import Aside, Learned
from reveal_analyzer.live.constant_columns import Resting
from reveal_analyzer.live.new_normal import CALM_S, Before, Staying
from reveal_analyzer.live.ranges import Ranges, floors
from reveal_analyzer.live.regimes import Regimes, workloads
from reveal_analyzer.live.scaling import Weighing
from reveal_analyzer.live.settings import LiveSettings
from reveal_analyzer.live.views import Held
from reveal_analyzer.live.weights import by_subsystem
from reveal_contract.metric import Subsystem

_HELD = 1  # the view that signatures compare with
_LEAST_PAST = 6  # seconds before a range means anything
_REST = 120  # seconds from one look for columns that may rest to the next
_REST_AGAIN = 3600  # and to the next one for such that moved since they rested
_SILENCE_FROM = 45  # seconds of age before a column's own excesses silence it


class Scored(NamedTuple):
    """What the score says of one second.

    ``over`` is score / cut by subsystem (more than 1 is anomalous), ``excess`` (2, columns)
    the silenced distance outside the past, upward and downward, before any weighing;
    ``staying`` subsystems have a level that was learned after an alarm and is still there.
    """

    ready: bool
    over: Mapping[Subsystem, float] = MappingProxyType({})
    excess: Floats32 = np.zeros((2, 0), np.float32)
    shown: Floats32 = np.zeros(0, np.float32)
    staying: frozenset[Subsystem] = frozenset()

    @property
    def worst(self) -> float:
        return max(self.over.values(), default=0.0)

    @property
    def anomalous(self) -> bool:
        return self.ready and self.worst > 1.0


@dataclass(slots=True)
class _Waiting:
    """A second in quarantine; ``scores`` is None before there was a reference."""

    views: Floats32
    excess: Floats32 | None
    scores: Floats | None
    alarm: bool


class LiveScore:
    """Learns one node's past and scores its seconds against it.

    Ranges are taken anew in the seconds that ``phase`` says: those of nodes that began together
    shall not fall due together.
    """

    def __init__(self, settings: LiveSettings, phase: int = 0) -> None:
        self.settings = settings
        self._phase = phase
        self.age = 0
        self.alarm_seconds = 0
        self.ranges: Ranges | None = None
        self._resting: Resting | None = None
        self._held = Held(settings.views)
        self._learned = Learned(settings)
        self._aside: Aside | None = None  # from before the alarm whose level is learned
        self._regimes = Regimes(settings.keep)
        self._staying = Staying()
        self._before: Before | None = None  # the reference that the alarm now on began with
        self._waiting: deque[_Waiting] = deque()
        self._dropping = self._told = False
        self._floors = floors(settings)
        # of all columns, those too that rest
        self._baseline: Floats = np.zeros(0)
        self._highest: Floats = np.zeros(0)

    @property
    def columns(self) -> tuple[Column, ...]:
        """All, those too that rest."""
        return self._resting.columns if self._resting else ()

    @property
    def cpus(self) -> int:
        """CPUs of the node, as its channels tell."""
        return self._weighing.cpus

    @property
    def learning(self) -> bool:
        return self.age <= self.settings.warmup

    def step(
        self,
        second: Second,
        *,
        alarm: bool = False,
        told: bool = False,
        excused: Collection[Subsystem] = (),
    ) -> Scored:
        """Score one second; it joins the past later, if nothing speaks against it.

        ``alarm`` says that something else, a certain signature, speaks against it, ``told`` that
        a finding goes on: what that shows by fits and starts, and showed before it was found, is
        no habit of the node.  The score of an ``excused`` subsystem does not pass its cut.
        """
        self.follow(second)
        if told and not self._told:
            for waiting in islice(reversed(self._waiting), self.settings.found):
                waiting.alarm = True
        self._told = told
        self.age += 1
        self._take_over(self._now.stirred(second.values))
        views = self._held.push(self._weighing.seen(second.values[self._now.places]))
        if self.ranges is None or self._due(self.settings.refit):
            self._fit()
        if self.ranges is None:
            self._waiting.append(_Waiting(views, None, None, alarm=False))
            self._release(3)
            return Scored(ready=False)
        scored = self._judge(views, self.ranges, alarm or told, excused)
        if self._due(_REST) and self._is_calm():
            self._put_to_rest(second.values)
        return scored

    def forget_recent(self) -> None:
        """After a gap: held views must not span it."""
        self._held.forget()

    def baseline(self) -> Floats:
        """What each column usually was, in base units; NaN before there is a past."""
        if self.ranges is None:
            return np.full(len(self.columns), np.nan)
        return self._baseline

    def highest(self) -> Floats:
        """The highest each column was held for two of three seconds of the past, base units.

        What must last to be told is no less news for a burst of one second.  While something
        stays of an alarm, the past from before it.
        """
        if self.ranges is None:
            return np.full(len(self.columns), np.inf)
        before = self._staying.before
        return self._highest if before is None else before.highest

    def _judge(
        self, views: Floats32, ranges: Ranges, alarm: bool, excused: Collection[Subsystem]
    ) -> Scored:
        weighing = self._weighing
        excess, weighed, scores = backend.current().score_second(
            views, ranges.bounds, self._learned.own_excess[1], weighing.weights, weighing.families
        )
        over = by_subsystem(scores / self._learned.cuts)
        over |= {s: min(over[s], 1.0) for s in excused}
        ready = not self.learning
        staying = self._staying.step(views, weighing)
        if self._staying.returned:
            self._take_back()
        shown = backend.current().scatter(weighed, self._now.places, len(self.columns))
        scored = Scored(ready, over, shown[:2], shown[2], staying)
        self._follow_alarm(ready and (scored.anomalous or alarm))
        left_out = 0 < self.alarm_seconds <= self.settings.give_up
        self._waiting.append(_Waiting(views, excess, scores, left_out))
        self._release(self.settings.quarantine if ready else 3)
        return scored

    def _follow_alarm(self, on: bool) -> None:
        self.alarm_seconds = self.alarm_seconds + 1 if on else 0
        if self.alarm_seconds == 1 and self.ranges is not None:
            own_excess, cuts = self._learned.own_excess[1].copy(), self._learned.cuts
            self._before = Before(self.ranges, own_excess, cuts, self._highest)
        elif (
            self.alarm_seconds == self.settings.give_up
            and self._before is not None
            and self._staying.begin(self._before)
        ):
            self._aside = Aside.of(self._learned, self._now.labels)

    def _take_back(self) -> None:
        """The levels from before an alarm have returned: its own were never this node's."""
        if self._aside is not None:
            now = self._now
            self._learned, self._aside = self._aside.taken_back(now.labels, now.seen), None
            for waiting in islice(self._waiting, max(0, len(self._waiting) - CALM_S)):
                waiting.alarm = True
            self._fit()

    def _due(self, period: int) -> bool:
        return (self.age + self._phase) % period == 0

    def _fit(self) -> None:
        past = self._learned.past
        if len(past) < _LEAST_PAST:
            return
        self.ranges, places = past.ranges(), self._now.places
        self._baseline, self._highest = self._baseline.copy(), self._highest.copy()
        self._baseline[places] = _six_digits(self._weighing.base_units(self.ranges.middle))
        self._highest[places] = self._weighing.base_units(self.ranges.high[_HELD])

    def _release(self, hold: int) -> None:
        """Take what is old enough into the past.

        Of an alarm of up to ``transient`` seconds the scores are learned (this node does
        that), its values not; of a longer one neither, until it has lasted ``give_up``.
        """
        while len(self._waiting) > hold:
            if self._waiting[0].alarm:
                self._leave_out()
            else:
                self._learn(self._waiting.popleft())

    def _leave_out(self) -> None:
        run = []
        while self._waiting and self._waiting[0].alarm:
            run.append(self._waiting.popleft())
        ended = bool(self._waiting)
        if ended and not self._dropping and len(run) <= self.settings.transient:
            for second in run:
                self._learn_score(second)
        self._dropping = not ended

    def _learn(self, second: _Waiting) -> None:
        self._learned.past.append(second.views)
        self._regimes.learn(second.views)
        self._learn_score(second)

    def _learn_score(self, second: _Waiting) -> None:
        if second.excess is None or second.scores is None or self.age <= _SILENCE_FROM:
            return
        self._learned.learn_score(second.excess, second.scores)

    @property
    def _now(self) -> Resting:
        assert self._resting is not None, "no second was followed yet"
        return self._resting

    @property
    def _weighing(self) -> Weighing:
        """That of the columns that are judged."""
        return self._now.weighing

    def follow(self, second: Second) -> None:
        """Take over the columns of this second's table; what is new was 0 before."""
        before = self._resting
        if before is None:
            self._resting = Resting.none(second, self.settings)
            self._learned.begin(len(self.columns))
        elif second.plan is not before.plan:
            self._resting = before.following(second, self.settings)
            source = self._resting.source(before)
            self._staying.follow(source)
            if self._before is not None:
                self._before = self._before.of_columns(source)
            self._rearrange(before)
        else:
            return
        for views in self._regimes.enter(workloads(second.plan.channels)):
            self._learned.past.append(views)
        self._highest = self._now.usual()
        self._baseline = _six_digits(self._highest)
        self._fit()

    def _take_over(self, now: Resting) -> None:
        """Others of the same columns are judged now."""
        if now is not self._resting:
            before, self._resting = self._now, now
            self._rearrange(before)

    def _rearrange(self, before: Resting) -> None:
        now = self._now
        shift = now.shift(before)
        self._held.move(shift)
        self._learned.move(shift)
        self._regimes.move(shift)
        self._staying.move(shift, self._floors, now.places)
        if self.ranges is not None:
            self.ranges = self.ranges.moved(shift, self._floors)
        if self._before is not None:
            self._before = self._before.moved(shift, self._floors, now.places)
        for waiting in self._waiting:
            waiting.views = shift.levels(waiting.views)
            if waiting.excess is not None:
                waiting.excess = shift.excess(waiting.excess)

    def _is_calm(self) -> bool:
        """Whether this past says what the node is like, and nothing is held against another."""
        known = 2 * len(self._learned.past) >= self.settings.keep
        return known and not self.alarm_seconds and self._staying.before is None

    def _put_to_rest(self, values: Floats) -> None:
        """Columns of which nothing is known but the level that they have always had."""
        still, calm = self._learned.still()
        for waiting in self._waiting:
            calm &= (waiting.views == still).all(axis=(0, 1))
        calm = self._regimes.always(still, calm)
        self._take_over(self._now.rested(calm, values, still, again=self._due(_REST_AGAIN)))


def _six_digits(values: Floats) -> Floats:
    """What the past is known to; a seventh digit would be its single precision's."""
    with np.errstate(divide="ignore"):
        unit = 10.0 ** np.clip(np.floor(np.log10(np.abs(values))) - 5, -300, 300)
    rounded: Floats = np.round(values / unit) * unit
    return rounded
