"""What a selection means for findings: which column is told in place of which.

A column of a channel goes as its channel went.  One folded over CPUs goes where all of its CPUs
went, and the metric that stands for most of them stands for it.  Columns that no recording of
the selection knew are shown: nothing says that others tell the same.
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


class Shown:
    """Answers for the columns of a plan; ``scored`` says that scores see only what was kept."""

    def __init__(self, selection: Selection, *, scored: bool = False) -> None:
        self.scored = scored
        self.dropped = {each.metric: each.by for each in selection.dropped}
        self._folds = _folds(selection)
        self._known: tuple[Sequence[Column], Indices] | None = None

    def speakers(self, columns: Sequence[Column]) -> Indices:
        """For each column the place of the one that is told in its stead: its own where kept.

        A column whose stand-in is not among these speaks for itself.
        """
        if self._known is None or self._known[0] is not columns:
            at = {(_label(column), column.feature): place for place, column in enumerate(columns)}
            places = [self._speaker(place, column, at) for place, column in enumerate(columns)]
            self._known = columns, np.array(places, np.intp)
        return self._known[1]

    def told(
        self, finding: Finding, columns: Sequence[Column], row: Callable[[int], Evidence]
    ) -> Finding:
        """The finding with each line of evidence by who speaks for it, each of them once.

        ``row`` makes the line of a column's place.  A line of no such column stays as it is.
        """
        if not self.dropped:
            return finding
        places = {(c.metric.name, c.instance, c.feature): at for at, c in enumerate(columns)}
        speakers = self.speakers(columns)
        lines: dict[object, Evidence] = {}
        for line in finding.evidence:
            key = line.metric, line.instance, line.feature
            at = places.get(key)
            by = key if at is None else int(speakers[at])
            lines.setdefault(by, line if at is None or at == by else row(int(speakers[at])))
        return replace(finding, evidence=tuple(lines.values()))

    def leaves_out(
        self, also: Callable[[Channel], bool] | None
    ) -> Callable[[Channel], bool] | None:
        """Which channels detectors on channels must not see, beside those of another's wish."""
        if not self.scored:
            return also
        return lambda channel: channel.label in self.dropped or bool(also and also(channel))

    def scores(self, columns: Sequence[Column], values: Floats) -> Floats:
        """Values as scores see them: all of them, or only those kept, the others missing."""
        if not self.scored:
            return values
        gone = np.array([self._by(column) is not None for column in columns], bool)
        return np.where(gone, np.nan, values)

    def _by(self, column: Column) -> str | None:
        """Who stands for a column; None where it is kept."""
        if column.feature == LARGEST:
            return self._folds.get((column.metric.name, column.instance))
        return self.dropped.get(_label(column))

    def _speaker(self, place: int, column: Column, at: dict[tuple[str, str], int]) -> int:
        by = self._by(column)
        if by is None:
            return place
        wanted = CHANGE if column.feature == CHANGE else LEVEL
        return at.get((by, wanted), at.get((by, LEVEL), place))


def _label(column: Column) -> str:
    """As a channel is shown."""
    name, instance = column.metric.name, column.instance
    return f"{name}{{{instance}}}" if instance else name


def _folds(selection: Selection) -> dict[tuple[str, str], str]:
    """By metric and group of CPUs, all of which went, who stands for most of them."""
    kept = {_group(each.metric) for each in selection.kept}
    went: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for each in selection.dropped:
        went[_group(each.metric)][each.by] += 1
    return {
        group: min(by, key=lambda name: (-by[name], name))
        for group, by in went.items()
        if group not in kept
    }


def _group(label: str) -> tuple[str, str]:
    """Metric and group of a channel of one CPU, as columns are folded: ``irq/3`` is of ``irq``."""
    metric, _, instance = label.partition("{")
    if not instance:
        return metric, label  # of the host itself: in no group
    return metric, instance.removesuffix("}").rpartition("/")[0]


EVERYTHING = Shown(Selection(1.0, (), ()))  # where nothing was selected
