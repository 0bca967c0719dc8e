"""Rotation that decides which subjects are read in a second, where reading all costs too much."""

from __future__ import annotations

from reveal_collector.subjects.tracker import CgroupSubject, SubjectTracker

IDLE_SECONDS = 5  # read period of a subject that used no CPU


class ReadRotation:
    """Selects subjects whose CPU clock changed, and each idle one in every few seconds.

    Tasks that wait use no CPU: a subject whose last read changed a value is read again, too.
    """

    def __init__(self, tracker: SubjectTracker) -> None:
        self.second = 0
        self._tracker = tracker
        self._previous: dict[CgroupSubject, int] = {}
        self._current: dict[CgroupSubject, int] = {}
        self._moving: set[CgroupSubject] = set()

    def advance(self) -> None:
        """Start the next second."""
        self.second += 1
        self._previous, self._current = self._current, self._tracker.clocks.copy()
        self._moving.intersection_update(self._current)

    def is_due(
        self, position: int, subject: CgroupSubject, idle_seconds: int = IDLE_SECONDS
    ) -> bool:
        """Return whether to read a subject now; ``position`` spreads the idle ones evenly."""
        return (
            (self.second + position) % idle_seconds == 0
            or subject in self._moving
            or self._current.get(subject) != self._previous.get(subject)
        )  # fmt: skip

    def note(self, subject: CgroupSubject, *, changed: bool) -> None:
        """Note whether a read of a subject changed a value."""
        (self._moving.add if changed else self._moving.discard)(subject)
