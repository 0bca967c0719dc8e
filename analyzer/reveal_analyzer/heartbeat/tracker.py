"""One job's heartbeat: searched, locked, followed, and held against its own first minutes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from reveal_analyzer.arrays import Floats
from reveal_analyzer.heartbeat import autocorrelation, comb, phase
from reveal_analyzer.heartbeat.acquisition import LEAST_S, LOOK_S, TIMER, Lock, Search
from reveal_analyzer.heartbeat.guards import FOLLOW, steps_fit
from reveal_analyzer.heartbeat.reference import WINDOWS, Reading, Usual
from reveal_analyzer.heartbeat.ring import SPAN_S, Ring

_LONG_S = 2.5  # steps whose phase turns too seldom
_CHECK_S = 5
_KEEP = 0.5  # of the strength that a lock needs, to keep it
_SHOWS = 0.4  # of the strength it was locked with, for a slowdown to be believed
_WEAK, _WEAK_YOUNG = 6, 2  # checks that find it weak: lost; fewer before there is a reference
_WHOLE, _SAME = 3, 0.05  # checks that agree on a whole step of which the one found is a part
_MOVED, _MOVES = 0.06, 2
_UNSETTLED = 0.15  # moved by so much while it is learned: learned anew
_FAR = 0.35  # from the period followed: told only once the comb has followed it
_CLEARLY = 1.5  # times as strong: another rhythm, too far off to be the same
_SETTLED, _FOLLOWS = 0.06, 0.1
_REFUSED_S = 300
_AGAIN_S = 60  # a lock lost for no longer meets its reference again
CHANGING = "its rhythm is changing"


@dataclass(frozen=True)
class Beat:
    """A rhythm that is followed: periods in s; no readings while the reference is learned."""

    period: float
    reference: float
    channel: str
    strength: float
    readings: tuple[Reading, ...] = ()

    @property
    def slower(self) -> bool:
        """By a window that those within it do not contradict: it may speak of what is over."""
        return self.slowest is not None

    @property
    def slowest(self) -> Reading | None:
        """The shortest window that speaks of a slowdown."""
        for reading in self.readings:
            within = (one for one in self.readings if one.window < reading.window)
            if reading.slower and all(one.percent > reading.level / 2 for one in within):
                return reading
        return None


@dataclass
class _Left:
    """What was followed until a lock was lost."""

    clock: int
    channel: str
    usual: Usual


class Tracker:
    """Follows one job; ``why`` says why there is no heartbeat to read, empty where there is.

    ``turn`` spreads the searches of a node's jobs over the seconds.
    """

    def __init__(self, turn: int = 0) -> None:
        self.why = "it was watched for too short a time"
        self._rings: dict[str, Ring] = {}
        self._search = Search(LEAST_S + turn % LOOK_S)
        self._lock: Lock | None = None
        self._period = self._strength = 0.0
        self._clock = self._age = self._weak = self._moved = self._other = 0
        self._whole: list[float] = []
        self._is_whole = False
        self._usual = Usual()
        self._left: _Left | None = None

    def step(self, second: Mapping[str, Floats], *, learn: bool = True) -> Beat | None:
        """Take one second of the job's counters, increments on an even grid.

        ``learn`` is false during an alarm: then nothing becomes the job's usual.
        """
        self._clock += 1
        self._push(second)
        if self._lock is None:
            self._look()
        if self._lock is None:
            return None
        periods = self._read(self._lock)
        if not periods:
            return None
        longest = periods[max(periods)]
        if abs(longest / self._period - 1) < _SETTLED:
            self._period += _FOLLOWS * (longest - self._period)
        return self._judge(self._lock, periods, learn)

    def _push(self, second: Mapping[str, Floats]) -> None:
        for name, values in second.items():
            ring = self._rings.get(name)
            if ring is None or ring.rate != len(values):
                ring = self._rings[name] = Ring(len(values))
            ring.push(values)
        for name, ring in self._rings.items():
            if name not in second:
                ring.push(np.full(ring.rate, np.nan))

    def _look(self) -> None:
        """Search on; a rhythm that comes back soon meets what was usual before."""
        lock = self._search.step(self._rings)
        if any(ring.seconds >= LEAST_S for ring in self._rings.values()):
            self.why = self._search.why
        if lock is None:
            return
        self._lock, self._period, self._strength = lock, lock.period, lock.strength
        self._age = self._weak = self._moved = self._other = 0
        self._whole, self._is_whole = [], False
        left, self._left = self._left, None
        self._usual = left.usual if left and self._is_back(left, lock) else Usual()

    def _is_back(self, left: _Left, lock: Lock) -> bool:
        if self._clock - left.clock > _AGAIN_S or left.channel != lock.channel:
            return False
        return FOLLOW[0] < lock.period / left.usual.reference < FOLLOW[1]

    def _read(self, lock: Lock) -> dict[int, float]:
        """The period over each window in which enough steps fit; none once the lock is lost."""
        ring = self._rings[lock.channel]
        values = ring.last()
        if values is None:
            self._lose("its counter is no longer read")
            return {}
        self._age += 1
        if self._age % _CHECK_S == 0:
            if not self._is_there(lock, ring):
                self._lose("its rhythm was lost")
                return {}
            if not self._usual.reference:
                self._lengthen(ring)
        windows = tuple(window for window in WINDOWS if steps_fit(window, self._period))
        if self._is_whole or self._period <= _LONG_S:
            return phase.periods(values, ring.rate, self._period, windows)
        shared = (self._rings[name] for name in lock.shared)
        known = [other.last() for other in shared if other.rate == ring.rate]
        return autocorrelation.periods(
            [one for one in known if one is not None], ring.rate, self._period, windows
        )

    def _is_there(self, lock: Lock, ring: Ring) -> bool:
        """Whether the rhythm still shows; where it moved, it is followed."""
        values = ring.last(LEAST_S if steps_fit(LEAST_S, self._period) else SPAN_S)
        if values is None:
            return False
        seen = comb.spectrum(values, ring.rate)
        claim = comb.best(seen, lock.top)
        ratio = claim.period / self._period if claim else 0.0
        followed = FOLLOW[0] < ratio < FOLLOW[1]
        here = comb.strength(seen, self._period, lock.top)
        self._strength = max(here, claim.strength) if claim and followed else here
        self._weak = self._weak + 1 if self._strength < _KEEP * lock.needed else 0
        other = 0.0 if claim is None or followed or self._is_whole else claim.strength
        self._other = self._other + 1 if other > _CLEARLY * here else 0
        if self._weak >= (_WEAK if self._usual.reference else _WEAK_YOUNG):
            return False
        if self._other >= _MOVES:
            return False
        self._moved = self._moved + 1 if followed and abs(ratio - 1) > _MOVED else 0
        if claim and self._moved >= _MOVES:
            self._period, self._moved = claim.period, 0
            if abs(ratio - 1) > _UNSETTLED and not self._usual.is_learned:
                self._usual = Usual()  # else the reference stays
        return True

    def _lengthen(self, ring: Ring) -> None:
        """Before anything is learned: the whole step, where the one found is a part of it."""
        values = ring.last()
        if values is None or ring.seconds < SPAN_S:
            return
        claim = comb.whole(comb.spectrum(values, ring.rate), self._period)
        if claim is None:
            return
        self._whole.append(claim.period)
        same = [one for one in self._whole if abs(one / claim.period - 1) < _SAME]
        if len(same) >= _WHOLE:
            self._period, self._whole, self._is_whole = float(np.median(same)), [], True
            self._usual = Usual()

    def _lose(self, why: str) -> None:
        if self._lock and self._usual.reference:
            self._left = _Left(self._clock, self._lock.channel, self._usual)
        self._lock, self.why, self._search = None, why, Search()

    def _refuse(self) -> None:
        """It steps by a clock: left alone for a while."""
        self._lock, self.why, self._search = None, TIMER, Search(_REFUSED_S, TIMER)

    def _judge(self, lock: Lock, periods: dict[int, float], learn: bool) -> Beat | None:
        usual = self._usual
        readings = usual.readings(periods)
        if learn and not any(reading.slower for reading in readings):
            usual.learn(periods)
        if usual.is_timer():
            self._refuse()
            return None
        self.why = usual.why_not()
        reference = usual.reference or self._period
        beat = Beat(self._period, reference, lock.channel, self._strength, readings)
        if beat.slowest is None or self._shows(lock, beat.slowest, periods):
            return beat
        self.why = CHANGING
        return Beat(self._period, reference, lock.channel, self._strength)

    def _shows(self, lock: Lock, reading: Reading, periods: dict[int, float]) -> bool:
        """Whether the slower rhythm is there at all: a job may just do something else now."""
        ring = self._rings[lock.channel]
        values = ring.last(reading.window)
        period = periods[reading.window]
        if values is None or abs(period / self._period - 1) > _FAR:
            return False
        seen = comb.spectrum(values, ring.rate)
        there = comb.strength(seen, period, lock.top)
        return there >= _SHOWS * min(lock.strength, 3 * lock.needed)
