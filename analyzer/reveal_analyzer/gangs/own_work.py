"""Which rank works longer for its steps than it did: pure.

If one rank of a synchronous job needs longer for its own work, as with a lower clock or remote
memory, all steps become longer by that.  The others do the same work in longer steps, so what they
want falls by one factor, and the rank itself works longer by as much in each step:

    slowdown = median over the others of (wanted before / wanted now) - 1
    growth   = wanted now * (1 + slowdown) - wanted before, in CPUs, = slowdown * its threads

Both are known from the ledger alone.  The step time, which is read otherwise, must agree.  While
one rank writes a checkpoint no steps are read, so that nothing is said.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import NamedTuple

from reveal_analyzer.gangs.baseline_work import RankKey, key_of
from reveal_analyzer.gangs.rank import Rank, slower_percent

_AGREES = 0.5  # part by which two of the estimates may differ


class OwnWork(NamedTuple):
    """A rank whose work takes longer, and by which part the steps of its job became longer."""

    rank: Rank
    baseline: float  # CPUs that it wanted
    slowdown: float


def longer_work(ranks: Sequence[Rank], baseline: Mapping[RankKey, float]) -> OwnWork | None:
    """Return the only rank that works longer for each step, if there is one."""
    if len(ranks) < 2 or any(baseline.get(key_of(rank), 0.0) <= 0.0 for rank in ranks):
        return None
    last = max(ranks, key=lambda rank: rank.desired / baseline[key_of(rank)])
    others = [rank for rank in ranks if rank is not last and rank.desired > 0.0]
    if not others:
        return None
    slowdown = median(baseline[key_of(rank)] / rank.desired for rank in others) - 1
    as_read = (slower_percent(ranks) or 0.0) / 100
    if slowdown <= 0.0 or not _is_close(as_read, slowdown):
        return None

    def growth(rank: Rank) -> float:
        """Return by how many steps of before the work of each thread grew."""
        grown = rank.desired * (1 + slowdown) - baseline[key_of(rank)]
        return grown / rank.threads

    alone = all(abs(growth(rank)) <= _AGREES * slowdown for rank in others)
    if not alone or not _is_close(growth(last), slowdown):
        return None
    return OwnWork(last, baseline[key_of(last)], as_read)  # it is read to half a percent


def _is_close(value: float, expected: float) -> bool:
    return abs(value - expected) <= _AGREES * expected
