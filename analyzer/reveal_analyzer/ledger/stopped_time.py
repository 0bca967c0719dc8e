"""The part of the time in which threads were stopped that they would have worked.

The kernel counts the time of every stopped thread, also of those that would have slept: a pool of
workers without work, a suspended editor beside a job.  A subject loses no more by its stopped
threads than it desired before and does not want now.
"""

from __future__ import annotations

import numpy as np

from reveal_analyzer.arrays import Bools, Floats
from reveal_contract.time_units import NS_PER_SECOND

_STOPPED = 0.01  # of the thread time; below it a second is one without stops
_WHOLE_NS = 0.01 * NS_PER_SECOND  # that the time of threads stopped all the second may differ
_RATE = 0.1  # of the mean of what a subject wants, a second


class StoppedTime:
    """Remembers what each subject of one node wants while none of its threads is stopped."""

    def __init__(self) -> None:
        self._subjects: tuple[str, ...] = ()
        self._before: Floats = np.zeros(0)  # desired in ns a second; NaN where that is not known
        # the least that was missing since threads were stopped without a pause
        self._missing: Floats = np.zeros(0)

    def lost(
        self,
        subjects: tuple[str, ...],
        valid: Bools,
        desired: Floats,
        stopped: Floats,
        existed: Floats,
    ) -> Floats:
        """Return for each subject the time (n,) that it lost because threads were stopped, in ns.

        ``desired`` is the time in which threads neither slept nor were stopped, ``existed`` that in
        which they existed, all of one second.
        """
        self._follow(subjects)
        is_stopped = stopped > _STOPPED * existed
        self._learn(valid & ~is_stopped, desired)
        if not is_stopped.any():
            self._missing[:] = np.inf
            return np.zeros(stopped.size)
        is_whole = is_stopped & _is_whole(stopped)
        rest = existed - stopped
        # the threads that are not stopped now stand for those that are
        scaled = np.divide(desired * existed, rest, out=np.zeros(rest.size), where=rest > 0)
        missing = np.maximum(np.nan_to_num(self._before) - desired, 0.0)
        # threads that are stopped for long lost nothing once the subject desired as much as before
        self._missing = np.where(is_whole, np.minimum(self._missing, missing), np.inf)
        partly = np.fmax(self._before, scaled) - desired
        lost = np.where(is_whole, self._missing, partly)
        result: Floats = np.where(is_stopped, np.clip(lost, 0.0, stopped), 0.0)
        return result

    def _follow(self, subjects: tuple[str, ...]) -> None:
        """Put what is known into the order of these subjects."""
        if subjects is self._subjects:
            return
        rows = {name: row for row, name in enumerate(self._subjects)}
        known = [rows.get(name, -1) for name in subjects]
        self._before = np.append(self._before, np.nan)[known]
        self._missing = np.append(self._missing, np.inf)[known]
        self._subjects = subjects

    def _learn(self, rows: Bools, desired: Floats) -> None:
        before = np.where(np.isnan(self._before), desired, self._before)
        self._before[rows] = (before + (desired - before) * _RATE)[rows]


def _is_whole(stopped: Floats) -> Bools:
    """Return where the time is that of some threads that were stopped all the second."""
    threads = np.rint(stopped / NS_PER_SECOND)
    result: Bools = (threads >= 1) & (np.abs(stopped - threads * NS_PER_SECOND) <= _WHOLE_NS)
    return result
