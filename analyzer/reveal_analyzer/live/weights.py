"""Which columns count how much, in which direction, and which share a vote."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

import numpy as np

from reveal_analyzer.arrays import Floats, Floats32, Indices
from reveal_analyzer.derive.columns import Column
from reveal_analyzer.kernels import live
from reveal_analyzer.kernels.live import MetricGroups
from reveal_analyzer.live.settings import LiveSettings
from reveal_contract.metric import Harm, Subsystem

_SUBSYSTEMS = tuple(Subsystem)
_ACTIVITY_SHARE = 0.75  # of the cut
_Vote = tuple[Subsystem, str]


class Votes:
    """The families of all subsystems: each votes with its worst column, the worst few count.

    Instances that are things of their own (disks, NICs) vote each; CPUs and folds do not.
    """

    def __init__(self, columns: Sequence[Column], top: int) -> None:
        votes = [
            (column.metric.subsystem, f"{column.metric.vote}|{column.instance}")
            for column in columns
        ]
        counts = [len({vote for vote in votes if vote[0] is one}) for one in Subsystem]
        self._votes = votes
        self.families = _families(votes, np.clip(counts, 1, top).astype(np.float64), top)

    def only(self, places: Indices) -> Votes:
        """Of these columns alone; a mean is still that of as many families."""
        made = copy(self)
        made._votes = [self._votes[at] for at in places]
        made.families = _families(made._votes, self.families.counted, self.families.top)
        return made

    def scores(self, shown: Floats32) -> dict[Subsystem, float]:
        """Mean of the ``top`` worst families of every subsystem; ``shown`` is never below 0."""
        return by_subsystem(live.subsystem_means(shown, self.families))


def _families(votes: Sequence[_Vote], counted: Floats, top: int) -> MetricGroups:
    families: dict[_Vote, list[int]] = {}
    for at, vote in enumerate(votes):
        families.setdefault(vote, []).append(at)
    sizes = [len(by_subsystem) for by_subsystem in families.values()]
    counts = [sum(s is own for own, _ in families) for s in Subsystem]
    return MetricGroups(
        order=np.array([at for by_subsystem in families.values() for at in by_subsystem], np.intp),
        starts=np.cumsum([0, *sizes], dtype=np.intp)[:-1],
        by_subsystem=_table(list(families), max(top, *counts)),
        counted=counted,
        top=top,
    )


def by_subsystem(means: Floats) -> dict[Subsystem, float]:
    return dict(zip(_SUBSYSTEMS, means.tolist(), strict=True))


def _table(families: list[_Vote], width: int) -> Indices:
    """(subsystems, width): which families are a subsystem's; the rest points to a zero."""
    table = np.full((len(Subsystem), width), len(families), np.intp)
    for row, subsystem in enumerate(Subsystem):
        mine = [at for at, (own, _) in enumerate(families) if own is subsystem]
        table[row, : len(mine)] = mine
    return table


def harm_weights(columns: Sequence[Column], settings: LiveSettings) -> Floats32:
    """(3, columns): how much an excess upward and downward counts, and the most it may weigh.

    Harm counts fully where it hurts and not at all where it does not; activity little, and
    alone, however new, it never passes the cut.
    """
    weights = np.full((3, len(columns)), np.inf, np.float32)
    weights[:2] = settings.activity
    for at, column in enumerate(columns):
        if column.harm is Harm.HIGHER:
            weights[:2, at] = column.metric.weight, 0.0
        elif column.harm is Harm.LOWER:
            weights[:2, at] = 0.0, column.metric.weight
        if column.harm is Harm.NEITHER:
            weights[2, at] = _ACTIVITY_SHARE * settings.limit
    return weights
