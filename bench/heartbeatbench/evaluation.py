"""Heartbeat readings of recorded jobs, compared with the jobs' own logs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from heartbeatbench.schedule import Episode
from heartbeatbench.step_log import Steps
from reveal_analyzer.heartbeat.findings import JobMonitor
from reveal_analyzer.heartbeat.reference import REFERENCE_S, WINDOWS
from reveal_analyzer.heartbeat.tracker import StepTime
from reveal_analyzer.subjects.history import SubjectHistory
from reveal_contract.channels import ChannelTable
from reveal_contract.wire import Message

_SETTLE_S = 20.0  # before a lock: what its first readings looked back on


@dataclass(frozen=True)
class Read:
    """One reading: over ``window`` s until ``end`` (s of the session), in percent."""

    end: float
    window: int
    percent: float
    level: float


@dataclass
class Job:
    """All that was read of one job."""

    locked: float | None = None
    reads: list[Read] = field(default_factory=list)
    seconds: int = 0  # with a heartbeat


@dataclass(frozen=True)
class SlowdownUpdate:
    """A finding of a slowdown, by the job it names."""

    seconds: float
    change: str
    subject: str
    percent: float
    claim: str


@dataclass
class Played:
    """One session played: jobs by subject, findings, and the seconds with a heartbeat."""

    jobs: dict[str, Job] = field(default_factory=dict)
    updates: list[SlowdownUpdate] = field(default_factory=list)
    seconds: int = 0
    last_lines: tuple[str, ...] = ()


@dataclass(frozen=True)
class Error:
    """A reading beside the truth, both in percent of the job's usual step."""

    end: float
    window: int
    read: float
    true: float
    level: float


def play(slices: Iterable[tuple[Message, ChannelTable]], start_ns: int) -> Played:
    """What an analyzer's heartbeats would have said of a recording."""
    played, monitor = Played(), JobMonitor("bench", (), SubjectHistory())
    for message, table in slices:
        end_ns = message.start_ns + len(message.fast) * message.tick_us * 1000
        end = (end_ns - start_ns) / 1e9
        for update in monitor.update(message, table, None, ()):
            impact = update.finding.impact
            if impact is not None:
                played.updates.append(SlowdownUpdate(
                    end, str(update.change), impact.subject, impact.slowdown_percent,
                    update.finding.claim,
                ))  # fmt: skip
        for subject, step in monitor.step_times.items():
            _note(played.jobs.setdefault(subject, Job()), step, end)
        played.seconds += 1
    played.last_lines = monitor.lines()
    return played


def _note(job: Job, step: StepTime, end: float) -> None:
    if job.locked is None:
        job.locked = end
    if step.readings:
        job.seconds += 1
    job.reads += [
        Read(end, reading.window, reading.percent, reading.level) for reading in step.readings
    ]


def errors(job: Job, steps: Steps, edges: Iterable[float]) -> Iterator[Error]:
    """Every reading whose window no edge cuts, beside what the job's own log says."""
    if job.locked is None:
        return
    baseline = steps.mean(job.locked - _SETTLE_S, job.locked + REFERENCE_S)
    if baseline is None:
        return
    sorted_edges = np.array(sorted(edges))
    for read in job.reads:
        begin = read.end - read.window
        if ((sorted_edges > begin - 1) & (sorted_edges < read.end + 1)).any():
            continue
        now = steps.mean(begin, read.end)
        if now is not None:
            true = 100 * (now / baseline - 1)
            yield Error(read.end, read.window, read.percent, true, read.level)


@dataclass(frozen=True)
class Detected:
    """Whether an episode was called a slowdown, by window, in the first that lies within it."""

    job: str
    percent: float  # as its log has it
    by: dict[int, bool]


def detected(name: str, found: Iterable[Error], episode: Episode) -> Detected | None:
    """Of one episode; ``None`` where nothing was read wholly within it."""
    first: dict[int, Error] = {}
    for error in found:
        if error.end - error.window >= episode.begin and error.end <= episode.end:
            first.setdefault(error.window, error)
    if not first:
        return None
    longest = first[max(first)]
    return Detected(
        name, longest.true, {w: reading.read > reading.level for w, reading in first.items()}
    )


def spread(found: Iterable[Error]) -> dict[int, tuple[float, float, int]]:
    """By window: median and 90th percentile of the absolute error in points, and how many."""
    listed = list(found)
    result = {}
    for window in WINDOWS:
        off = [abs(error.read - error.true) for error in listed if error.window == window]
        if off:
            result[window] = (
                float(np.percentile(off, 50)), float(np.percentile(off, 90)), len(off),
            )  # fmt: skip
    return result


def false_slowdowns(
    updates: Iterable[SlowdownUpdate], subject: str, steps: Steps | None, baseline: float | None
) -> list[SlowdownUpdate]:
    """Slowdowns opened of a job that, by its log, had not lost half of what was claimed.

    A claim may rest on any of the windows: one made after ten seconds is of those ten.
    """
    results = []
    for update in updates:
        if update.subject != subject or update.change != "Opened":
            continue
        means = (
            [steps.mean(update.seconds - window, update.seconds) for window in WINDOWS]
            if steps
            else []
        )
        lost = [100 * (mean / baseline - 1) for mean in means if mean is not None and baseline]
        if max(lost, default=0.0) < update.percent / 2:
            results.append(update)
    return results
