"""Which subjects are looked at in this second, where to look at all would cost too much."""

from __future__ import annotations

from reveal_collector.subjects.tracker import Subject, SubjectTracker

IDLE_SECONDS = 5  # a subject that used no CPU is looked at so often


class Turns:
    """Those whose CPU clock moved, and of the others each in its turn: little happens to them."""

    def __init__(self, tracker: SubjectTracker) -> None:
        self.second = 0
        self._tracker = tracker
        self._before: dict[Subject, int] = {}
        self._now: dict[Subject, int] = {}

    def begin(self) -> None:
        """Another second."""
        self.second += 1
        self._before, self._now = self._now, self._tracker.clocks.copy()

    def due(self, place: int, subject: Subject, idle_seconds: int = IDLE_SECONDS) -> bool:
        """Whether to look at this one; ``place`` tells the idle apart."""
        return (
            (self.second + place) % idle_seconds == 0
            or self._now.get(subject) != self._before.get(subject)
        )  # fmt: skip
