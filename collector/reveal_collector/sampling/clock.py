"""Clocks of the tick thread, in one place so that tests can turn them."""

from __future__ import annotations

import time
import zlib
from typing import Protocol


class Clock(Protocol):
    """Nanoseconds: ``monotonic`` for ticks, ``wall`` (may jump) for time stamps only."""

    def monotonic(self) -> int: ...

    def wall(self) -> int: ...

    def sleep_until(self, monotonic_ns: int) -> None: ...


class SystemClock:
    def monotonic(self) -> int:
        return time.monotonic_ns()

    def wall(self) -> int:
        return time.time_ns()

    def sleep_until(self, monotonic_ns: int) -> None:
        ahead = monotonic_ns - time.monotonic_ns()
        if ahead > 0:
            time.sleep(ahead / 1e9)


def phase_ns(node: str, period_ns: int) -> int:
    """A node's own place in the period.

    Nodes that all tick at once would load Redis in bursts, and a 10 Hz timer in phase with
    other 10 Hz timers of the host sees them always or never.
    """
    return zlib.crc32(node.encode()) * period_ns >> 32
