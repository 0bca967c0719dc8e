"""Clocks of the tick thread, injectable for tests."""

from __future__ import annotations

import time
import zlib
from typing import Protocol


class Clock(Protocol):
    """Clock in nanoseconds: ``monotonic`` for ticks, ``wall`` (may jump) for timestamps only."""

    def monotonic(self) -> int:
        """Return CLOCK_MONOTONIC in ns."""

    def wall(self) -> int:
        """Return CLOCK_REALTIME in ns."""

    def sleep_until(self, monotonic_ns: int) -> None:
        """Sleep until this time of the monotonic clock."""


class SystemClock:
    """The clocks of this machine."""

    def monotonic(self) -> int:
        """Return CLOCK_MONOTONIC in ns."""
        return time.monotonic_ns()

    def wall(self) -> int:
        """Return CLOCK_REALTIME in ns."""
        return time.time_ns()

    def sleep_until(self, monotonic_ns: int) -> None:
        """Sleep until this time of the monotonic clock; return at once if it has passed."""
        ahead = monotonic_ns - time.monotonic_ns()
        if ahead > 0:
            time.sleep(ahead / 1e9)


def phase_ns(node: str, period_ns: int) -> int:
    """Return the node's own offset within the period.

    Nodes that tick at the same moment would load Redis in bursts.  A 10 Hz timer in phase with
    other 10 Hz timers of the host would sample them always or never.
    """
    return zlib.crc32(node.encode()) * period_ns >> 32
