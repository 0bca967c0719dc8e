"""Which columns count how much, in which direction, and which share a vote."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reveal_analyzer.columns import Column
from reveal_analyzer.live.settings import LiveSettings
from reveal_contract.metric import Harm, Subsystem

Floats = NDArray[np.float64]
_ACTIVITY_SHARE = 0.75  # of the cut


@dataclass(frozen=True)
class Group:
    """The columns of one subsystem and the family each votes with."""

    places: NDArray[np.intp]
    family: NDArray[np.intp]
    families: int

    def pool(self, shown: Floats, top: int) -> float:
        """Mean of the ``top`` worst families, each by its worst column."""
        if not self.families:
            return 0.0
        best = np.zeros(self.families)
        np.maximum.at(best, self.family, shown[self.places])
        k = min(top, self.families)
        return float(np.partition(best, self.families - k)[self.families - k :].mean())


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


def groups(columns: Sequence[Column]) -> dict[Subsystem, Group]:
    """Columns by subsystem."""
    made = {}
    for subsystem in Subsystem:
        places = [at for at, column in enumerate(columns) if column.metric.subsystem is subsystem]
        votes = [f"{columns[at].metric.vote}|{_voter(columns[at])}" for at in places]
        number = {vote: at for at, vote in enumerate(dict.fromkeys(votes))}
        made[subsystem] = Group(
            np.array(places, np.intp),
            np.array([number[vote] for vote in votes], np.intp),
            len(number),
        )
    return made


def _voter(column: Column) -> str:
    """Instances that are things of their own (disks, NICs) vote each; CPUs and folds do not."""
    return column.instance
