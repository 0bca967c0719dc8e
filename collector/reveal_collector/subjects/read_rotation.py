"""Rotation that decides which subjects are read in a second, where reading all costs too much."""

from __future__ import annotations

from reveal_collector.subjects.tracker import CgroupSubject, SubjectTracker

IDLE_SECONDS = 5  # read period of a subject that used no CPU


class ReadRotation:
    """Selects subjects whose CPU clock changed, and each idle one in every few seconds."""

    def __init__(self, tracker: SubjectTracker) -> None:
        self.second = 0
        self._tracker = tracker
        self._previous: dict[CgroupSubject, int] = {}
        self._current: dict[CgroupSubject, int] = {}

    def advance(self) -> None:
        """Start the next second."""
        self.second += 1
        self._previous, self._current = self._current, self._tracker.clocks.copy()

    def is_due(
        self, position: int, subject: CgroupSubject, idle_seconds: int = IDLE_SECONDS
    ) -> bool:
        """Return whether to read a subject now; ``position`` spreads the idle ones evenly."""
        return (
            (self.second + position) % idle_seconds == 0
            or self._current.get(subject) != self._previous.get(subject)
        )  # fmt: skip
