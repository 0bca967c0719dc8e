"""What the workloads share: a grid of time, phases, and a log of JSON lines."""

from __future__ import annotations

import json
import os
import sys
import time


class Pace:
    """Begins each piece of work on a grid of ``period`` s, at once where it is late."""

    def __init__(self, period: float) -> None:
        self.period = period
        self._next = time.monotonic()

    def wait(self) -> None:
        ahead = self._next - time.monotonic()
        if ahead > 0:
            time.sleep(ahead)
        self._next = max(self._next + self.period, time.monotonic() - self.period)


class Every:
    """Tells when ``period`` s have passed since it last told so."""

    def __init__(self, period: float) -> None:
        self.period = period
        self._due = time.monotonic() + period

    def due(self) -> bool:
        if time.monotonic() < self._due:
            return False
        self._due += self.period
        return True


def log(event: str, **values: float) -> None:
    """One JSON line on stdout, in one write so that lines of several processes stay whole."""
    row = {"time": round(time.time(), 3), "event": event}
    row |= {name: round(value, 4) for name, value in values.items()}
    os.write(sys.stdout.fileno(), json.dumps(row).encode() + b"\n")
