"""Discards that nobody waits for: what deleting files costs a device, not a job.

Under the mount option ``discard`` the kernel trims what was deleted from a worker of its own
(ext4: ``ext4_discard_work``).  That fills ``busy_time``, ``queue_time`` and ``in_flight`` of the
disk (kernel: admin-guide/iostats.rst), and the worker waits, so that I/O pressure rises too,
while no reader or writer need notice.  Their own times decide: while discards are most of what a
node's disks do and hardly any read, write or flush is waited for, the score of Storage is excused.
Certain signatures never are.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from reveal_analyzer.derive.deriver import Second
from reveal_contract.channels import Channel
from reveal_contract.metric import Subsystem
from reveal_contract.time_units import NS_PER_SECOND

_SPAN = 10  # seconds: as far as the live score looks back
_LEAST = 0.05  # seconds of discards in it: less is nothing to excuse
_WAITED = 0.1  # of the time, in all other requests: as much is somebody who waits
_DISCARDS, _REQUESTS = "storage.disk.discard_time", "storage.disk.queue_time"
_STORAGE = frozenset({Subsystem.STORAGE})
_NONE: frozenset[Subsystem] = frozenset()


class Discards:
    """What the disks of one node did lately, and whether that excuses their score."""

    def __init__(self) -> None:
        self._channels: Sequence[Channel] = ()
        self._discards = self._requests = np.zeros(0, np.intp)
        # seconds of discards and of all else; empty where none of them had a discard
        self._recent: deque[tuple[float, float]] = deque(maxlen=_SPAN)

    def push(self, second: Second) -> frozenset[Subsystem]:
        """Take in a second; the subsystems whose score is excused in it."""
        if second.plan.channels is not self._channels:
            self._channels = second.plan.channels
            self._discards, self._requests = (
                _places(self._channels, metric) for metric in (_DISCARDS, _REQUESTS)
            )
        discarded = _seconds(second, self._discards)
        if not (discarded or self._recent):  # as nearly always, on nearly all hosts
            return _NONE
        self._recent.append((discarded, max(0.0, _seconds(second, self._requests) - discarded)))
        by_discards, by_others = map(sum, zip(*self._recent, strict=True))
        most = by_discards > max(by_others, _LEAST)
        waited = by_others >= _WAITED * len(self._recent)
        if not by_discards:
            self._recent.clear()
        return _STORAGE if most and not waited else _NONE


def _places(channels: Sequence[Channel], metric: str) -> NDArray[np.intp]:
    found = [at for at, channel in enumerate(channels) if channel.metric == metric]
    return np.array(found, np.intp)


def _seconds(second: Second, places: NDArray[np.intp]) -> float:
    """Of requests, on all disks, as far as they are known."""
    times: list[float] = second.channels[places].tolist()
    return sum(time for time in times if time == time) / NS_PER_SECOND  # noqa: PLR0124 - not NaN
