"""Clocks of the tick thread, injectable for tests."""

from __future__ import annotations

import time
import zlib
from typing import Protocol

from reveal_contract.time_units import NS_PER_SECOND

_LEAST_STEP = 2  # seconds


class Clock(Protocol):
    """Clock in nanoseconds: ``monotonic`` for ticks, ``wall`` (may jump) for timestamps only."""

    def monotonic(self) -> int:
        """Return CLOCK_MONOTONIC in ns."""

    def wall(self) -> int:
        """Return CLOCK_REALTIME in ns."""

    def suspended(self) -> int:
        """Return for how many ns this host was suspended since its boot, about."""

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

    def suspended(self) -> int:
        """Return CLOCK_BOOTTIME, which goes on during a suspension, less CLOCK_MONOTONIC in ns."""
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME) - time.monotonic_ns()

    def sleep_until(self, monotonic_ns: int) -> None:
        """Sleep until this time of the monotonic clock; return at once if it has passed."""
        ahead = monotonic_ns - time.monotonic_ns()
        if ahead > 0:
            time.sleep(ahead / 1e9)


class SliceNumbers:
    """Numbers of slices: whole seconds since the boot, those of a suspension included.

    Without them the time of day would run ahead of the numbers, as if somebody had set the clock.
    """

    def __init__(self, clock: Clock, phase: int) -> None:
        self._clock, self._phase = clock, phase
        self._suspended_s = clock.suspended() // NS_PER_SECOND

    def of(self, due: int) -> int:
        """Return the number of the slice that begins at ``due`` of the monotonic clock."""
        suspended = self._clock.suspended()
        # the two clocks are not read at once: a suspension of less than two seconds is not counted
        if suspended - self._suspended_s * NS_PER_SECOND >= _LEAST_STEP * NS_PER_SECOND:
            self._suspended_s = suspended // NS_PER_SECOND
        return (due - self._phase) // NS_PER_SECOND + self._suspended_s


def phase_ns(node: str, period_ns: int) -> int:
    """Return the node's own offset within the period.

    Nodes that tick at the same moment would load Redis in bursts.  A 10 Hz timer in phase with
    other 10 Hz timers of the host would sample them always or never.
    """
    return zlib.crc32(node.encode()) * period_ns >> 32
