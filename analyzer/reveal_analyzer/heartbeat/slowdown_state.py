"""State of one job's slowdown: when it began, its impact, and when it is over."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from reveal_analyzer.heartbeat.reference import WindowReading
from reveal_analyzer.heartbeat.tracker import StepTime
from reveal_analyzer.state.records import restore_optional, save_record
from reveal_analyzer.state.tree import StateTree, flag, integer
from reveal_contract.finding import Impact, Resolution
from reveal_contract.time_units import NS_PER_SECOND

SUSTAINED_S = 5  # consecutive slow seconds before a slowdown begins
CALM_S = 10  # consecutive seconds before it ends
CALM_LOST_S = 120  # consecutive seconds without a rhythm before nobody knows whether it lasts
GONE_S = 30  # consecutive seconds without the job before it ends
STEADY_S = 60  # seconds without a slowdown after which the job counts as not slowed
RESUMED_S = 60  # before a slowdown: a pause that ended no earlier may be the cause
# a steady slowdown that lasts so long is the job's step time; sooner after a pause, as it may be
# another run with other settings
ACCEPTED_S, ACCEPTED_RESUMED_S = 3600, 600
MOST_GAP_S = 60  # between two seconds; after a longer gap nobody knows what lasts
_HISTORY_S = 120
# confidence in percent: the base, and what strength, height and agreement add at most
_BASE, _BY_STRENGTH, _BY_HEIGHT, _BY_AGREEMENT = 45, 15, 25, 14
_FULL_STRENGTH = 0.4


@dataclass(frozen=True)
class _EarlierReading:
    end_ns: int
    reading: WindowReading


@dataclass(frozen=True)
class SlowdownEnd:
    """End of a slowdown: when it began, when it ended, and why it counts as over."""

    since_ns: int
    end_ns: int
    resolution: Resolution


class SlowdownState:
    """Follows the step time of one job, second by second.

    ``since_ns`` is when the current slowdown began, ``impact`` how much it costs now; both are
    ``None`` while there is none.  ``end`` describes the last one that ended.  ``steady`` counts
    the seconds without one, ``read_ns`` is the end of the last second with a reading.  The impact
    is updated only while the shortest window is not changing from one level to another.
    ``resumed`` says that the slowdown began with or right after a pause of the job.
    """

    def __init__(self, subject: str) -> None:
        self.subject = subject
        self.since_ns: int | None = None
        self.impact: Impact | None = None
        self.end: SlowdownEnd | None = None
        self.steady = 0
        self.read_ns = 0
        self.resumed = False
        self._slow = self._calm = self._lost = self._unread = 0
        self._last_ns = 0  # end of the last second
        self._history: deque[_EarlierReading] = deque(maxlen=_HISTORY_S)

    @property
    def is_lost(self) -> bool:
        """Whether the rhythm has been lost for so long that the slowdown is over."""
        return self._lost >= CALM_LOST_S

    def update(
        self, step: StepTime | None, end_ns: int, *, unread: bool = False, gone: bool = False
    ) -> None:
        """Add one second that ended at ``end_ns``; ``step`` is ``None`` without a rhythm.

        ``unread`` says that the job's counters were not read: then a slowdown neither lasts nor
        ends.  ``gone`` says that the job no longer exists.
        """
        self._pass_to(end_ns)
        if step is None or not step.readings:
            self._miss(end_ns, unread=unread, gone=gone)
            return
        self._lost = self._unread = 0
        self.read_ns = end_ns
        self._history.append(_EarlierReading(end_ns, step.readings[0]))
        self._slow = self._slow + 1 if step.slower else 0
        self.steady = 0 if step.slower else self.steady + 1
        if self.since_ns is None and self._slow >= SUSTAINED_S:
            self.since_ns = self._onset(step.jumped)
            self.resumed = _is_resumed(step, (end_ns - self.since_ns) / NS_PER_SECOND)
        if self.since_ns is not None:
            self._continue(step, self.since_ns, end_ns)

    @property
    def is_accepted(self) -> bool:
        """Whether the slowdown has lasted for so long that it is the job's step time."""
        if self.since_ns is None or self.read_ns != self._last_ns or not self._is_settled():
            return False
        lasts_s = ACCEPTED_RESUMED_S if self.resumed else ACCEPTED_S
        return self._last_ns - self.since_ns >= lasts_s * NS_PER_SECOND

    def accept(self) -> None:
        """End the slowdown: its step time is the reference now."""
        self._end(self._last_ns, Resolution.ACCEPTED)
        self._history.clear()

    def save(self) -> StateTree:
        """Return the counters and the current slowdown; readings of the last seconds are left."""
        return {
            "since": self.since_ns,
            "impact": save_record(self.impact) if self.impact else None,
            "steady": self.steady,
            "slow": self._slow,
            "calm": self._calm,
            "lost": self._lost,
            "read": self.read_ns,
            "resumed": self.resumed,
            "last": self._last_ns,
        }

    @classmethod
    def restored(cls, subject: str, tree: StateTree) -> SlowdownState:
        """Return the state of a tree."""
        state = cls(subject)
        if tree.get("since") is not None:
            state.since_ns = integer(tree, "since")
            state.impact = restore_optional(Impact, tree, "impact")
        state.steady, state._slow = integer(tree, "steady"), integer(tree, "slow")
        state._calm, state._lost = integer(tree, "calm"), integer(tree, "lost")
        state.read_ns, state._last_ns = integer(tree, "read"), integer(tree, "last")
        # an earlier version did not save it
        state.resumed = flag(tree, "resumed") if "resumed" in tree else False
        return state

    def _pass_to(self, end_ns: int) -> None:
        """Note the time; readings from before a long gap or a clock step are not compared."""
        passed_ns, self._last_ns = end_ns - self._last_ns, end_ns
        if 0 < passed_ns <= MOST_GAP_S * NS_PER_SECOND:
            return
        self._history.clear()
        self._slow = self.steady = 0
        if passed_ns > 0 and self.since_ns is not None:
            self._end(end_ns, Resolution.UNOBSERVED)

    def _continue(self, step: StepTime, since_ns: int, end_ns: int) -> None:
        """End the current slowdown if it is over, else update its impact."""
        deciding = self._deciding(step, (end_ns - since_ns) / NS_PER_SECOND)
        recovered = deciding is not None and self._has_recovered(deciding)
        if deciding is not None:
            self._calm = self._calm + 1 if recovered else 0
        if self._calm >= CALM_S:
            self._end(end_ns, Resolution.ENDED)
        elif self.impact is None or (deciding is not None and not recovered and self._is_settled()):
            self.impact = impact(self.subject, step, since_ns, end_ns)

    def _deciding(self, step: StepTime, lasted_s: float) -> WindowReading | None:
        """Return the reading that decides whether the slowdown is over.

        It is that of the shortest window that shows slowdowns of this size: long windows are slow
        after the job has recovered.  A window that begins before the slowdown shows healthy steps,
        and so does a reading at a period that the job has left.
        """
        if not step.is_certain:
            return None
        inside = [reading for reading in step.readings if reading.window <= lasted_s]
        if not inside:
            return None
        least = min(reading.level for reading in inside)
        percent = max(least, self.impact.slowdown_percent if self.impact else 0.0)
        return next(reading for reading in inside if reading.level <= percent)

    def _is_settled(self) -> bool:
        """Return whether the shortest window reads the same as half a window ago."""
        now = self._history[-1]
        reach_ns = now.reading.window * NS_PER_SECOND // 2
        for earlier in reversed(self._history):
            if now.end_ns - earlier.end_ns >= reach_ns:
                difference = abs(now.reading.percent - earlier.reading.percent)
                return difference <= min(now.reading.margin, earlier.reading.margin)
        return False

    def _miss(self, end_ns: int, *, unread: bool, gone: bool) -> None:
        self._slow = 0
        if unread and not gone:  # values that were not read say nothing
            self._unread += 1
            return
        # a minute without values, and no rhythm after it: nobody knows what lasts
        self._lost += CALM_LOST_S if self._unread >= MOST_GAP_S else 1
        self.steady = 0
        if self.is_lost or (gone and self._lost >= GONE_S):
            self._lost = CALM_LOST_S
            self._history.clear()
            self._end(end_ns, Resolution.ENDED if gone else Resolution.UNOBSERVED)

    def _has_recovered(self, reading: WindowReading) -> bool:
        """Return whether a reading is nearer to the reference than to the slowdown."""
        percent = self.impact.slowdown_percent if self.impact else 0.0
        return not reading.slower and reading.percent < max(reading.level, percent) / 2

    def _end(self, end_ns: int, resolution: Resolution) -> None:
        if self.since_ns is not None:
            self.end = SlowdownEnd(self.since_ns, max(end_ns, self.since_ns), resolution)
        self.since_ns, self.impact, self.resumed = None, None, False
        self._slow = self._calm = 0

    def _onset(self, jumped: int | None) -> int:
        """Return when the shortest window read half of its current value, less half a window.

        A rhythm that changes a lot is not read for a while: then it began when the step jumped,
        ``jumped`` seconds ago, else with the last reading from before.
        """
        if jumped is not None and jumped < _HISTORY_S:
            return self._last_ns - jumped * NS_PER_SECOND
        now = self._history[-1]
        onset_ns, half_ns = now.end_ns, now.reading.window * NS_PER_SECOND // 2
        for earlier in reversed(self._history):
            if earlier.reading.percent < now.reading.percent / 2:
                return min(onset_ns - half_ns, earlier.end_ns)
            onset_ns = earlier.end_ns
        return onset_ns - half_ns


def _is_resumed(step: StepTime, lasted_s: float) -> bool:
    """Return whether the job was in a pause when the slowdown began, or not long before."""
    return step.resumed is not None and step.resumed <= lasted_s + RESUMED_S


def overlap(first: WindowReading, second: WindowReading) -> bool:
    """Return whether the intervals of two readings overlap."""
    return abs(first.percent - second.percent) <= first.margin + second.margin


def impact(subject: str, step: StepTime, since_ns: int, end_ns: int) -> Impact:
    """Return what a job loses, over the longest window that lies within its slowdown.

    A window that contradicts the shortest one covers an earlier level, too, and is not used.
    """
    lasted_s = (end_ns - since_ns) / NS_PER_SECOND
    first = step.readings[0]
    fitting = [r for r in step.readings if r.window <= lasted_s and overlap(r, first)]
    reading = fitting[-1] if fitting else first
    return Impact(
        subject=subject,
        slowdown_percent=round(reading.percent, 1),
        low_percent=round(reading.percent - reading.margin, 1),
        high_percent=round(reading.percent + reading.margin, 1),
        period_ms=round(10 * step.reference * (100 + reading.percent), 1),
        baseline_ms=round(1000 * step.reference, 1),
        since_ns=since_ns,
        window_s=reading.window,
        channel=step.channel,
        confidence=_confidence(step, reading),
    )


def _confidence(step: StepTime, reading: WindowReading) -> int:
    """Return percent: for a strong line, a high slowdown, and windows that agree."""
    strength = min(1.0, step.strength / _FULL_STRENGTH)
    height = min(1.0, max(0.0, reading.percent / reading.level - 1))
    agreeing = [overlap(other, reading) for other in step.readings]
    agreement = sum(agreeing) / len(agreeing)
    return round(_BASE + _BY_STRENGTH * strength + _BY_HEIGHT * height + _BY_AGREEMENT * agreement)
