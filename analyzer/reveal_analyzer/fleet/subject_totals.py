"""Sums of values over the seconds in which they were read, by which means are computed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from reveal_analyzer.arrays import Floats, Ints

SubjectChannel = tuple[str, str]  # metric, instance

_LEAST_READ = 0.5  # of the seconds in which a value could have been read


class ReadSums:
    """Sums of some values over seconds, and how many seconds of each were not read.

    The same values are missing in most seconds: a run of such seconds is added up without a look at
    each value.
    """

    def __init__(self, width: int) -> None:
        self.seconds = 0
        self._sums: Floats = np.zeros(width)
        self._missing = np.zeros(width, np.int64)
        self._run: Floats = np.zeros(width)
        self._run_seconds = 0
        self._run_pattern = b""

    def add(self, values: Floats) -> None:
        """Add a second; NaN where nothing was read."""
        pattern = np.isnan(values).tobytes()
        if pattern != self._run_pattern:
            self._end_run()
            self._run_pattern = pattern
        self._run += values
        self._run_seconds += 1
        self.seconds += 1

    def totals(self) -> tuple[Floats, Ints]:
        """Return the sums, and the seconds of each value that were read."""
        self._end_run()
        return self._sums, self.seconds - self._missing

    def means(self) -> Floats:
        """Return means over the seconds that were read; NaN where they are less than half."""
        sums, read = self.totals()
        enough = (read > 0) & (read >= _LEAST_READ * self.seconds)
        return np.where(enough, sums / np.maximum(read, 1), np.nan)

    def _end_run(self) -> None:
        if self._run_seconds:
            missing = np.frombuffer(self._run_pattern, np.bool_)
            self._sums = self._sums + np.where(missing, 0.0, self._run)
            self._missing = self._missing + self._run_seconds * missing
            self._run, self._run_seconds = np.zeros(len(missing)), 0


@dataclass(frozen=True)
class SubjectTotals:
    """Of each channel: the sum of its values, the seconds read, and those in which it existed."""

    keys: tuple[SubjectChannel, ...]
    sums: Floats
    read: Ints
    existed: Ints

    @classmethod
    def of(cls, keys: tuple[SubjectChannel, ...], sums: ReadSums) -> SubjectTotals:
        """Return the totals of channels that existed in all the seconds."""
        summed, read = sums.totals()
        return cls(keys, summed, read, np.full(len(keys), sums.seconds, np.int64))

    @classmethod
    def joined(cls, parts: Sequence[SubjectTotals]) -> SubjectTotals:
        """Return the totals over all these parts."""
        if len(parts) == 1:
            return parts[0]
        keys = tuple(dict.fromkeys(chain.from_iterable(part.keys for part in parts)))
        index = {key: number for number, key in enumerate(keys)}
        result = cls(keys, *(np.zeros(len(keys), kind) for kind in (np.float64, int, int)))
        for part in parts:
            where = np.array([index[key] for key in part.keys], np.intp)
            np.add.at(result.sums, where, part.sums)
            np.add.at(result.read, where, part.read)
            np.add.at(result.existed, where, part.existed)
        return result

    def means(self) -> dict[SubjectChannel, float]:
        """Return the mean of each channel over the seconds in which it was read.

        A channel of which less than half was read while it existed is not among them.
        """
        enough = (self.read > 0) & (self.read >= _LEAST_READ * self.existed)
        means = self.sums / np.maximum(self.read, 1)
        return {
            key: mean
            for key, mean, known in zip(self.keys, means.tolist(), enough.tolist(), strict=True)
            if known
        }
