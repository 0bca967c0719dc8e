"""Who stays at a threshold: of one workload, and over all of them together.

A metric stays unless one that is preferred to it and stays itself is correlated with it beyond
the threshold.  So each that goes has one that stands for it directly: there are no chains, in
which the ends have little in common.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from reveal_analyzer.selection.averaged import Workload
from reveal_analyzer.selection.file import Basis, Dropped, Kept, Selection
from reveal_analyzer.selection.priority import order

_DIGITS = 3  # of a correlation that are told


@dataclass(frozen=True)
class Choice:
    """Of one workload: ``kept`` items, and of each that goes the kept one that stands for it.

    Items that stood still are in neither.
    """

    kept: tuple[int, ...]
    stands: dict[int, int]


def choose(workload: Workload, ordered: Sequence[int], threshold: float) -> Choice:
    """Greedily in this order (``priority.order``); the threshold is exceeded, not met.

    Of those kept the one that is closest stands for a metric that goes.
    """
    strength = np.abs(workload.r)
    kept: list[int] = []
    for at in ordered:
        if strength[at, kept].max(initial=0.0) <= threshold:
            kept.append(at)
    goes = sorted(set(ordered) - set(kept))
    return Choice(tuple(kept), {at: kept[int(np.argmax(strength[at, kept]))] for at in goes})


def select(workloads: Sequence[Workload], threshold: float) -> Selection:
    """The union of what the workloads keep (the paper's diagnostic space), with its reasons.

    A metric goes only where it goes in every workload in which it moved; one that stood still
    in all of them stays, as nothing is known of what it would move with.
    """
    choices = [choose(each, order(each), threshold) for each in workloads]
    seen = [_Seen(each, choice) for each, choice in zip(workloads, choices, strict=True)]
    labels = list(dict.fromkeys(label for one in seen for label in one.at))
    dropped = [gone for label in labels if (gone := _gone(label, seen)) is not None]
    names = {gone.metric for gone in dropped}
    stays = [label for label in labels if label not in names]
    spoken_for = _counts(gone.by for gone in dropped)
    kept = [Kept(label, _reason(label, seen, spoken_for.get(label, 0))) for label in stays]
    return Selection(
        threshold=threshold,
        kept=tuple(sorted(kept, key=lambda one: one.metric)),
        dropped=tuple(sorted(dropped, key=lambda one: one.metric)),
        workloads=tuple(Basis(each.name, each.runs, each.rows) for each in workloads),
    )


class _Seen:
    """A workload and its choice, by the labels of items."""

    def __init__(self, workload: Workload, choice: Choice) -> None:
        self._workload, self._choice = workload, choice
        self.at = {item.label: at for at, item in enumerate(workload.items)}
        self._kept = set(choice.kept)

    def moved(self, label: str) -> bool:
        at = self.at.get(label)
        return at is not None and bool(self._workload.moved[at])

    def keeps(self, label: str) -> bool:
        return self.at.get(label) in self._kept

    def stands_for(self, label: str) -> str:
        """Who stands for a metric that goes."""
        return self._workload.items[self._choice.stands[self.at[label]]].label

    def r(self, one: str, other: str) -> float | None:
        """None where one of the two did not move here."""
        if not (self.moved(one) and self.moved(other)):
            return None
        return float(self._workload.r[self.at[one], self.at[other]])

    def strongest(self, label: str) -> float:
        """The largest correlation with any other, either way."""
        row = np.abs(self._workload.r[self.at[label]])
        return float(np.delete(row, self.at[label]).max(initial=0.0))


def _gone(label: str, seen: Sequence[_Seen]) -> Dropped | None:
    """A metric that goes, with who stands for it best where it fits worst; None if it stays."""
    where = [one for one in seen if one.moved(label)]
    if not where or any(one.keeps(label) for one in where):
        return None
    candidates = sorted({one.stands_for(label) for one in where})

    def weakest(by: str) -> float:
        return min(abs(one.r(label, by) or 0.0) for one in where)

    best = max(candidates, key=weakest)  # of equals the first by name
    known = [r for one in where if (r := one.r(label, best)) is not None]
    return Dropped(label, best, round(sum(known) / len(known), _DIGITS))


def _reason(label: str, seen: Sequence[_Seen], spoken_for: int) -> str:
    where = [one for one in seen if one.moved(label)]
    if not where:
        return "stood still: nothing can stand for it"
    if spoken_for:
        return f"stands for {spoken_for} other{'s' if spoken_for > 1 else ''}"
    strongest = max(one.strongest(label) for one in where)
    return f"none stands for it in every workload (largest |r| {strongest:.2f})"


def _counts(names: Iterable[str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for name in names:
        counts[name] = counts.get(name, 0) + 1
    return counts
