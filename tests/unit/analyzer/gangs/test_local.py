"""Ranks of one process: jobs that end, on a host that does nothing else."""

from __future__ import annotations

from dataclasses import replace

from reveal_analyzer.gangs.local import LocalRanks
from reveal_analyzer.gangs.rank import WINDOW_S
from reveal_contract.finding import FindingChange, FindingUpdate, Resolution
from reveal_contract.time_units import NS_PER_SECOND
from support.ranks import slow, waiting

START = 1000
NODE = "n0"


def ns(window: float) -> int:
    return int(window * WINDOW_S * NS_PER_SECOND)


def delayed(ranks: LocalRanks, windows: int) -> list[FindingUpdate]:
    """Return what is reported of a job of which one rank is slow, each second."""
    found: list[FindingUpdate] = []
    for number in range(START, START + windows):
        own = [replace(each, node=NODE, window=number) for each in (slow(0), *waiting(3))]
        for second in range(WINDOW_S):
            ended = own if second == 0 else []
            found += ranks.add(ended, ns(number + 1) + second * NS_PER_SECOND)
    return found


def test_a_job_that_ends_while_nothing_else_runs_is_not_open_for_ever() -> None:
    ranks = LocalRanks()
    [opened] = delayed(ranks, 3)
    assert opened.change is FindingChange.OPENED
    found: list[FindingUpdate] = []
    for second in range(120):
        found += ranks.add([], ns(START + 3) + second * NS_PER_SECOND)
    [resolved] = found
    assert resolved.change is FindingChange.RESOLVED
    assert resolved.finding.resolution is Resolution.UNOBSERVED
    assert ranks.finish() == []


def test_a_pause_of_a_few_windows_ends_nothing() -> None:
    ranks = LocalRanks()
    delayed(ranks, 3)
    assert not any(ranks.add([], ns(START + 3) + s * NS_PER_SECOND) for s in range(40))
    assert len(ranks.finish()) == 1
