"""Reference of a case: what each subject used in the minute before its onset.

It is taken when a case opens and kept with it, because the history of a node is shorter than a
case may be.  It can be saved and restored, so that a restart does not lose it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from reveal_analyzer.arrays import Floats
from reveal_analyzer.state.tree import (
    StateError,
    StateTree,
    StateValue,
    array,
    integer,
    number,
    section,
    texts,
)
from reveal_analyzer.subjects.directory import Directory, SubjectKey, is_process_group
from reveal_analyzer.subjects.means import NOTHING, Level, SubjectMeans

_MOST = 100.0  # asinh of more than any counter holds
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

    def save(self) -> dict[str, StateValue]:
        """Return the reference as a state tree."""
        return {"end_ns": self.end_ns, "means": save_means(self.means)}

    @classmethod
    def restore(cls, tree: StateTree) -> SubjectReference:
        """Return the reference of a saved state tree; raises ``StateError``."""
        return cls(integer(tree, "end_ns"), restore_means(section(tree, "means")))


def save_means(means: SubjectMeans) -> dict[str, StateValue]:
    """Return means as arrays: (metrics, subjects), NaN where a subject has no value.

    They hold asinh of the values in half precision, which is exact to 2 %.
    """
    keys = list(dict.fromkeys(key for levels in means.levels.values() for key in levels))
    index = {key: number for number, key in enumerate(keys)}
    shape = len(means.levels), len(keys)
    mean, high = (np.full(shape, np.nan) for _ in range(2))
    for row, levels in enumerate(means.levels.values()):
        for key, level in levels.items():
            mean[row, index[key]], high[row, index[key]] = level
    return {
        "metrics": list(means.levels),
        "instances": [key.instance for key in keys],
        "uids": [key.uid for key in keys],
        "mean": np.arcsinh(mean).astype(np.float16),
        "high": np.arcsinh(high).astype(np.float16),
        "host": dict(means.host),
        "seconds": means.seconds,
        "last_ns": means.last_ns,
    }


def restore_means(tree: StateTree) -> SubjectMeans:
    """Return the means of a saved state tree; raises ``StateError``."""
    metrics, instances, uids = (texts(tree, name) for name in ("metrics", "instances", "uids"))
    if len(instances) != len(uids):
        raise StateError("'instances' and 'uids' differ in length")
    shape = len(metrics), len(instances)
    mean, high = (array(tree, name, np.float64, shape) for name in ("mean", "high"))
    known = ~np.isnan(mean)
    if np.abs(mean[known]).max(initial=0) > _MOST or not (np.abs(high[known]) <= _MOST).all():
        raise StateError("'mean' and 'high' are too large")
    keys = [SubjectKey(*each) for each in zip(instances, uids, strict=True)]
    levels = {
        metric: _levels(keys, np.sinh(mean[row]), np.sinh(high[row]))
        for row, metric in enumerate(metrics)
    }
    hosts = section(tree, "host")
    host = {metric: number(hosts, metric) for metric in hosts}
    return SubjectMeans(levels, host, integer(tree, "seconds"), integer(tree, "last_ns"))


def _levels(keys: Sequence[SubjectKey], mean: Floats, high: Floats) -> dict[SubjectKey, Level]:
    return {
        key: Level(float(mean[column]), float(high[column]))
        for column, key in enumerate(keys)
        if not np.isnan(mean[column])
    }
