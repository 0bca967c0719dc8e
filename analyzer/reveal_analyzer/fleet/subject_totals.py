"""Sums of subjects' channels over some seconds, by which their means are computed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from reveal_analyzer.arrays import Floats, Ints, has_nan

SubjectChannel = tuple[str, str]  # metric, instance

_LEAST_READ = 0.5  # of the seconds in which a subject existed


class SubjectSums:
    """Sums of subjects' channels over some seconds, and how many seconds of each were not read."""

    def __init__(self, width: int) -> None:
        self.seconds = 0
        self.sums: Floats = np.zeros(width)
        self.missing = np.zeros(width, np.intp)

    def add(self, values: Floats) -> None:
        """Add a second; NaN where nothing was read."""
        self.seconds += 1
        if has_nan(values):
            missing = np.isnan(values)
            self.missing += missing
            values = np.where(missing, 0.0, values)
        self.sums += values


@dataclass(frozen=True)
class SubjectTotals:
    """Of each channel: the sum of its values, the seconds read, and those in which it existed."""

    keys: tuple[SubjectChannel, ...]
    sums: Floats
    read: Ints
    existed: Ints

    @classmethod
    def of(cls, keys: tuple[SubjectChannel, ...], sums: SubjectSums) -> SubjectTotals:
        """Return the totals of channels that existed in all the seconds."""
        existed = np.full(len(keys), sums.seconds, np.int64)
        return cls(keys, sums.sums, existed - sums.missing, existed)

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
