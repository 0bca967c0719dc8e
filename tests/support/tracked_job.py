"""A job's CPU clock through a tracker."""

from __future__ import annotations

import numpy as np

from reveal_analyzer.heartbeat.tracker import RhythmTracker, StepTime
from support.heartbeat_nodes import FINE_HZ

CLOCK = "cpu.subject.usage.fine"


def follow(
    clock: np.ndarray, tracker: RhythmTracker | None = None, rate: int = FINE_HZ, learn: bool = True
) -> list[StepTime | None]:
    """Return a step reading for each second of a job's CPU clock."""
    tracker = tracker or RhythmTracker()
    seconds = clock.reshape(-1, rate)
    return [tracker.update({CLOCK: second}, learn=learn) for second in seconds]
