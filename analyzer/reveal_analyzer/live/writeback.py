"""Suppression of the Storage score while disks write and no task waits for them.

The kernel writes dirty pages and its journal in bursts, seconds after the tasks that made them
dirty (Documentation/admin-guide/sysctl/vm.rst, ``dirty_expire_centisecs``).  On a node whose disks
are idle otherwise, such a burst raises ``queue_time`` far over its past, although it delays nobody.
So while hardly any read waits, the kernel's own I/O pressure (Documentation/accounting/psi.rst)
stays low and no disk is busy for long, the score of Storage is suppressed.  Certain signatures are
never suppressed, nor is a node without pressure files.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from reveal_analyzer.arrays import Indices
from reveal_analyzer.derive.channel_index import indices_of
from reveal_analyzer.derive.deriver import Second
from reveal_analyzer.live.disk_requests import disk_channels, requests_seconds
from reveal_contract.channels import Channel
from reveal_contract.metric import Subsystem
from reveal_contract.time_units import NS_PER_SECOND

_SPAN = 10  # seconds, the longest view of the live score
_LEAST_QUEUED = 0.05  # seconds of requests in one second: less raises no score
_MAX_READS = 0.1  # share of the time of all requests that is of reads
_MAX_PRESSURE = 0.05  # share of time in which a task waited
_MAX_BUSY = 0.3  # share of time in which a disk had requests: more may delay the next read
_REQUESTS, _READS = "storage.disk.queue_time", "storage.disk.read_time"
_BUSY, _PRESSURE = "storage.disk.busy_time", "storage.pressure.some"
_STORAGE = frozenset({Subsystem.STORAGE})
_NONE: frozenset[Subsystem] = frozenset()


class _Disks(NamedTuple):
    """The channels of one node's disks, without those that repeat the requests of others."""

    requests: Indices
    reads: Indices
    busy: Indices
    pressure: int


class Writeback:
    """Recent requests of one node's disks, and who waited for them."""

    def __init__(self) -> None:
        self._channels: Sequence[Channel] = ()
        self._disks: _Disks | None = None
        # seconds of requests and of reads, of the busiest disk, and in which a task waited
        self._recent: deque[tuple[float, float, float, float]] = deque(maxlen=_SPAN)

    def push(self, second: Second) -> frozenset[Subsystem]:
        """Add a second; return the subsystems whose score is suppressed in it."""
        if second.plan.channels is not self._channels:
            self._channels = second.plan.channels
            self._disks = _disks(self._channels)
        if self._disks is None:
            return _NONE
        values = second.channels
        requests = requests_seconds(values, self._disks.requests)
        if requests < _LEAST_QUEUED and not self._recent:  # nearly always, on nearly all hosts
            return _NONE
        busiest = float(np.fmax.reduce(values[self._disks.busy])) / NS_PER_SECOND
        pressure = float(values[self._disks.pressure]) / NS_PER_SECOND
        reads = requests_seconds(values, self._disks.reads)
        self._recent.append((requests, reads, busiest, pressure))
        if max(each[0] for each in self._recent) < _LEAST_QUEUED:
            self._recent.clear()
            return _NONE
        return _STORAGE if self._is_harmless() else _NONE

    def _is_harmless(self) -> bool:
        """Return whether nobody waits for the disks; not where the pressure was not read."""
        requests, reads, busy, pressure = np.mean(self._recent, axis=0).tolist()
        few_reads = reads <= _MAX_READS * requests
        return bool(few_reads and busy < _MAX_BUSY and pressure < _MAX_PRESSURE)


def _disks(channels: Sequence[Channel]) -> _Disks | None:
    """Return the channels of disks; None where it is not known whether a task waits for them."""
    pressure = indices_of(channels, _PRESSURE)
    requests, reads, busy = disk_channels(channels, _REQUESTS, _READS, _BUSY)
    return _Disks(requests, reads, busy, pressure[0]) if len(requests) and pressure else None
