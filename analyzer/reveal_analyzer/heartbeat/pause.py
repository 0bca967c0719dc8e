"""Pauses of a job: a run that ended and another that began look like one."""

from __future__ import annotations

_IDLE = 0.1  # of the work a second of the reference
_LEAST_S, _LEAST_STEPS = 5, 3  # of idleness; within a step a job may wait, too


class PauseWatch:
    """Follows one job; ``resumed`` is for how many seconds it has been back from its last pause.

    ``is_on`` is whether it does nothing now, for longer than within a step.
    """

    def __init__(self) -> None:
        self.resumed: int | None = None
        self.is_on = False
        self._idle = 0

    def update(self, work: float | None, normal: float, period: float) -> None:
        """Add the work of one second (``None``: not read) of a job with steps of a period (s).

        ``normal`` is the work of a second of its reference, 0 if that is not known.
        """
        if self.resumed is not None:
            self.resumed += 1
        if work is None or not normal:
            return
        self._idle = self._idle + 1 if work < _IDLE * normal else 0
        self.is_on = self._idle >= max(_LEAST_S, _LEAST_STEPS * period)
        if self.is_on:
            self.resumed = 0

    def note(self) -> None:
        """Note a second in which the job has no rhythm: it is in a pause."""
        self.resumed = 0
