"""Step times of one node's jobs: the busiest subjects are tracked, at a bounded cost."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from reveal_analyzer.arrays import Floats
from reveal_analyzer.formatting import human
from reveal_analyzer.heartbeat.series import CounterSeries, SeriesPlan, plan
from reveal_analyzer.heartbeat.tracker import RhythmTracker, StepTime
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.metric import Kind
from reveal_contract.wire import Message

MOST_JOBS = 16  # tracked at the same time
_LONGEST_GAP_S = 3  # in the slices; a longer one ends all tracking
_FORGOTTEN_S = 60
_MOST_PLANS = 8


class StepWatch:
    """Tracks the jobs of one node; ``leave_out`` selects channels that it must ignore."""

    def __init__(self, leave_out: Callable[[Channel], bool] | None = None) -> None:
        self._leave_out = leave_out
        self._plans: dict[bytes, SeriesPlan] = {}
        self._series = CounterSeries()
        self._trackers: dict[str, RhythmTracker] = {}
        self._last_busy: dict[str, int] = {}  # subject -> clock
        self._clock = self._started = 0
        self._last: tuple[bytes, int] | None = None
        self.step_times: dict[str, StepTime] = {}

    def update(
        self, message: Message, table: ChannelTable, *, learn: bool = True
    ) -> dict[str, StepTime]:
        """Add one slice; return the step times that could be tracked, by subject.

        ``learn`` is false during an alarm: then no reference changes.
        """
        self._bridge_gap(message)
        self._clock += 1
        if table.key not in self._plans:
            if len(self._plans) >= _MOST_PLANS:
                self._plans.clear()
            self._plans[table.key] = plan(table, self._leave_out)
        seconds = self._series.second(message, self._plans[table.key])
        if seconds or self._last_busy:
            self._choose(seconds)
        self.step_times = {}
        for subject, tracker in self._trackers.items():
            step = tracker.update(seconds.get(subject, {}), learn=learn)
            if step is not None:
                self.step_times[subject] = step
        return self.step_times

    def lines(self) -> tuple[str, ...]:
        """Return a line for each watched job: its step time, or why that cannot be read."""
        return tuple(
            line(subject, self.step_times.get(subject), tracker.reason)
            for subject, tracker in self._trackers.items()
        )

    def _choose(self, seconds: dict[str, dict[str, Floats]]) -> None:
        """Choose the tracked jobs: those tracked before, then the busiest new ones."""
        for subject in seconds:
            self._last_busy[subject] = self._clock
        gone = [s for s, clock in self._last_busy.items() if self._clock - clock > _FORGOTTEN_S]
        for subject in gone:
            del self._last_busy[subject]
            self._trackers.pop(subject, None)
        new = [subject for subject in seconds if subject not in self._trackers]
        new.sort(key=lambda subject: (-_cpu_time(seconds[subject]), subject))
        for subject in new[: MOST_JOBS - len(self._trackers)]:
            self._trackers[subject] = RhythmTracker(self._started)
            self._started += 1

    def _bridge_gap(self, message: Message) -> None:
        """Count a short gap as missing seconds; start again after a longer one or a reboot."""
        last, self._last = self._last, (message.boot, message.sequence)
        if last is None or (message.boot, message.sequence) == (last[0], last[1] + 1):
            return
        lost = message.sequence - last[1] - 1
        if message.boot == last[0] and 0 < lost <= _LONGEST_GAP_S:
            for tracker in self._trackers.values():
                for _ in range(lost):
                    tracker.update({}, learn=False)
            return
        self._trackers.clear()
        self._last_busy.clear()
        self._series = CounterSeries()


def line(subject: str, step: StepTime | None, reason: str) -> str:
    """Return the step time of one job as text."""
    if step is None or not step.readings:
        return f"{subject}: no heartbeat: {reason}"
    longest, period = step.readings[-1], human(step.period * 1e9, "ns", Kind.GAUGE)
    return (
        f"{subject}: steps of {period},"
        f" {longest.percent:+.1f} % (+-{longest.margin:.1f}) over {longest.window} s"
    )


def _cpu_time(second: dict[str, Floats]) -> float:
    return float(
        sum(np.nansum(values) for name, values in second.items() if name.startswith("cpu"))
    )
