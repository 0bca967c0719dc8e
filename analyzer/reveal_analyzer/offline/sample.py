"""A sample of the seconds of a recording, of bounded size whatever the length of the recording.

Of a short recording it has all seconds.  Of a longer one it has every n-th, and the seconds just
before each, which its sustained views need.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from reveal_analyzer.arrays import Floats, Floats32, Indices
from reveal_analyzer.derive.columns import previous_indices
from reveal_analyzer.derive.deriver import Second

MAX_SECONDS = 1200  # in the sample; from there on every second one is left out


class Alignment:
    """Values in the columns ``labels``: NaN where one was not read, 0 where the table had it not.

    Remembers the last columns that it was asked for: most seconds have the same.
    """

    def __init__(self, labels: tuple[str, ...]) -> None:
        self._labels = self._last = labels
        self._source: Indices = np.arange(len(labels), dtype=np.intp)

    def align(self, labels: tuple[str, ...], values: Floats | Floats32) -> Floats:
        """Return values of the columns ``labels`` in the order of this alignment."""
        if labels is not self._last:
            self._last, self._source = labels, previous_indices(self._labels, labels)
        aligned: Floats = np.where(self._source < 0, 0.0, values[self._source])
        return aligned


@dataclass(frozen=True, slots=True)
class KeptSecond:
    """A second of the sample, or one of those before it."""

    start_ns: int
    labels: tuple[str, ...]
    values: Floats | Floats32

    @classmethod
    def of(cls, second: Second) -> KeptSecond:
        return cls(second.start_ns, second.plan.labels, second.values)

    def compact(self) -> KeptSecond:
        """Return the same in half the memory, which is precise enough for a range."""
        return KeptSecond(self.start_ns, self.labels, self.values.astype(np.float32))


class SecondsSample:
    """Every ``step``-th second, and the ``depth`` - 1 seconds before each; takes them in order."""

    def __init__(self, depth: int) -> None:
        self.step = 1
        self.count = 0
        self._depth = depth
        self._kept: dict[int, KeptSecond] = {}

    def add(self, second: Second) -> None:
        """Take the next second of the recording."""
        if self._is_needed(self.count):
            kept = KeptSecond.of(second)
            self._kept[self.count] = kept if self.step == 1 else kept.compact()
        self.count += 1
        if self.count > MAX_SECONDS * self.step:
            self._thin()

    def has(self, index: int) -> bool:
        """Return whether the second at this position of the recording is in the sample."""
        return index % self.step == 0

    @property
    def indices(self) -> Indices:
        """Return the positions of the sample in the recording."""
        return np.arange(0, self.count, self.step, dtype=np.intp)

    def kept(self) -> Iterator[tuple[int, KeptSecond]]:
        """Return the seconds of the sample and those before each, with their positions."""
        return iter(self._kept.items())

    def _is_needed(self, index: int) -> bool:
        return -index % self.step < self._depth

    def _thin(self) -> None:
        self.step *= 2
        self._kept = {
            index: second.compact()
            for index, second in self._kept.items()
            if self._is_needed(index)
        }
