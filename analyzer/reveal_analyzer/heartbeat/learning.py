"""Learning of references: suspended for one job at a time, and never for long by others."""

from __future__ import annotations

from collections.abc import Collection

MOST_HELD_S = 60  # in which others may keep a job from learning
_CALM_S = 60  # without a hold, after which they may do so again


class LearningGate:
    """Decides second by second which jobs may learn their reference.

    A job that is slower itself learns nothing.  A fault that began anywhere on the node may slow a
    job down too little to show, so it suspends learning.  It does so for at most ``MOST_HELD_S``
    seconds of each job: what lasts longer is how this node is, and concerns other jobs.
    """

    def __init__(self) -> None:
        self._held: dict[str, int] = {}  # seconds, by subject
        self._calm: dict[str, int] = {}  # seconds in a row without a fault, by subject

    def update(self, subjects: Collection[str], slow: Collection[str], *, fault: bool) -> set[str]:
        """Add one second; return the subjects that may learn in it.

        ``slow`` are those that are slower themselves; ``fault`` is whether one began lately.
        """
        self._held = {subject: self._held.get(subject, 0) for subject in subjects}
        self._calm = {subject: self._calm.get(subject, 0) for subject in subjects}
        return {s for s in subjects if not self._is_held(s, fault=fault)} - set(slow)

    def _is_held(self, subject: str, *, fault: bool) -> bool:
        if fault:
            self._calm[subject] = 0
            self._held[subject] += 1
            return self._held[subject] <= MOST_HELD_S
        self._calm[subject] += 1
        if self._calm[subject] >= _CALM_S:
            self._held[subject] = 0
        return False
