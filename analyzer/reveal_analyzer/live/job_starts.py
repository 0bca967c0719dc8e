"""Subjects that have just come: what they do themselves is a job that starts, not an anomaly.

A job's first reads are news to a node that has never seen one.  They are harm only where
somebody waits: so while a newcomer does nearly all of a subsystem's work, the kernel's own
pressure (Documentation/accounting/psi.rst) stays low and no device is kept busy, the score of
that subsystem is excused.  Certain signatures are never excused, nor is a node without pressure
files.

What a job loads as it starts is read ahead by the kernel (128 KiB at a time, fewer where files are
small).  Whoever asks for single pages by the hundred, second after second, does not load: such
reads are told although nobody waits yet.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reveal_analyzer.arrays import Floats
from reveal_analyzer.derive.deriver import Second
from reveal_contract.channels import Channel
from reveal_contract.metric import Subsystem
from reveal_contract.time_units import NS_PER_SECOND

NEW_S = 60  # seconds since it came in which a subject is new
_SETTLED_S = 10  # the analysis itself is new before: all were there when it began
_SPAN = 5  # seconds that share and pressure are judged over
_SHARE = 0.7  # of a subsystem's work, by newcomers
_WAITED = 0.1  # share of time in which somebody waited: more is no start but a bad neighbour
_QUEUED = 0.3  # requests at a device: asynchronous ones keep it from others and wait for nothing
_OFTEN = 100  # reads a second: fewer are nothing to speak of, whatever their size
_PAGES = 8_192  # bytes a read: one page or two, so that reading ahead was no use
_WORK = {
    Subsystem.STORAGE: ("storage.subject.read_bytes", "storage.subject.write_bytes"),
    Subsystem.MEMORY: ("memory.subject.page_faults",),
}
_PRESSURE = {
    Subsystem.STORAGE: "storage.pressure.some",
    Subsystem.MEMORY: "memory.pressure.some",
}


_NONE: frozenset[Subsystem] = frozenset()
_QUEUE = "storage.disk.queue_time"
_READS, _READ_BYTES = "storage.subject.reads", "storage.subject.read_bytes"


@dataclass(frozen=True)
class _Readers:
    """Subjects whose reads are counted, and the channels of how many and how much."""

    subjects: tuple[str, ...]
    reads: NDArray[np.intp]
    read_bytes: NDArray[np.intp]


@dataclass(frozen=True)
class _Places:
    """Of one subsystem: its channels by subject, and those of what hurts, with their bounds."""

    subjects: tuple[str, ...]
    work: NDArray[np.intp]
    harm: NDArray[np.intp]
    bounds: Floats
    readers: _Readers | None = None


class Newcomers:
    """Who came when, on one node, and which subsystems that excuses."""

    def __init__(self) -> None:
        self._age = 0
        self._came: dict[str, int] = {}
        self._channels: Sequence[Channel] = ()
        self._places: dict[Subsystem, _Places] = {}
        self._recent: dict[Subsystem, deque[tuple[float, ...]]] = {}

    def push(self, second: Second) -> frozenset[Subsystem]:
        """Take in a second; the subsystems whose score is excused in it."""
        self._age += 1
        if second.plan.channels is not self._channels:
            self._channels = second.plan.channels
            self._places = _places(self._channels)
            self._meet()
        excused = [
            subsystem
            for subsystem, places in self._places.items()
            if self._excused(subsystem, places, second.channels)
        ]
        return frozenset(excused) if excused else _NONE

    def _meet(self) -> None:
        here = {name for places in self._places.values() for name in places.subjects}
        came = self._age if self._age > _SETTLED_S else -NEW_S
        self._came = {name: self._came.get(name, came) for name in here}

    def _excused(self, subsystem: Subsystem, places: _Places, values: Floats) -> bool:
        new = [self._is_new(name) for name in places.subjects]
        recent = self._recent.setdefault(subsystem, deque(maxlen=_SPAN))
        if not any(new):
            recent.clear()
            return False
        work = np.nan_to_num(values[places.work])
        hurt = np.nan_to_num(values[places.harm]) / NS_PER_SECOND / places.bounds
        pages = float(places.readers is not None and self._pages(places.readers, values))
        recent.append((float(work[new].sum()), float(work.sum()), float(hurt.max()), pages))
        theirs, all_work, hurts, paged = np.array(recent).T
        # the middle of the harm and of the reads: a start may well begin with one burst
        harmless = np.median(hurts) < 1 and not (len(recent) == _SPAN and np.median(paged))
        return bool(theirs.sum() > _SHARE * all_work.sum() and harmless)

    def _pages(self, readers: _Readers, values: Floats) -> bool:
        """Whether what newcomers read in this second came in many reads of a page or two."""
        new = [self._is_new(name) for name in readers.subjects]
        reads = float(np.nansum(values[readers.reads[new]]))
        return reads > _OFTEN and float(np.nansum(values[readers.read_bytes[new]])) < _PAGES * reads

    def _is_new(self, name: str) -> bool:
        return self._age - self._came[name] < NEW_S


def _places(channels: Sequence[Channel]) -> dict[Subsystem, _Places]:
    by_metric: dict[str, list[int]] = {}
    for at, channel in enumerate(channels):
        by_metric.setdefault(channel.metric, []).append(at)
    made = {}
    for subsystem, metrics in _WORK.items():
        work = [at for metric in metrics for at in by_metric.get(metric, ())]
        pressure = by_metric.get(_PRESSURE[subsystem], [])
        queues = by_metric.get(_QUEUE, []) if subsystem is Subsystem.STORAGE else []
        if work and pressure:
            made[subsystem] = _Places(
                subjects=tuple(channels[at].instance for at in work),
                work=np.array(work, np.intp),
                harm=np.array(pressure + queues, np.intp),
                bounds=np.array([_WAITED] * len(pressure) + [_QUEUED] * len(queues)),
                readers=_readers(channels, by_metric) if subsystem is Subsystem.STORAGE else None,
            )
    return made


def _readers(channels: Sequence[Channel], by_metric: dict[str, list[int]]) -> _Readers | None:
    counts, sizes = (
        {channels[at].instance: at for at in by_metric.get(metric, ())}
        for metric in (_READS, _READ_BYTES)
    )
    both = [name for name in counts if name in sizes]
    if not both:
        return None
    places = (np.array([held[name] for name in both], np.intp) for held in (counts, sizes))
    return _Readers(tuple(both), *places)
