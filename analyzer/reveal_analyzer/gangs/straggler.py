"""Which rank delays its job: pure.

In a synchronous job all ranks have the same step time, and each waits for the last one.  A rank
that waits *sleeps*; the one that the others wait for does not.  So the straggler is the rank that
wanted a CPU for most of the time.  All ranks lose what it lost of that time, as without the loss it
would wait like the others.  What is more than the others wait is no loss of the job, so the smaller
of both counts, in seconds a second of one thread:

    delay = min(time that it lost beyond the others, time that the others sleep beyond it)

A rank that wants several CPUs has as many threads that work side by side.  What a rank sleeps
although all others wait for it, it sleeps by itself, with or without the loss.

What a rank loses to other ranks of its job is the job's own, and does not count.  A rank that has
more work by its role wants more and loses nothing: it delays nobody by this rule.  Where the steps
became longer than those that were learned, a rank that alone lost time is the straggler, too,
whatever its role; and if none lost time, the only rank that works longer for each step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from types import MappingProxyType

from reveal_analyzer.gangs.baseline_work import RankKey
from reveal_analyzer.gangs.own_work import longer_work
from reveal_analyzer.gangs.rank import LostPart, Rank, slower_percent

LEAST_PERCENT = 5.0
_SAME_STEP = 0.03  # of the step time: ranks with a common rhythm
_LEAST_RHYTHMS = 0.5  # of the ranks have a known step time
_OTHER_STEPS = 4  # one of so many may have another step time, and one always
_ALONE = 0.6  # of what all ranks lost together
_LARGEST = 0.95  # share: a rank that lost more has stopped

NOT_KNOWN: Mapping[RankKey, float] = MappingProxyType({})
NO_RHYTHM = "its ranks have no common rhythm that can be read"
NO_WAITING = "its ranks do not sleep while they wait"


@dataclass(frozen=True, slots=True)
class Straggler:
    """A job of ``count`` ranks is ``percent`` slower because of one of them.

    ``lost`` are the parts of the rank's lost time, the largest first.  Without any, the rank works
    longer for each step by the part ``longer`` of what it did before.  ``gpus`` are those of all
    ranks.
    """

    rank: Rank
    percent: float
    count: int
    lost: tuple[LostPart, ...]
    longer: float = 0.0
    gpus: int = 0


@dataclass(frozen=True, slots=True)
class Judgement:
    """A job in one window; ``unknown`` says why nothing can be said of it, "" if something can."""

    straggler: Straggler | None = None
    unknown: str = ""


def judge(
    ranks: Sequence[Rank], *, synchronous: bool, baseline: Mapping[RankKey, float] = NOT_KNOWN
) -> Judgement:
    """Return whether one of at least two ranks of a job delays the others in a window.

    ``synchronous``: the job has a common rhythm, or had one a short time ago.  ``baseline`` is what
    its ranks wanted while nothing delayed it, in CPUs.
    """
    if not synchronous:
        return Judgement(unknown=NO_RHYTHM)
    ranks, gpus = _without_own_losses(ranks), sum(rank.gpus for rank in ranks)
    for share, rank in (_by_waiting(ranks), _by_change(ranks)):
        percent = slowdown(share)
        if percent >= LEAST_PERCENT:
            lost = tuple(sorted(rank.lost, key=lambda part: -part.share))
            return Judgement(Straggler(rank, percent, len(ranks), lost, gpus=gpus))
    if (own := longer_work(ranks, baseline)) and 100 * own.slowdown >= LEAST_PERCENT:
        longer = own.rank.desired * (1 + own.slowdown) / own.baseline - 1
        percent = 100 * own.slowdown
        return Judgement(Straggler(own.rank, percent, len(ranks), (), longer, gpus))
    return Judgement(unknown="" if _some_wait(ranks) else NO_WAITING)


def slowdown(share: float) -> float:
    """Return by how many percent a job takes longer that loses a share of its time."""
    bounded = min(max(share, 0.0), _LARGEST)
    return 100 * bounded / (1 - bounded)


def is_synchronous(ranks: Sequence[Rank]) -> bool:
    """Return whether enough ranks have a known step time, and nearly all of these the same.

    That of the straggler itself is often misread: its rhythm is disturbed.
    """
    steps = sorted(rank.step_s for rank in ranks if rank.step_s > 0)
    if len(steps) < max(2, _LEAST_RHYTHMS * len(ranks)):
        return False
    middle = steps[len(steps) // 2]
    same = sum(abs(step - middle) <= _SAME_STEP * middle for step in steps)
    return same >= max(2, len(steps) - max(1, len(steps) // _OTHER_STEPS))


def _without_own_losses(ranks: Sequence[Rank]) -> list[Rank]:
    """Return the ranks without what they lost to each other."""
    own = {rank.subject for rank in ranks}
    return [
        replace(rank, lost=tuple(part for part in rank.lost if part.culprit not in own))
        for rank in ranks
    ]


def _by_waiting(ranks: Sequence[Rank]) -> tuple[float, Rank]:
    """Return the rank that waits least, and the share of its time by which it delays them."""
    last = max(ranks, key=lambda rank: rank.desired)
    others = [rank for rank in ranks if rank is not last]
    lost = _lost(last) - median(map(_lost, others))
    waits = last.desired - median(rank.desired for rank in others)
    return min(lost, waits) / last.threads, last


def _by_change(ranks: Sequence[Rank]) -> tuple[float, Rank]:
    """Return the rank that lost nearly all of what all lost, if the steps became longer."""
    times = list(map(_lost, ranks))
    first = max(range(len(ranks)), key=times.__getitem__)
    slower = (slower_percent(ranks) or 0.0) / 100
    if times[first] < _ALONE * sum(times) or slower <= 0:
        return 0.0, ranks[first]
    return min(times[first] / ranks[first].threads, slower / (1 + slower)), ranks[first]


def _lost(rank: Rank) -> float:
    """Return what a rank lost, in CPUs."""
    return rank.lost_share * rank.desired


def _some_wait(ranks: Sequence[Rank]) -> bool:
    """Return whether ranks differ in how long they sleep, as they do where one is waited for."""
    desired = [rank.desired for rank in ranks]
    return min(desired) < (1 - LEAST_PERCENT / 100) * max(desired)
