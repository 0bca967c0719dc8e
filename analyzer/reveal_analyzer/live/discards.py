"""Suppression of the Storage score while disks mostly discard deleted blocks.

Under the mount option ``discard`` the kernel trims deleted blocks from its own worker (ext4:
``ext4_discard_work``).  That fills ``busy_time``, ``queue_time`` and ``in_flight`` of the disk
(kernel: admin-guide/iostats.rst), and as the worker waits, I/O pressure rises too, although no
reader or writer may notice.  The times of the requests decide: while discards are most of what a
node's disks do and hardly any read, write or flush waits, the Storage score is suppressed.  Certain
signatures are never suppressed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np

from reveal_analyzer.derive.deriver import Second
from reveal_analyzer.live.disk_requests import disk_channels, requests_seconds
from reveal_contract.channels import Channel
from reveal_contract.metric import Subsystem

_SPAN = 10  # seconds, the longest view of the live score
_MIN_DISCARDS = 0.05  # seconds of discards in the span: less needs no suppression
_MAX_WAITING = 0.1  # share of the time spent in other requests: more is a job that waits
_DISCARDS, _REQUESTS = "storage.disk.discard_time", "storage.disk.queue_time"
_STORAGE = frozenset({Subsystem.STORAGE})
_NONE: frozenset[Subsystem] = frozenset()


class Discards:
    """Recent discards and requests of one node's disks."""

    def __init__(self) -> None:
        self._channels: Sequence[Channel] = ()
        self._discards = self._requests = np.zeros(0, np.intp)
        # seconds of discards and of all other requests; empty while there was no discard
        self._recent: deque[tuple[float, float]] = deque(maxlen=_SPAN)

    def push(self, second: Second) -> frozenset[Subsystem]:
        """Add a second; return the subsystems whose score is suppressed in it."""
        if second.plan.channels is not self._channels:
            self._channels = second.plan.channels
            [self._discards] = disk_channels(self._channels, _DISCARDS)
            [self._requests] = disk_channels(self._channels, _REQUESTS)
        discarded = requests_seconds(second.channels, self._discards)
        if not (discarded or self._recent):  # nearly always, on nearly all hosts
            return _NONE
        requests = requests_seconds(second.channels, self._requests)  # it includes discards
        self._recent.append((discarded, max(0.0, requests - discarded)))
        by_discards, by_others = map(sum, zip(*self._recent, strict=True))
        most = by_discards > max(by_others, _MIN_DISCARDS)
        waiting = by_others >= _MAX_WAITING * len(self._recent)
        if not by_discards:
            self._recent.clear()
        return _STORAGE if most and not waiting else _NONE
