"""Baseline of one node: its history, its own excess, and its thresholds.

A lasting alarm is learned as the node's new normal.  When the levels from before the alarm return,
the baseline from before is more accurate than the one learned during the fault.  So a snapshot is
taken when an alarm begins to be learned, compressed as it may be kept for hours, and restored.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import zstandard

from reveal_analyzer.arrays import Bools, Floats, Floats32
from reveal_analyzer.derive.columns import previous_indices
from reveal_analyzer.kernels import backend
from reveal_analyzer.kernels.live import UNIT
from reveal_analyzer.live.column_map import ColumnMap
from reveal_analyzer.live.history import History
from reveal_analyzer.live.settings import LiveSettings
from reveal_analyzer.live.thresholds import Thresholds


class Baseline:
    """What is normal for one node.

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

    def learn_score(self, excess: Floats32, scores: Floats) -> None:
        """Learn excess and scores of a second as normal for this node."""
        backend.current().update_own_excess(self.own_excess, excess)
        self._thresholds.learn(scores)

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


@dataclass(frozen=True)
class BaselineSnapshot:
    """A baseline as it was at some time, compressed, and the labels of its columns."""

    packed: bytes
    labels: tuple[str, ...]

    @classmethod
    def of(cls, baseline: Baseline, labels: tuple[str, ...]) -> BaselineSnapshot:
        return cls(zstandard.compress(pickle.dumps(baseline), 1), labels)

    def restore(self, labels: Sequence[str], level: Floats32) -> Baseline:
        """Return the baseline for the present columns; ``level`` is the level of new ones."""
        data = zstandard.decompress(self.packed)
        baseline = cast("Baseline", pickle.loads(data))  # noqa: S301 - written by this process
        if tuple(labels) != self.labels:
            baseline.remap(ColumnMap(previous_indices(labels, self.labels), level))
        return baseline
