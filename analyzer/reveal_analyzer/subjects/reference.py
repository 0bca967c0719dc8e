"""Reference of a case: what each subject used in the minute before its onset.

It is taken when a case opens and kept with it, because the history of a node is shorter than a
case may be.  It can be saved and restored, so that a restart does not lose it.
"""

from __future__ import annotations

import operator
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
            levels[now] = Level(*map(operator.add, known, level))
        return levels

    def level_of_absent(self, metric: str, key: SubjectKey, directory: Directory) -> Level | None:
        """Return the level of a subject that is not in the reference; None if it is unknown.

        It used nothing if it started later.  An announced subject that is older was not measured.
        One that was never announced appears as soon as it uses something.
        """
        if directory.started_after(key, self._last_ns):
            return NOTHING
        if directory.identity(key) is not None or self.means.seconds < _LEAST_SECONDS:
            return None
        return NOTHING if is_process_group(key) or self.means.of(metric) else None

    @property
    def _last_ns(self) -> int:
        """The last second that counts: those of other cases, and of a gap, are left out."""
        return min(self.end_ns, self.means.last_ns) if self.means.seconds else self.end_ns

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
    values = np.full((len(Level._fields), len(means.levels), len(keys)), np.nan)
    for row, levels in enumerate(means.levels.values()):
        for key, level in levels.items():
            values[:, row, index[key]] = level
    arrays = zip(Level._fields, np.arcsinh(values).astype(np.float16), strict=True)
    return {
        "metrics": list(means.levels),
        "instances": [key.instance for key in keys],
        "uids": [key.uid for key in keys],
        **dict(arrays),
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
    # an earlier version saved no peak
    peak = "peak" if "peak" in tree else "high"
    values = np.stack([array(tree, name, np.float64, shape) for name in ("mean", "high", peak)])
    known = ~np.isnan(values[0])
    if not (np.abs(values[:, known]) <= _MOST).all():
        raise StateError("'mean', 'high' and 'peak' are not all within bounds")
    keys = [SubjectKey(*each) for each in zip(instances, uids, strict=True)]
    used = np.sinh(values)
    levels = {metric: _levels(keys, used[:, row]) for row, metric in enumerate(metrics)}
    hosts = section(tree, "host")
    host = {metric: number(hosts, metric) for metric in hosts}
    return SubjectMeans(levels, host, integer(tree, "seconds"), integer(tree, "last_ns"))


def _levels(keys: Sequence[SubjectKey], values: Floats) -> dict[SubjectKey, Level]:
    """Return the levels of ``values``, (fields, subjects)."""
    return {
        key: Level(*map(float, values[:, column]))
        for column, key in enumerate(keys)
        if not np.isnan(values[0, column])
    }
