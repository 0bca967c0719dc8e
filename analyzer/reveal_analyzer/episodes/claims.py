"""Claims of cases: the columns whose harm an open case accounts for.

What is claimed by an open case opens no other case.  A claim lapses when the live score has learned
the level of its column, so that another fault on top of that level is detected.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

import numpy as np

from reveal_analyzer.arrays import Bools, Indices, Ints
from reveal_analyzer.derive.columns import ColumnPlan, previous_indices
from reveal_analyzer.episodes.trace import AnyFloats, ObservedSecond
from reveal_analyzer.state.tree import StateTree, array, texts

_LEARNED_AFTER_S = 60  # age of a claim before its column can be learned
_LEARNED_S = 30  # seconds in a row near the baseline after which the level is learned
_NEAR = 1.0  # weighted excess in spreads
_CALM_S = 10  # seconds in a row near the level from before after which harm is over


class ColumnSet:
    """Columns by label, with their indices in the present plan."""

    def __init__(self, labels: Iterable[str] = ()) -> None:
        self._labels: dict[str, None] = dict.fromkeys(labels)
        self._placed: tuple[ColumnPlan, Indices] | None = None
        self._mask: tuple[Indices, Bools] | None = None

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(self._labels)

    def __len__(self) -> int:
        return len(self._labels)

    def __contains__(self, label: str) -> bool:
        return label in self._labels

    def add(self, labels: Iterable[str]) -> bool:
        """Add columns; return whether any is new."""
        before = len(self._labels)
        self._labels |= dict.fromkeys(labels)
        if len(self._labels) == before:
            return False
        self._placed = None
        return True

    def remove(self, labels: Iterable[str]) -> None:
        """Remove columns."""
        for label in labels:
            self._labels.pop(label, None)
        self._placed = None

    def indices(self, plan: ColumnPlan) -> Indices:
        """Return the index of each column in a plan, in the order of ``labels``; -1 for none."""
        if self._placed is None or self._placed[0] is not plan:
            self._placed = plan, previous_indices(self.labels, plan.labels)
        return self._placed[1]

    def mask(self, plan: ColumnPlan) -> Bools:
        """Return which columns of a plan are in the set, not to be changed."""
        indices = self.indices(plan)
        if self._mask is None or self._mask[0] is not indices:
            mask = np.zeros(len(plan.columns), np.bool_)
            mask[indices[indices >= 0]] = True
            mask.setflags(write=False)
            self._mask = indices, mask
        return self._mask[1]


class TransientColumns:
    """Columns that moved when a case began, until they are back: each with its calm seconds."""

    def __init__(self, labels: Iterable[str]) -> None:
        self._columns = ColumnSet(labels)
        self._calm: Ints = np.zeros(len(self._columns), np.int64)

    def __len__(self) -> int:
        return len(self._columns)

    def update(self, second: ObservedSecond, weighted: AnyFloats) -> tuple[str, ...]:
        """Count a second by the weighted excess of all columns; return those that are back.

        A column that was not read is neither calm nor away.
        """
        indices = self._columns.indices(second.plan)
        self._calm = _near_for(self._calm, weighted[indices], _unread(second, indices))
        over = self._calm >= _CALM_S
        if not over.any():
            return ()
        back = tuple(itertools.compress(self._columns.labels, over.tolist()))
        self._columns.remove(back)
        self._calm = self._calm[~over]
        return back


class Claims:
    """The claimed columns of one case, each with its age and its seconds near the baseline."""

    def __init__(self) -> None:
        self._columns = ColumnSet()
        self._ages: Ints = np.zeros(0, np.int64)
        self._near: Ints = np.zeros(0, np.int64)

    @property
    def labels(self) -> tuple[str, ...]:
        return self._columns.labels

    def save(self) -> StateTree:
        """Return the claims as a state tree."""
        return {"labels": list(self.labels), "ages": self._ages, "near": self._near}

    @classmethod
    def restore(cls, tree: StateTree) -> Claims:
        """Return the claims of a state tree; raises ``StateError``."""
        claims, labels = cls(), texts(tree, "labels")
        claims._columns = ColumnSet(labels)
        width = len(claims._columns)
        claims._ages = array(tree, "ages", np.int64, (width,))
        claims._near = array(tree, "near", np.int64, (width,))
        return claims

    def add(self, labels: Iterable[str]) -> None:
        """Claim columns; a claim that exists goes on."""
        if self._columns.add(labels):
            new = np.zeros(len(self._columns) - self._ages.size, np.int64)
            self._ages, self._near = np.append(self._ages, new), np.append(self._near, new)

    def release(self, labels: Sequence[str]) -> None:
        """Give up the claims on columns."""
        self._keep(np.array([label not in labels for label in self.labels], np.bool_))

    def mask(self, plan: ColumnPlan) -> Bools:
        """Return which columns of a plan are claimed."""
        return self._columns.mask(plan)

    def update(self, second: ObservedSecond) -> tuple[str, ...]:
        """Count a second; drop the claims whose level the live score has learned, return them.

        A column that was not read is neither near the baseline nor away from it.
        """
        if not len(self._columns):
            return ()
        indices = self._columns.indices(second.plan)
        unread = _unread(second, indices)
        self._ages = self._ages + 1
        self._near = _near_for(self._near, second.weighted_excess[indices], unread)
        lapsed = (self._ages > _LEARNED_AFTER_S) & (self._near >= _LEARNED_S)
        if not lapsed.any():
            return ()
        learned = tuple(itertools.compress(self.labels, lapsed.tolist()))
        self._keep(~lapsed)
        return learned

    def _keep(self, kept: Bools) -> None:
        self._columns.remove(list(itertools.compress(self.labels, (~kept).tolist())))
        self._ages, self._near = self._ages[kept], self._near[kept]


def _near_for(seconds: Ints, weighted: AnyFloats, unread: Bools) -> Ints:
    """Return for how many seconds in a row each column has been near its level, with this one."""
    near: Ints = np.where(weighted <= _NEAR, seconds + 1, 0)
    return np.where(unread, seconds, near)


def _unread(second: ObservedSecond, indices: Indices) -> Bools:
    """Return which columns, by index in the plan of a second, were not read in it."""
    unread: Bools = indices < 0
    return unread | second.unobserved[indices] if second.unobserved.size else unread
