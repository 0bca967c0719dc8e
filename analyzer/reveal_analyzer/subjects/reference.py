"""Reference of a case: what each subject used in the minute before its onset.

It is taken when a case opens and kept with it, because the history of a node is shorter than a
case may be.  It can be saved and restored, so that a restart does not lose it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from reveal_analyzer.arrays import Floats32
from reveal_analyzer.subjects.directory import Directory, SubjectKey, is_process_group
from reveal_analyzer.subjects.means import NOTHING, Level, SubjectMeans

_LEAST_SECONDS = 3  # with fewer, an absent subject may only not have been read yet


@dataclass(frozen=True)
class SubjectReference:
    """Levels of the subjects up to ``end_ns``, shortly before the onset of a case."""

    end_ns: int = 0
    means: SubjectMeans = field(default_factory=SubjectMeans)

    def levels(self, metric: str, directory: Directory) -> dict[SubjectKey, Level]:
        """Return the level of each subject, by the key that it has by now."""
        levels: dict[SubjectKey, Level] = {}
        for key, level in self.means.of(metric).items():
            now = directory.current(key, self.end_ns)
            known = levels.get(now, NOTHING)
            levels[now] = Level(known.mean + level.mean, known.high + level.high)
        return levels

    def level_of_absent(self, metric: str, key: SubjectKey, directory: Directory) -> Level | None:
        """Return the level of a subject that is not in the reference; None if it is unknown.

        It used nothing if it started later.  An announced subject that is older was not measured.
        One that was never announced appears as soon as it uses something.
        """
        if directory.started_after(key, self.end_ns):
            return NOTHING
        if directory.identity(key) is not None or self.means.seconds < _LEAST_SECONDS:
            return None
        return NOTHING if is_process_group(key) or self.means.of(metric) else None

    def save(self) -> dict[str, Any]:
        """Return the reference as a state tree of arrays and texts."""
        return {"end_ns": self.end_ns, "means": save_means(self.means)}

    @classmethod
    def restore(cls, tree: Mapping[str, Any]) -> SubjectReference:
        """Return the reference of a saved state tree."""
        return cls(int(tree["end_ns"]), restore_means(tree["means"]))


def save_means(means: SubjectMeans) -> dict[str, Any]:
    """Return means as arrays: (metrics, subjects), NaN where a subject has no value."""
    keys = list(dict.fromkeys(key for levels in means.levels.values() for key in levels))
    index = {key: number for number, key in enumerate(keys)}
    shape = len(means.levels), len(keys)
    mean, high = (np.full(shape, np.nan, np.float32) for _ in range(2))
    for row, levels in enumerate(means.levels.values()):
        for key, level in levels.items():
            mean[row, index[key]], high[row, index[key]] = level
    return {
        "metrics": list(means.levels),
        "instances": [key.instance for key in keys],
        "uids": [key.uid for key in keys],
        "mean": mean,
        "high": high,
        "host": dict(means.host),
        "seconds": means.seconds,
        "last_ns": means.last_ns,
    }


def restore_means(tree: Mapping[str, Any]) -> SubjectMeans:
    """Return the means of a saved state tree."""
    keys = [SubjectKey(*each) for each in zip(tree["instances"], tree["uids"], strict=True)]
    mean, high = tree["mean"], tree["high"]
    levels = {
        metric: _levels(keys, mean[row], high[row]) for row, metric in enumerate(tree["metrics"])
    }
    host = {metric: float(value) for metric, value in tree["host"].items()}
    return SubjectMeans(levels, host, int(tree["seconds"]), int(tree["last_ns"]))


def _levels(
    keys: Sequence[SubjectKey], mean: Floats32, high: Floats32
) -> dict[SubjectKey, Level]:  # fmt: skip
    return {
        key: Level(float(mean[column]), float(high[column]))
        for column, key in enumerate(keys)
        if not np.isnan(mean[column])
    }
