"""Baseline of one node: its history, its own excess, and its thresholds."""

from __future__ import annotations

import numpy as np

from reveal_analyzer.arrays import Bools, Floats, Floats32, Indices
from reveal_analyzer.kernels import backend
from reveal_analyzer.kernels.live import UNIT
from reveal_analyzer.live.column_map import ColumnMap
from reveal_analyzer.live.history import History
from reveal_analyzer.live.packing import effective
from reveal_analyzer.live.quarantine import QuarantinedSecond
from reveal_analyzer.live.settings import LiveSettings
from reveal_analyzer.live.thresholds import Thresholds
from reveal_analyzer.state.tree import StateTree, finite_array, section


class Baseline:
    """What is normal for the active columns of one node.

    ``own_excess`` (2, 2, columns) are the highest and second highest recent excess of seconds that
    were accepted as normal, upward and downward.
    """

    def __init__(self, settings: LiveSettings) -> None:
        self.history = History(settings)
        self.own_excess: Floats32 = np.zeros((2, 2, 0), np.float32)
        self._thresholds = Thresholds(settings)

    @property
    def thresholds(self) -> Floats:
        """Return the threshold of each subsystem; a new array whenever one changes."""
        return self._thresholds.values

    def start(self, columns: int) -> None:
        """Start with columns that have not been in excess yet."""
        self.own_excess = np.zeros((2, 2, columns), np.float32)

    def learn_scores(self, second: QuarantinedSecond) -> None:
        """Learn the excess and the scores of a second, apart from those of a fault."""
        if second.excess is None or second.scores is None:
            return
        lasting, own = second.lasting, self.own_excess
        known = None if lasting is None else own[..., lasting]
        backend.current().update_own_excess(own, second.excess)
        if lasting is not None:
            own[..., lasting] = known
        self._thresholds.learn(second.scores, second.unlearned)

    def restore(self, columns: Indices, quantiles: Floats32, own_excess: Floats32) -> None:
        """Restore what was normal for these columns before."""
        self.history.restore(columns, quantiles)
        self.own_excess[..., columns] = own_excess

    def save(self) -> StateTree:
        """Return the baseline; it needs one second of history."""
        return {
            "history": self.history.save(),
            "own_excess": effective(self.own_excess),
            "thresholds": self._thresholds.save(),
        }

    def load(self, tree: StateTree, columns: int) -> None:
        """Start with a saved baseline of so many active columns."""
        self.history.load(section(tree, "history"), columns)
        self.own_excess = finite_array(tree, "own_excess", np.float32, (2, 2, columns))
        self._thresholds.restore(section(tree, "thresholds"))

    def constant_levels(self) -> tuple[Floats32, Bools]:
        """Return the level of each column, and which have been there all the time.

        A column whose own excess still suppresses its score does not count as constant.
        """
        level, constant = self.history.constant_levels()
        return level, constant & (self.own_excess <= UNIT).all(axis=(0, 1))

    def remap(self, column_map: ColumnMap) -> None:
        """Adopt a new set of columns."""
        self.history.remap(column_map)
        self.own_excess = column_map.excess(self.own_excess)
