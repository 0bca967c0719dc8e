"""Suppression of scores while a subject starts: its own first work is no anomaly.

The first reads of a job are unusual for the node but harmful only if another job waits.  So while
subjects that have just started do nearly all of a subsystem's work, the kernel's own pressure
(Documentation/accounting/psi.rst) stays low and no device is kept busy, the score of that subsystem
is suppressed.  Certain signatures are never suppressed, nor is a node without pressure files.

The kernel reads ahead what a starting job loads (128 KiB at a time, less for small files).  A
subject that requests single pages by the hundred every second does not load; such reads are
reported although nobody waits yet.  Nor does a start lock much memory: the kernel cannot reclaim
that from anybody any more, so it is reported, too.

A subject starts when it appears, and again when the collector counts a start in it: a container of
a known pod, or a unit that is restarted.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from reveal_analyzer.arrays import Floats, Indices
from reveal_analyzer.derive.channel_index import indices_by_metric, indices_of
from reveal_analyzer.derive.deriver import Second
from reveal_analyzer.state.tree import StateTree, array, integer, texts
from reveal_contract.channels import Channel
from reveal_contract.metric import Subsystem
from reveal_contract.time_units import NS_PER_SECOND

NEW_S = 60  # seconds for which a subject counts as new
# It computes for less long before it does its work: imports, and code that is compiled.
NEW_CPU_S = 30
_SETTLED_S = 10  # subjects that appear before were there when the analysis began
_SPAN = 5  # seconds over which share and pressure are judged
_MIN_SHARE = 0.7  # of a subsystem's work, by new subjects
_MAX_PRESSURE = 0.1  # share of time in which a task waited: more is a noisy neighbor, not a start
_MAX_QUEUED = 0.3  # requests at a device: asynchronous ones block it without causing pressure
_MANY_READS = 100  # per second: fewer do not matter, whatever their size
_SMALL_READ = 8_192  # bytes: one or two pages, so read-ahead did not help
_MUCH_LOCKED = 64 << 20  # bytes that became unevictable since the start
_NEW_S = {Subsystem.CPU: NEW_CPU_S, Subsystem.STORAGE: NEW_S, Subsystem.MEMORY: NEW_S}
_WORK = {
    Subsystem.CPU: ("cpu.subject.usage",),
    Subsystem.STORAGE: ("storage.subject.read_bytes", "storage.subject.write_bytes"),
    Subsystem.MEMORY: ("memory.subject.page_faults",),
}
_PRESSURE = {
    Subsystem.CPU: "cpu.pressure.some",
    Subsystem.STORAGE: "storage.pressure.some",
    Subsystem.MEMORY: "memory.pressure.some",
}


_NONE: frozenset[Subsystem] = frozenset()
_QUEUE = "storage.disk.queue_time"
_UNEVICTABLE = "memory.unevictable"
_STARTS = "cpu.subject.starts"
_READS, _READ_BYTES = "storage.subject.reads", "storage.subject.read_bytes"


@dataclass(frozen=True)
class _ReadChannels:
    """Subjects whose reads are counted, and the channels of their number and bytes."""

    subjects: tuple[str, ...]
    reads: Indices
    read_bytes: Indices


@dataclass(frozen=True)
class _WorkChannels:
    """Channels of one subsystem: work by subject, and harm with its limits."""

    subjects: tuple[str, ...]
    work: Indices
    harm: Indices
    limits: Floats
    reads: _ReadChannels | None = None
    locked: int | None = None  # the host's unevictable memory


class JobStarts:
    """When each subject of one node started, and which scores that suppresses."""

    def __init__(self) -> None:
        self._age = 0
        self._started: dict[str, int] = {}
        self._channels: Sequence[Channel] = ()
        self._starts: Indices = np.zeros(0, np.intp)  # channels that count starts
        self._work: dict[Subsystem, _WorkChannels] = {}
        self._recent: dict[Subsystem, deque[tuple[float, ...]]] = {}
        self._least_locked = np.inf  # bytes, since there were new subjects

    def push(self, second: Second) -> frozenset[Subsystem]:
        """Add a second; return the subsystems whose score is suppressed in it."""
        self._age += 1
        if second.plan.channels is not self._channels:
            self._channels = second.plan.channels
            self._work = _work_channels(self._channels)
            self._starts = np.array(indices_of(self._channels, _STARTS), np.intp)
            self._note_new_subjects()
        self._note_starts(second.channels)
        suppressed = [
            subsystem
            for subsystem, work in self._work.items()
            if self._suppressed(subsystem, work, second.channels)
        ]
        return frozenset(suppressed) if suppressed else _NONE

    def save(self) -> StateTree:
        """Return the seconds so far, and when each subject started."""
        started = np.array(list(self._started.values()), np.int64)
        return {"age": self._age, "subjects": list(self._started), "started": started}

    def restore(self, tree: StateTree) -> None:
        """Continue with the starts of another process: who was there is not new."""
        subjects = texts(tree, "subjects")
        started = array(tree, "started", np.int64, (len(subjects),)).tolist()
        self._age = integer(tree, "age")
        self._started = dict(zip(subjects, started, strict=True))

    def _note_new_subjects(self) -> None:
        present = {name for work in self._work.values() for name in work.subjects}
        started = self._age if self._age > _SETTLED_S else -NEW_S
        self._started = {name: self._started.get(name, started) for name in present}

    def _note_starts(self, values: Floats) -> None:
        for index in self._starts[values[self._starts] > 0].tolist():
            name = self._channels[index].instance
            if name in self._started:
                self._started[name] = self._age

    def _suppressed(self, subsystem: Subsystem, channels: _WorkChannels, values: Floats) -> bool:
        new = [self._is_new(name, _NEW_S[subsystem]) for name in channels.subjects]
        recent = self._recent.setdefault(subsystem, deque(maxlen=_SPAN))
        if not any(new):
            recent.clear()
            if channels.locked is not None:
                self._least_locked = np.inf
            return False
        work = np.nan_to_num(values[channels.work])
        harm = values[channels.harm] / NS_PER_SECOND / channels.limits
        small = float(channels.reads is not None and self._small_reads(channels.reads, values))
        # pressure comes first: where it was not read, nobody knows whether a task waits
        worst = np.inf if np.isnan(harm[0]) else float(np.fmax.reduce(harm))
        recent.append((float(work[new].sum()), float(work.sum()), worst, small))
        new_work, all_work, harms, smalls = np.array(recent).T
        # medians of harm and of small reads, as a start may well begin with one burst
        harmless = np.median(harms) < 1 and not (len(recent) == _SPAN and np.median(smalls))
        locks = channels.locked is not None and self._locks_memory(float(values[channels.locked]))
        return bool(new_work.sum() > _MIN_SHARE * all_work.sum() and harmless and not locks)

    def _locks_memory(self, level: float) -> bool:
        """Return whether much memory became unevictable since there were new subjects."""
        self._least_locked = float(np.fmin(self._least_locked, level))
        return level - self._least_locked > _MUCH_LOCKED

    def _small_reads(self, channels: _ReadChannels, values: Floats) -> bool:
        """Return whether new subjects read this second's data in many reads of a page or two."""
        new = [self._is_new(name) for name in channels.subjects]
        reads = float(np.nansum(values[channels.reads[new]]))
        read_bytes = float(np.nansum(values[channels.read_bytes[new]]))
        return reads > _MANY_READS and read_bytes < _SMALL_READ * reads

    def _is_new(self, name: str, seconds: int = NEW_S) -> bool:
        return self._age - self._started[name] < seconds


def _work_channels(channels: Sequence[Channel]) -> dict[Subsystem, _WorkChannels]:
    by_metric = indices_by_metric(channels)
    result = {}
    for subsystem, metrics in _WORK.items():
        work = [index for metric in metrics for index in by_metric.get(metric, ())]
        pressure = [*by_metric.get(_PRESSURE[subsystem], ())]
        queues = [*by_metric.get(_QUEUE, ())] if subsystem is Subsystem.STORAGE else []
        if work and pressure:
            reads = _read_channels(channels, by_metric)
            result[subsystem] = _WorkChannels(
                subjects=tuple(channels[index].instance for index in work),
                work=np.array(work, np.intp),
                harm=np.array(pressure + queues, np.intp),
                limits=np.array([_MAX_PRESSURE] * len(pressure) + [_MAX_QUEUED] * len(queues)),
                reads=reads if subsystem is Subsystem.STORAGE else None,
                locked=next(iter(by_metric.get(_UNEVICTABLE, ())), None)
                if subsystem is Subsystem.MEMORY
                else None,
            )
    return result


def _read_channels(
    channels: Sequence[Channel], by_metric: Mapping[str, Sequence[int]]
) -> _ReadChannels | None:
    counts, sizes = (
        {channels[index].instance: index for index in by_metric.get(metric, ())}
        for metric in (_READS, _READ_BYTES)
    )
    both = [name for name in counts if name in sizes]
    if not both:
        return None
    reads, read_bytes = (
        np.array([by_name[name] for name in both], np.intp) for by_name in (counts, sizes)
    )
    return _ReadChannels(tuple(both), reads, read_bytes)
