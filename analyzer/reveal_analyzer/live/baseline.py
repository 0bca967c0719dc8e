"""What the score has learned of one node: its past, and what silences it.

A lasting alarm is learned as the node's new normal.  When the levels from before return, what
was known then is worth more than what the fault taught: it is set aside when the alarm begins to
be learned, packed as it may be for hours, and taken back.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
import zstandard

from reveal_analyzer.arrays import Bools, Floats, Floats32
from reveal_analyzer.derive.columns import places_before
from reveal_analyzer.kernels import backend
from reveal_analyzer.kernels.live import UNIT
from reveal_analyzer.live.cuts import OwnLevels
from reveal_analyzer.live.past import Past
from reveal_analyzer.live.remap import Shift
from reveal_analyzer.live.settings import LiveSettings


class Learned:
    """``own_excess`` (2, 2, columns): the highest and second highest of lately."""

    def __init__(self, settings: LiveSettings) -> None:
        self.past = Past(settings)
        self.own_excess: Floats32 = np.zeros((2, 2, 0), np.float32)
        self._levels = OwnLevels(settings)

    @property
    def cuts(self) -> Floats:
        """Of each subsystem; another array once they are others."""
        return self._levels.cuts

    def begin(self, columns: int) -> None:
        """Nothing of these columns has been in excess yet."""
        self.own_excess = np.zeros((2, 2, columns), np.float32)

    def learn_score(self, excess: Floats32, scores: Floats) -> None:
        """This node does that."""
        backend.current().update_own_excess(self.own_excess, excess)
        self._levels.learn(scores)

    def still(self) -> tuple[Floats32, Bools]:
        """Where each column has always been, and which have been there all the time.

        Their own excess silences nothing any more.
        """
        level, still = self.past.still()
        return level, still & (self.own_excess <= UNIT).all(axis=(0, 1))

    def move(self, shift: Shift) -> None:
        """Columns changed."""
        self.past.move(shift)
        self.own_excess = shift.excess(self.own_excess)


@dataclass(frozen=True)
class Aside:
    """What was learned up to a time, and the labels of its columns."""

    packed: bytes
    labels: tuple[str, ...]

    @classmethod
    def of(cls, learned: Learned, labels: tuple[str, ...]) -> Aside:
        return cls(zstandard.compress(pickle.dumps(learned), 1), labels)

    def taken_back(self, labels: Sequence[str], level: Floats32) -> Learned:
        """The same, of the columns that there are now; ``level``: what new ones were."""
        data = zstandard.decompress(self.packed)
        learned = cast("Learned", pickle.loads(data))  # noqa: S301 - bytes of our own
        if tuple(labels) != self.labels:
            learned.move(Shift(places_before(labels, self.labels), level))
        return learned
