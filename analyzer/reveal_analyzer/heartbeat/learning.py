"""Learning of references: suspended for one job at a time, and never for long by others."""

from __future__ import annotations

from collections.abc import Collection

MOST_SUSPENDED_S = 60  # in which others may keep a job from learning
_CALM_S = 60  # without a fault, after which they may do so again


class LearningGate:
    """Decides second by second which jobs may learn their reference.

    A job that is slower itself learns nothing.  A fault that began anywhere on the node may slow a
    job down too little to show, so it suspends learning.  It does so for at most
    ``MOST_SUSPENDED_S`` seconds of each job: what lasts longer is how this node is, and concerns
    other jobs.
    """

    def __init__(self) -> None:
        self._suspended: dict[str, int] = {}  # seconds, by subject
        self._calm: dict[str, int] = {}  # seconds in a row without a fault, by subject

    def clear(self) -> None:
        """Forget all jobs: none is tracked."""
        self._suspended.clear()
        self._calm.clear()

    def update(self, subjects: Collection[str], slow: Collection[str], *, fault: bool) -> set[str]:
        """Add one second; return the subjects that may learn in it.

        ``slow`` are those that are slower themselves; ``fault`` is whether one began lately.
        """
        self._suspended = {subject: self._suspended.get(subject, 0) for subject in subjects}
        self._calm = {subject: self._calm.get(subject, 0) for subject in subjects}
        return {s for s in subjects if not self._is_suspended(s, fault=fault)} - set(slow)

    def _is_suspended(self, subject: str, *, fault: bool) -> bool:
        if fault:
            self._calm[subject] = 0
            self._suspended[subject] += 1
            return self._suspended[subject] <= MOST_SUSPENDED_S
        self._calm[subject] += 1
        if self._calm[subject] >= _CALM_S:
            self._suspended[subject] = 0
        return False
