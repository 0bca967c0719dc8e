"""What a job lost, by its own log of steps.

A step needs its CPU time and the waits that the job causes itself: for its storage, for threads of
its own, for a CPU that wakes up.  All other time of the step is lost.  CPU time is that of the same
window, since work that runs slower (caches, clock) loses no time; only where the kernel reclaims
memory in the job's threads, which counts as their CPU time, is it that of the time before.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Span = tuple[float, float]  # seconds since the epoch


class Work(NamedTuple):
    """Steps in some time, and their duration and CPU time (s); parts of steps count as parts."""

    steps: float
    duration: float
    cpu: float

    @property
    def waited(self) -> float:
        """The share of its steps in which the job did not run."""
        return 1 - self.cpu / self.duration if self.duration else 0.0

    @property
    def waits_per_step(self) -> float:
        return (self.duration - self.cpu) / self.steps if self.steps else 0.0

    @property
    def cpu_per_step(self) -> float:
        return self.cpu / self.steps if self.steps else 0.0

    def lost(self, own_waits: float, cpu: float | None = None) -> float:
        """Return the share of its steps that was lost, with so much own waiting (s) a step.

        ``cpu`` is the CPU time of a step, where the window's own is more than a step needs.
        """
        if not self.duration:
            return 0.0
        needed = self.cpu if cpu is None else cpu * self.steps
        return max(0.0, 1 - (needed + own_waits * self.steps) / self.duration)


NOTHING = Work(0.0, 0.0, 0.0)


@dataclass(frozen=True)
class StepLog:
    """The steps of all threads of a job (``begin``, ``duration``, ``cpu``), in seconds."""

    begin: NDArray[np.float64]
    duration: NDArray[np.float64]
    cpu: NDArray[np.float64]

    def work(self, spans: Iterable[Span]) -> Work:
        """Return the work in these times; a step at an edge counts by its part inside."""
        total = NOTHING
        for begin, end in spans:
            first, last = np.maximum(self.begin, begin), np.minimum(self.begin + self.duration, end)
            inside = np.maximum(last - first, 0) / self.duration
            sums = (inside.sum(), inside @ self.duration, inside @ self.cpu)
            total = Work(*(a + float(b) for a, b in zip(total, sums, strict=True)))
        return total


def read_steps(path: Path) -> StepLog:
    """Read the log of ``jobs.py``; lines that are no rows (of a program that failed) are left out.

    A step that the end of its session interrupted has no row.
    """
    rows = [line.split() for line in path.read_text().splitlines()]
    numbers = [row for row in rows if len(row) == 3 and all(map(_is_number, row))]
    begin, duration, cpu = np.array(numbers, float).reshape(-1, 3).T
    return StepLog(begin, np.maximum(duration, 1e-9), cpu)


def _is_number(word: str) -> bool:
    return word.replace(".", "", 1).isdigit()


def cost(before: float, during: float) -> float:
    """Return the part of its rate that a job lost when its lost share rose from one to another."""
    return 1 - (1 - during) / (1 - before) if before < 1 else 0.0
