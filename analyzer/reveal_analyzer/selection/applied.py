"""Application of a metric selection to findings: which column is reported instead of which.

The column of a dropped channel is dropped.  A column folded over CPUs is dropped if all of its CPUs
are, and the metric that represents most of them represents the column.  Columns that no recording
of the selection had are kept, as nothing shows that others are equivalent.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from reveal_analyzer.arrays import Floats, Indices
from reveal_analyzer.derive.columns import CHANGE, LARGEST, LEVEL, Column
from reveal_analyzer.selection.file import Selection
from reveal_contract.channels import Channel
from reveal_contract.finding import Evidence, Finding


class AppliedSelection:
    """A selection, applied to the columns of a plan.

    ``scored``: the score, too, uses kept columns only.
    """

    def __init__(self, selection: Selection, *, scored: bool = False) -> None:
        self.scored = scored
        self.dropped = {each.metric: each.by for each in selection.dropped}
        self._dropped_folds = _dropped_folds(selection)
        self._known: tuple[Sequence[Column], Indices] | None = None

    def representatives(self, columns: Sequence[Column]) -> Indices:
        """Return for each column the index of the column that is reported instead.

        A kept column, or one whose representative is not among these, represents itself.
        """
        if self._known is None or self._known[0] is not columns:
            indices = {
                (_label(column), column.feature): index for index, column in enumerate(columns)
            }
            representatives = [
                self._representative(index, column, indices) for index, column in enumerate(columns)
            ]
            self._known = columns, np.array(representatives, np.intp)
        return self._known[1]

    def apply_to_evidence(
        self, finding: Finding, columns: Sequence[Column], row: Callable[[int], Evidence]
    ) -> Finding:
        """Return the finding with each line of evidence replaced by its representative's, once.

        ``row`` creates the line of a column index.  A line of an unknown column stays as it is.
        """
        if not self.dropped:
            return finding
        indices = {(c.metric.name, c.instance, c.feature): index for index, c in enumerate(columns)}
        representatives = self.representatives(columns)
        lines: dict[object, Evidence] = {}
        for line in finding.evidence:
            key = line.metric, line.instance, line.feature
            index = indices.get(key)
            if index is None:
                lines.setdefault(key, line)
                continue
            by = int(representatives[index])
            lines.setdefault(by, line if index == by else row(by))
        return replace(finding, evidence=tuple(lines.values()))

    def excludes(self, also: Callable[[Channel], bool] | None) -> Callable[[Channel], bool] | None:
        """Return which channels the detectors must not use, in addition to those of ``also``."""
        if not self.scored:
            return also
        return lambda channel: channel.label in self.dropped or bool(also and also(channel))

    def scorable(self, columns: Sequence[Column], values: Floats) -> Floats:
        """Return the values that the score may use: all, or those of kept columns only."""
        if not self.scored:
            return values
        dropped = np.array([self._replacement(column) is not None for column in columns], bool)
        return np.where(dropped, np.nan, values)

    def _replacement(self, column: Column) -> str | None:
        """Return the metric that represents a column; None if it is kept."""
        if column.feature == LARGEST:
            return self._dropped_folds.get((column.metric.name, column.instance))
        return self.dropped.get(_label(column))

    def _representative(
        self, index: int, column: Column, indices: dict[tuple[str, str], int]
    ) -> int:
        by = self._replacement(column)
        if by is None:
            return index
        feature = CHANGE if column.feature == CHANGE else LEVEL
        return indices.get((by, feature), indices.get((by, LEVEL), index))


def _label(column: Column) -> str:
    """Return the label of the column's channel."""
    name, instance = column.metric.name, column.instance
    return f"{name}{{{instance}}}" if instance else name


def _dropped_folds(selection: Selection) -> dict[tuple[str, str], str]:
    """Return, by metric and group whose CPUs are all dropped, what represents most of them."""
    kept = {_group(each.metric) for each in selection.kept}
    dropped: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for each in selection.dropped:
        dropped[_group(each.metric)][each.by] += 1
    return {
        group: min(by, key=lambda name: (-by[name], name))
        for group, by in dropped.items()
        if group not in kept
    }


def _group(label: str) -> tuple[str, str]:
    """Return metric and CPU group as columns are folded: ``irq/3`` is of ``irq``."""
    metric, _, instance = label.partition("{")
    if not instance:
        return metric, label  # of the host itself, so in no group
    return metric, instance.removesuffix("}").rpartition("/")[0]


NO_SELECTION = AppliedSelection(Selection(1.0, (), ()))  # all metrics are kept
