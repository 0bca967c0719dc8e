"""Which columns count how much, in which direction, and which share a vote."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from reveal_analyzer.columns import Column
from reveal_analyzer.live.settings import LiveSettings
from reveal_contract.metric import Harm, Subsystem

Floats = NDArray[np.float64]
_ACTIVITY_SHARE = 0.75  # of the cut


class Votes:
    """The families of all subsystems: each votes with its worst column, the worst few count.

    Instances that are things of their own (disks, NICs) vote each; CPUs and folds do not.
    """

    def __init__(self, columns: Sequence[Column], top: int) -> None:
        families: dict[tuple[Subsystem, str], list[int]] = {}
        for at, column in enumerate(columns):
            vote = f"{column.metric.vote}|{column.instance}"
            families.setdefault((column.metric.subsystem, vote), []).append(at)
        sizes = [len(places) for places in families.values()]
        self._order = np.array([at for places in families.values() for at in places], np.intp)
        self._starts = np.cumsum([0, *sizes])[:-1]
        self._counts = np.array([sum(s is own for own, _ in families) for s in Subsystem])
        self._top = top
        self._places = self._table(list(families), max(top, *self._counts))

    def scores(self, shown: Floats) -> dict[Subsystem, float]:
        """Mean of the ``top`` worst families of every subsystem; ``shown`` is never below 0."""
        best = np.zeros(len(self._starts) + 1)
        np.maximum.reduceat(shown[self._order], self._starts, out=best[:-1])
        worst = np.partition(best[self._places], -self._top, axis=1)[:, -self._top :]
        means = worst.sum(axis=1) / np.clip(self._counts, 1, self._top)
        return dict(zip(Subsystem, means.tolist(), strict=True))

    def _table(self, families: list[tuple[Subsystem, str]], width: int) -> NDArray[np.intp]:
        """(subsystems, width): which families are a subsystem's; the rest points to a zero."""
        table = np.full((len(Subsystem), width), len(families), np.intp)
        for row, subsystem in enumerate(Subsystem):
            mine = [at for at, (own, _) in enumerate(families) if own is subsystem]
            table[row, : len(mine)] = mine
        return table


def harm_weights(columns: Sequence[Column], activity: float) -> Floats:
    """(2, columns): how much an excess upward and downward counts.

    Harm counts fully where it hurts and not at all where it does not; activity little.
    """
    weights = np.full((2, len(columns)), activity)
    for at, column in enumerate(columns):
        if column.harm is Harm.HIGHER:
            weights[:, at] = column.metric.weight, 0.0
        elif column.harm is Harm.LOWER:
            weights[:, at] = 0.0, column.metric.weight
    return weights


def most_shown(columns: Sequence[Column], settings: LiveSettings) -> Floats:
    """The most a column may weigh: activity alone, however new, never passes the cut."""
    harmless = np.array([column.harm is Harm.NEITHER for column in columns])
    return np.where(harmless, _ACTIVITY_SHARE * settings.limit, np.inf)
