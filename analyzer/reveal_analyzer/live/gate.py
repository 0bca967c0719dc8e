"""Gates of learning: which columns and scores of a second do not join the baseline.

Learning is gated by what is wrong, not by the node: an alarm that lasts for weeks delays what
deviates together with it, and nothing else.
"""

from __future__ import annotations

import numpy as np

from reveal_analyzer.arrays import Bools, Indices, Ints, Ints16
from reveal_analyzer.live.settings import LiveSettings
from reveal_analyzer.state.tree import StateTree, array
from reveal_contract.metric import Subsystem

CALM_S = 10  # seconds in order after which a column has returned


class ColumnGate:
    """Counts, for each of all columns, the seconds in which something is wrong with it.

    A column that is *out* in a second is left out of the history, for at most ``give_up`` seconds:
    then its level is learned as its new normal.  ``seconds`` counts from the first second in which
    a column was out until it has been in order for ``CALM_S`` seconds, so a level that flickers is
    learned, too.  A run of ``transient`` seconds or less is noise, which the column's own excess
    learns.
    """

    def __init__(self, settings: LiveSettings) -> None:
        self._settings = settings
        self.start(0)

    def start(self, columns: int) -> None:
        """Start with columns that are in order."""
        self.seconds: Ints = np.zeros(columns, np.int64)
        self._run: Ints = np.zeros(columns, np.int64)  # adjacent seconds out
        self._calm: Ints = np.zeros(columns, np.int64)  # seconds in order since then
        self._faulty: Bools = np.zeros(columns, np.bool_)  # a fault of the column's own subsystem
        self._idle = True

    @property
    def idle(self) -> bool:
        """Return whether no column is counted, as on nearly all nodes at nearly all times."""
        return self._idle

    def update(self, out: Bools, missing: Bools, faulty: Bools) -> None:
        """Count a second; a ``missing`` column is neither out nor in order.

        ``faulty`` columns belong to a subsystem of which a fault is reported now.
        """
        observed = ~missing
        self._run = np.where(out, self._run + 1, 0)
        self._calm = np.where(out, 0, self._calm + observed)
        counted = out | ((self.seconds > 0) & (self._calm < CALM_S))
        self.seconds = np.where(counted, self.seconds + observed, 0)
        self._faulty = counted & (self._faulty | (out & faulty))
        self._idle = not counted.any()

    @property
    def young(self) -> Bools:
        """Return the columns that have not been out for long enough to be learned."""
        return self.seconds <= self._settings.give_up

    @property
    def given_up(self) -> Bools:
        """Return the columns whose level begins to be learned as that of a fault."""
        given_up: Bools = self.seconds == self._settings.give_up + 1
        return given_up & self._faulty

    @property
    def lasting(self) -> Bools:
        """Return the columns that have been out for too long for noise."""
        lasting: Bools = self._run > self._settings.transient
        return lasting

    @property
    def begins_to_last(self) -> Bools:
        """Return the columns of which it shows in this second."""
        begins: Bools = self._run == self._settings.transient + 1
        return begins

    def reset(self, columns: Indices) -> None:
        """Count these columns as in order."""
        self.seconds[columns] = self._run[columns] = self._calm[columns] = 0
        self._faulty[columns] = False

    def remap(self, source: Indices) -> None:
        """Adopt another table: previous index of each of its columns, -1 for new ones."""
        if not self.seconds.size:
            self.start(source.size)
            return
        known = source >= 0
        self.seconds, self._run, self._calm = (
            np.where(known, counts[source], 0) for counts in (self.seconds, self._run, self._calm)
        )
        self._faulty = self._faulty[source] & known

    def save(self) -> StateTree:
        """Return the counters; a run starts from 0 again."""
        return {
            "seconds": _short(self.seconds),
            "calm": _short(self._calm),
            "faulty": self._faulty,
        }

    def restore(self, tree: StateTree, columns: int) -> None:
        """Continue with saved counters of so many columns."""
        self.start(columns)
        self.seconds = array(tree, "seconds", np.int64, (columns,))
        self._calm = array(tree, "calm", np.int64, (columns,))
        self._faulty = array(tree, "faulty", np.bool_, (columns,))
        self._idle = not self.seconds.any()


def _short(counts: Ints) -> Ints16:
    return np.minimum(counts, np.iinfo(np.int16).max).astype(np.int16)


class ScoreGate:
    """Counts, for each subsystem, adjacent seconds whose score may be that of a fault.

    Scores of a run of up to ``transient`` seconds are normal for the node and are learned.
    """

    def __init__(self, settings: LiveSettings) -> None:
        self._settings = settings
        self._run: Ints = np.zeros(len(Subsystem), np.int64)
        self._over: Bools = np.zeros(len(Subsystem), np.bool_)
        self.idle = True  # no subsystem is counted

    def update(self, over: Bools, elevated: Bools) -> None:
        """Count a second: scores over the threshold, and high ones while there is an alarm."""
        self._run, self._over = np.where(over | elevated, self._run + 1, 0), over
        self.idle = not self._run.any()

    @property
    def on(self) -> Bools:
        """Return the subsystems whose score may be that of a fault in this second."""
        return self._run > 0

    @property
    def lasting(self) -> Bools:
        """Return the subsystems whose score must not be learned in this second."""
        young = self._run <= self._settings.give_up
        return (self._run > self._settings.transient) & (self._over | young)

    @property
    def begins_to_last(self) -> Bools:
        """Return the subsystems of which it shows in this second."""
        begins: Bools = self._run == self._settings.transient + 1
        return begins
