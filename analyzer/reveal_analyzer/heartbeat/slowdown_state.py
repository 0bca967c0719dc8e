"""The course of one job's slowdown: when it began, how much it costs, when it is over."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from reveal_analyzer.heartbeat.reference import Reading
from reveal_analyzer.heartbeat.tracker import Beat
from reveal_contract.finding import Impact
from reveal_contract.time_units import NS_PER_SECOND

SUSTAINED_S = 5  # seconds in a row before a slowdown is one
CALM_S = 10  # in a row before it is over; without a rhythm CALM_LOST_S
CALM_LOST_S = 30
STEADY_S = 60  # without a slowdown: the job keeps its step
_HISTORY_S = 120
_SURE, _AT_STRENGTH, _BY_STRENGTH, _BY_HEIGHT, _BY_AGREEMENT = 45, 0.4, 15, 25, 14


@dataclass(frozen=True)
class _Past:
    end_ns: int
    reading: Reading


class Course:
    """Takes a job's beats second by second.

    ``since_ns`` is when the slowdown that lasts began, ``impact`` what it costs now, both unset
    while there is none; ``steady`` counts the seconds without one.  An impact
    is renewed while the shortest window is not on its way from one level to another.
    """

    def __init__(self, subject: str) -> None:
        self.subject = subject
        self.since_ns: int | None = None
        self.impact: Impact | None = None
        self.steady = 0
        self._slow = self._calm = self._lost = 0
        self._past: deque[_Past] = deque(maxlen=_HISTORY_S)

    @property
    def silent(self) -> bool:
        """Whether its rhythm has been lost for so long that nothing is held of it."""
        return self._lost >= CALM_LOST_S

    def step(self, beat: Beat | None, end_ns: int) -> None:
        """One second that ended at ``end_ns``; ``None`` where no rhythm could be followed."""
        if beat is None or not beat.readings:
            self._miss()
            return
        self._lost = 0
        self._past.append(_Past(end_ns, beat.readings[0]))
        self._slow = self._slow + 1 if beat.slower else 0
        self.steady = 0 if beat.slower else self.steady + 1
        if self.since_ns is None and self._slow >= SUSTAINED_S:
            self.since_ns = self._onset()
        if self.since_ns is None:
            return
        first = beat.readings[0]
        self._calm = self._calm + 1 if not beat.slower or self._is_over(first) else 0
        if self._calm >= CALM_S:
            self._end()
        elif self.impact is None or (
            first.percent > min(first.level, self.impact.slowdown_percent / 2)
            and self._is_settled()
        ):
            self.impact = impact(self.subject, beat, self.since_ns, end_ns)

    def _is_settled(self) -> bool:
        """Whether the shortest window reads what it read half a window ago."""
        now = self._past[-1]
        reach_ns = now.reading.window * NS_PER_SECOND // 2
        for past in reversed(self._past):
            if now.end_ns - past.end_ns >= reach_ns:
                apart = abs(now.reading.percent - past.reading.percent)
                return apart <= min(now.reading.margin, past.reading.margin)
        return False

    def _miss(self) -> None:
        self._lost += 1
        self._slow = self.steady = 0
        if self.silent:
            self._past.clear()
            self._end()

    def _is_over(self, first: Reading) -> bool:
        cost = self.impact.slowdown_percent if self.impact else first.level
        return first.percent < min(first.level, cost) / 2

    def _end(self) -> None:
        self.since_ns, self.impact = None, None
        self._slow = self._calm = 0

    def _onset(self) -> int:
        """Where the shortest window's value was half of what it is, less half that window."""
        now = self._past[-1]
        at = now.end_ns
        for past in reversed(self._past):
            if past.reading.percent < now.reading.percent / 2:
                break
            at = past.end_ns
        return at - now.reading.window * NS_PER_SECOND // 2


def agree(one: Reading, other: Reading) -> bool:
    """Whether the intervals of two readings meet."""
    return abs(one.percent - other.percent) <= one.margin + other.margin


def impact(subject: str, beat: Beat, since_ns: int, end_ns: int) -> Impact:
    """What a job loses, over the longest window that lies wholly within its slowdown.

    One that contradicts the shortest speaks of another level, which is over.
    """
    lasted = (end_ns - since_ns) / NS_PER_SECOND
    first = beat.readings[0]
    fitting = [one for one in beat.readings if one.window <= lasted and agree(one, first)]
    told = fitting[-1] if fitting else first
    return Impact(
        subject=subject,
        slowdown_percent=round(told.percent, 1),
        low_percent=round(told.percent - told.margin, 1),
        high_percent=round(told.percent + told.margin, 1),
        period_ms=round(10 * beat.reference * (100 + told.percent), 1),
        usual_ms=round(1000 * beat.reference, 1),
        since_ns=since_ns,
        window_s=told.window,
        channel=beat.channel,
        confidence=_confidence(beat, told),
    )


def _confidence(beat: Beat, told: Reading) -> int:
    """Percent: a strong line, a slowdown well over the level, windows that agree."""
    strength = min(1.0, beat.strength / _AT_STRENGTH)
    height = min(1.0, max(0.0, told.percent / told.level - 1))
    near = [agree(reading, told) for reading in beat.readings]
    agreement = sum(near) / len(near)
    return round(_SURE + _BY_STRENGTH * strength + _BY_HEIGHT * height + _BY_AGREEMENT * agreement)
