"""Shared parts of the workloads: paced loops, phases, and a log of JSON lines."""

from __future__ import annotations

import json
import os
import sys
import time

READY = "ready"  # a file that a job makes when it has its pace, where that takes long


class Pacer:
    """Starts each piece of work on a grid of ``period`` seconds; at once if it is late."""

    def __init__(self, period: float) -> None:
        self.period = period
        self._next = time.monotonic()

    def wait(self) -> None:
        """Sleep until the next start."""
        ahead = self._next - time.monotonic()
        if ahead > 0:
            time.sleep(ahead)
        self._next = max(self._next + self.period, time.monotonic() - self.period)


class Interval:
    """Reports when ``period`` seconds have passed since its last report."""

    def __init__(self, period: float) -> None:
        self.period = period
        self._due = time.monotonic() + period

    def due(self) -> bool:
        """Return whether the period has passed, and start the next one."""
        if time.monotonic() < self._due:
            return False
        self._due += self.period
        return True


def log(event: str, **values: float) -> None:
    """Write one JSON line to stdout, in one write: lines of several processes must not mix."""
    row = {"time": round(time.time(), 3), "event": event}
    row |= {name: round(value, 4) for name, value in values.items()}
    os.write(sys.stdout.fileno(), json.dumps(row).encode() + b"\n")
