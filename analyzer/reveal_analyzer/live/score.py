"""The live score of one node: seconds in, scores over cuts out."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from reveal_analyzer.columns import Column, Plan
from reveal_analyzer.live.ranges import Ranges, held
from reveal_analyzer.live.settings import LiveSettings
from reveal_analyzer.live.weighing import Weighing
from reveal_analyzer.seconds import Second
from reveal_contract.metric import Subsystem

Floats = NDArray[np.float64]
_LEAST_PAST = 6  # seconds before a range means anything
_SILENCE_FROM = 45  # seconds of age before a column's own excesses silence it
_SILENCE_DECAY = 0.99  # a second
_LEAST_SCORES = 10
_CALM_SCORES = 200


@dataclass(frozen=True)
class Scored:
    """What the score says of one second.

    ``over`` is score / cut by subsystem (more than 1 is anomalous), ``excess`` (2, columns)
    the silenced distance outside the past, upward and downward, before any weighing.
    """

    ready: bool
    over: dict[Subsystem, float] = field(default_factory=dict)
    excess: Floats = field(default_factory=lambda: np.zeros((2, 0)))
    shown: Floats = field(default_factory=lambda: np.zeros(0))

    @property
    def worst(self) -> float:
        return max(self.over.values(), default=0.0)

    @property
    def anomalous(self) -> bool:
        return self.ready and self.worst > 1.0


@dataclass
class _Waiting:
    """A second in quarantine; ``scores`` is None before there was a reference."""

    views: Floats
    excess: Floats | None
    scores: dict[Subsystem, float] | None
    alarm: bool


class LiveScore:
    """Learns one node's past and scores its seconds against it."""

    def __init__(self, settings: LiveSettings) -> None:
        self.settings = settings
        self.age = 0
        self.alarm_seconds = 0
        self.columns: tuple[Column, ...] = ()
        self.ranges: list[Ranges] | None = None
        self._labels: tuple[str, ...] = ()
        self._recent: deque[Floats] = deque(maxlen=max(width for width, _ in settings.views))
        self._past: deque[Floats] = deque(maxlen=settings.keep)
        self._waiting: deque[_Waiting] = deque()
        self._own_scores = {s: deque[float](maxlen=settings.keep) for s in Subsystem}
        self._cuts = dict.fromkeys(Subsystem, settings.limit)
        self._dropping = False
        self._own_excess: Floats = np.zeros((2, 2, 0))
        self._plan: Plan | None = None

    @property
    def cpus(self) -> int:
        """CPUs of the node, as its channels tell."""
        return self._weighing.cpus

    @property
    def learning(self) -> bool:
        return self.age <= self.settings.warmup

    def step(
        self, second: Second, *, alarm: bool = False, excused: Collection[Subsystem] = ()
    ) -> Scored:
        """Score one second; it joins the past later, if nothing speaks against it.

        ``alarm`` says that something else, a certain signature, speaks against it; the score
        of an ``excused`` subsystem does not pass its cut.
        """
        self.follow(second)
        self.age += 1
        self._recent.append(self._seen(second.values))
        views = held(self._recent, self.settings.views)
        if self.ranges is None or self.age % self.settings.refit == 0:
            self._fit()
        if self.ranges is None:
            self._waiting.append(_Waiting(views, None, None, alarm=False))
            self._release(3)
            return Scored(ready=False)
        excess = np.max([r.excess(*v) for r, v in zip(self.ranges, views, strict=True)], axis=0)
        return self._judge(views, excess, alarm, excused)

    def forget_recent(self) -> None:
        """After a gap: held views must not span it."""
        self._recent.clear()

    def baseline(self) -> Floats:
        """What each column usually was, in base units; NaN before there is a past."""
        if self.ranges is None:
            return np.full(len(self.columns), np.nan)
        return self._baseline

    def highest(self) -> Floats:
        """The highest each column has been for a second in the accepted past, base units."""
        if self.ranges is None:
            return np.full(len(self.columns), np.inf)
        return self._highest

    def _judge(
        self, views: Floats, excess: Floats, alarm: bool, excused: Collection[Subsystem]
    ) -> Scored:
        silenced = excess / np.maximum(self._own_excess[1], 1.0)
        shown = self._weighing.shown(silenced)
        scores = self._weighing.scores(shown)
        over = {s: score / self._cuts[s] for s, score in scores.items()}
        over |= {s: min(over[s], 1.0) for s in excused}
        ready = not self.learning
        scored = Scored(ready, over, silenced, shown)
        against = ready and (scored.anomalous or alarm)
        self.alarm_seconds = self.alarm_seconds + 1 if against else 0
        left_out = 0 < self.alarm_seconds <= self.settings.give_up
        self._waiting.append(_Waiting(views, excess, scores, left_out))
        self._release(self.settings.quarantine if ready else 3)
        return scored

    def _seen(self, values: Floats) -> Floats:
        seen = self._weighing.seen(values)
        lost = np.isnan(seen)
        if lost.any():  # not read this time: no news
            seen[lost] = self._recent[-1][lost] if self._recent else 0.0
        return seen

    def _fit(self) -> None:
        if len(self._past) < _LEAST_PAST:
            return
        past = np.array(self._past)
        self.ranges = [
            Ranges.of(past[:, at, 0], past[:, at, 1], self.settings.floor / np.sqrt(min(width, 3)))
            for at, (width, _) in enumerate(self.settings.views)
        ]
        self._baseline = self._weighing.base_units(self.ranges[0].middle)
        self._highest = self._weighing.base_units(self.ranges[0].high)

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
        self._past.append(second.views)
        self._learn_score(second)

    def _learn_score(self, second: _Waiting) -> None:
        if second.excess is None or second.scores is None or self.age <= _SILENCE_FROM:
            return
        both = np.concatenate([self._own_excess * _SILENCE_DECAY, second.excess[None]])
        self._own_excess = np.sort(both, axis=0)[::-1][:2]
        for subsystem, score in second.scores.items():
            own = self._own_scores[subsystem]
            own.append(score)
            if len(own) >= _LEAST_SCORES:
                level = self.settings.multiple * _usual_high(own)
                self._cuts[subsystem] = min(max(self.settings.limit, level), self.settings.blind)

    def follow(self, second: Second) -> None:
        """Take over the columns of this second's table; what is new was 0 before."""
        if second.plan is self._plan:
            return
        self._plan, before = second.plan, self._labels
        self.columns, self._labels = second.plan.columns, second.plan.labels
        self._weighing = Weighing(second, self.settings)
        if not before:
            self._own_excess = np.zeros((2, 2, len(self.columns)))
            return
        old = {label: at for at, label in enumerate(before)}
        source = np.array([old.get(label, -1) for label in self._labels])
        self._recent = deque((_moved(r, source) for r in self._recent), self._recent.maxlen)
        self._past = deque((_moved(p, source) for p in self._past), self._past.maxlen)
        self._own_excess = _moved(self._own_excess, source)
        for waiting in self._waiting:
            waiting.views = _moved(waiting.views, source)
            if waiting.excess is not None:
                waiting.excess = _moved(waiting.excess, source)
        self._fit()


def _usual_high(scores: Sequence[float]) -> float:
    """The 98th percentile of a node's own scores.

    While few are known they count as part of a longer calm, so that one excursion of a few
    seconds, too short to be a finding anyway, does not blind the subsystem.
    """
    calm = max(len(scores), _CALM_SCORES)
    spare = calm - int(np.ceil(0.98 * calm))
    return float(np.sort(scores)[max(len(scores) - 1 - spare, 0)])


def _moved(rows: Floats, source: NDArray[np.intp]) -> Floats:
    moved = rows[..., source]
    moved[..., source < 0] = 0.0
    return moved
