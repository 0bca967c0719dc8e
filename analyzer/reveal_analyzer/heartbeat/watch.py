"""The heartbeats of one node: every busy subject's slices followed, at a bounded cost."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from reveal_analyzer.arrays import Floats
from reveal_analyzer.formatting import human
from reveal_analyzer.heartbeat.series import Plan, Series, plan
from reveal_analyzer.heartbeat.tracker import Beat, Tracker
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.metric import Kind
from reveal_contract.wire import Message

MOST = 16  # jobs followed at a time
_BRIDGED_S = 3  # a longer gap in the slices ends what was followed
_FORGOTTEN_S = 60
_TABLES = 8


class HeartbeatWatch:
    """Follows the jobs of one node; ``leave_out`` names channels that it must not see."""

    def __init__(self, leave_out: Callable[[Channel], bool] | None = None) -> None:
        self._leave_out = leave_out
        self._plans: dict[bytes, Plan] = {}
        self._series = Series()
        self._trackers: dict[str, Tracker] = {}
        self._seen: dict[str, int] = {}
        self._clock = self._turn = 0
        self._last: tuple[bytes, int] | None = None
        self.beats: dict[str, Beat] = {}

    def step(self, message: Message, table: ChannelTable, *, learn: bool = True) -> dict[str, Beat]:
        """The heartbeats that could be followed this second, by subject.

        ``learn`` is false during an alarm: then nothing becomes a job's usual.
        """
        self._bridge(message)
        self._clock += 1
        if table.key not in self._plans:
            if len(self._plans) >= _TABLES:
                self._plans.clear()
            self._plans[table.key] = plan(table, self._leave_out)
        seconds = self._series.second(message, self._plans[table.key])
        if seconds or self._seen:
            self._choose(seconds)
        self.beats = {}
        for subject, tracker in self._trackers.items():
            beat = tracker.step(seconds.get(subject, {}), learn=learn)
            if beat is not None:
                self.beats[subject] = beat
        return self.beats

    def lines(self) -> tuple[str, ...]:
        """How each job that is watched steps, or why that cannot be read: one line a job."""
        return tuple(
            line(subject, self.beats.get(subject), tracker.why)
            for subject, tracker in self._trackers.items()
        )

    def _choose(self, seconds: dict[str, dict[str, Floats]]) -> None:
        """Who is followed: who was already, then the busiest; who was long away is let go."""
        for subject in seconds:
            self._seen[subject] = self._clock
        gone = [one for one, at in self._seen.items() if self._clock - at > _FORGOTTEN_S]
        for subject in gone:
            del self._seen[subject]
            self._trackers.pop(subject, None)
        new = [subject for subject in seconds if subject not in self._trackers]
        new.sort(key=lambda subject: (-_sum(seconds[subject]), subject))
        for subject in new[: MOST - len(self._trackers)]:
            self._trackers[subject] = Tracker(self._turn)
            self._turn += 1

    def _bridge(self, message: Message) -> None:
        """A short gap is missing seconds; after a longer one, or a restart, all begins anew."""
        last, self._last = self._last, (message.boot, message.sequence)
        if last is None or (message.boot, message.sequence) == (last[0], last[1] + 1):
            return
        lost = message.sequence - last[1] - 1
        if message.boot == last[0] and 0 < lost <= _BRIDGED_S:
            for tracker in self._trackers.values():
                for _ in range(lost):
                    tracker.step({}, learn=False)
            return
        self._trackers.clear()
        self._seen.clear()
        self._series = Series()


def line(subject: str, beat: Beat | None, why: str) -> str:
    """One job in words."""
    if beat is None or not beat.readings:
        return f"{subject}: no heartbeat: {why}"
    longest, step = beat.readings[-1], human(beat.period * 1e9, "ns", Kind.GAUGE)
    return (
        f"{subject}: steps of {step},"
        f" {longest.percent:+.1f} % (+-{longest.margin:.1f}) over {longest.window} s"
    )


def _sum(second: dict[str, Floats]) -> float:
    return float(
        sum(np.nansum(values) for name, values in second.items() if name.startswith("cpu"))
    )
