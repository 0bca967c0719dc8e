"""Step times of one node's jobs: the busiest subjects are tracked, at a bounded cost."""

from __future__ import annotations

from collections.abc import Callable, Collection

from reveal_analyzer.arrays import Floats
from reveal_analyzer.formatting import human
from reveal_analyzer.heartbeat.job_selection import MOST_JOBS, JobSelection
from reveal_analyzer.heartbeat.series import CounterSeries, SeriesPlan, plan
from reveal_analyzer.heartbeat.tracker import RhythmTracker, StepTime
from reveal_analyzer.state.tree import (
    StateError,
    StateTree,
    integer,
    named_sections,
    number,
    section,
    text,
)
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.metric import Kind
from reveal_contract.wire import Message

_LONGEST_GAP_S = 300  # in the slices; after a longer one the jobs may be others
_MOST_PLANS = 8
_NOT_SELECTED = f"only {MOST_JOBS} subjects of a node are tracked"
_TOO_SHORT = "too few of its steps were observed"


def always(_: str) -> bool:
    """Let every job learn."""
    return True


class StepWatch:
    """Tracks the jobs of one node; ``leave_out`` selects channels that it must ignore."""

    def __init__(self, leave_out: Callable[[Channel], bool] | None = None) -> None:
        self._leave_out = leave_out
        self._plans: dict[bytes, SeriesPlan] = {}
        self._series = CounterSeries()
        self._trackers: dict[str, RhythmTracker] = {}
        self._selection = JobSelection()
        self._subjects: frozenset[str] = frozenset()  # of the last table
        self._started = 0
        self._last: tuple[bytes, int] | None = None
        self.step_times: dict[str, StepTime] = {}

    def update(
        self, message: Message, table: ChannelTable, may_learn: Callable[[str], bool] = always
    ) -> dict[str, StepTime]:
        """Add one slice; return the step times that could be tracked, by subject.

        The reference of a subject changes only in seconds in which it ``may_learn``.
        """
        self._bridge_gap(message)
        if table.key not in self._plans:
            if len(self._plans) >= _MOST_PLANS:
                self._plans.clear()
            self._plans[table.key] = plan(table, self._leave_out)
        where = self._plans[table.key]
        self._subjects = where.known
        seconds = self._series.second(message, where)
        if seconds or self._selection:
            self._choose(seconds)
        self.step_times = {}
        for subject, tracker in self._trackers.items():
            step = tracker.update(seconds.get(subject, {}), learn=may_learn(subject))
            if step is not None:
                self.step_times[subject] = step
        return self.step_times

    @property
    def subjects(self) -> Collection[str]:
        """The tracked subjects."""
        return self._trackers.keys()

    def is_unread(self, subject: str) -> bool:
        """Return whether a job has a rhythm whose counters were not read in the last seconds."""
        tracker = self._trackers.get(subject)
        return tracker is not None and tracker.is_unread

    def is_gone(self, subject: str) -> bool:
        """Return whether the last table has no counters of this subject."""
        return subject not in self._subjects

    def accept(self, subject: str) -> None:
        """Take the present step time of a job for its reference."""
        if subject in self._trackers:
            self._trackers[subject].accept()

    def lines(self) -> tuple[str, ...]:
        """Return a line for each busy subject: its step time, or why that cannot be read."""
        tracked = (
            line(subject, self.step_times.get(subject), tracker.reason)
            for subject, tracker in self._trackers.items()
        )
        return (
            *tracked,
            *(line(subject, None, _NOT_SELECTED) for subject in self._selection.waiting),
        )

    def save(self) -> StateTree:
        """Return the rhythms and references of the jobs, and the last slice."""
        boot, sequence = self._last or (b"", 0)
        jobs: dict[str, StateTree] = {
            subject: {"rhythm": rhythm, "busy": self._series.usage(subject)}
            for subject, tracker in self._trackers.items()
            if (rhythm := tracker.save()) is not None
        }
        return {"boot": boot.hex(), "sequence": sequence, "jobs": jobs}

    def restore(self, tree: StateTree) -> None:
        """Continue with saved rhythms; raises ``StateError`` and changes nothing if it is unfit."""
        jobs = named_sections(tree, "jobs")
        if len(jobs) > MOST_JOBS:
            raise StateError(f"it has {len(jobs)} jobs, at most {MOST_JOBS} are tracked")
        trackers = {
            subject: RhythmTracker.restored(section(job, "rhythm")) for subject, job in jobs.items()
        }
        usages = {subject: number(job, "busy") for subject, job in jobs.items()}
        try:
            boot = bytes.fromhex(text(tree, "boot"))
        except ValueError as error:
            raise StateError(f"its boot id cannot be read: {error}") from None
        self._last = boot, integer(tree, "sequence")
        self._trackers, self._series = trackers, CounterSeries(usages)
        self._selection = JobSelection.of(trackers)
        self._subjects = frozenset(trackers)

    def _choose(self, seconds: dict[str, dict[str, Floats]]) -> None:
        """Choose the tracked jobs."""
        uses = {subject: self._series.usage(subject) for subject in seconds}
        added = self._selection.update(uses, self._is_read)
        for subject in [each for each in self._trackers if each not in self._selection]:
            del self._trackers[subject]
        for subject in added:
            self._trackers[subject] = RhythmTracker(self._started)
            self._started += 1

    def _is_read(self, subject: str) -> bool:
        return subject in self._trackers and self._trackers[subject].is_read

    def _bridge_gap(self, message: Message) -> None:
        """Count a gap as missing seconds; start again after a very long one or a reboot."""
        last, self._last = self._last, (message.boot, message.sequence)
        if last is None or (message.boot, message.sequence) == (last[0], last[1] + 1):
            return
        lost = message.sequence - last[1] - 1
        if message.boot == last[0] and 0 < lost <= _LONGEST_GAP_S:
            for tracker in self._trackers.values():
                tracker.skip(lost)
            return
        self._trackers.clear()
        self._selection = JobSelection()
        self._series = CounterSeries()


def line(subject: str, step: StepTime | None, reason: str) -> str:
    """Return the step time of one job as text."""
    if step is None or not step.readings:
        return f"{subject}: no heartbeat: {reason or _TOO_SHORT}"
    longest, period = step.readings[-1], human(step.period * 1e9, "ns", Kind.GAUGE)
    return (
        f"{subject}: steps of {period},"
        f" {longest.percent:+.1f} % (+-{longest.margin:.1f}) over {longest.window} s"
    )
