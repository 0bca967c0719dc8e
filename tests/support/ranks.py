"""Ranks of a job, made by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reveal_analyzer.gangs.rank import LostPart, Rank
from reveal_analyzer.gangs.straggler import Judgement, is_synchronous, judge
from reveal_contract import ledger

JOB = "ml/Job/train"


def rank(number: int, **given: Any) -> Rank:
    """Return a rank on a node of its own, which wants one CPU, waits and loses nothing."""
    fields: dict[str, Any] = {
        "job": JOB, "node": f"n{number}", "window": 100, "kind": "Pod", "namespace": "ml",
        "name": f"train-{number}", "uid": f"u{number}", "desired": 1.0, "step_s": 0.5,
        "slower_percent": 0.0, "lost": (),
    }  # fmt: skip
    return Rank(**{**fields, **given})


def slow(number: int, share: float = 0.3, **given: Any) -> Rank:
    """Return a rank that loses a share of its time to a hog."""
    lost = (LostPart(ledger.WAIT_OTHERS, share, "/hog.service"),)
    return rank(number, **{"lost": lost, **given})


def waiting(count: int, desired: float = 0.6, **given: Any) -> list[Rank]:
    """Return ranks that wait for another one for the rest of their time."""
    return [rank(number, desired=desired, **given) for number in range(1, count + 1)]


def judged(ranks: Sequence[Rank]) -> Judgement:
    """Return what is said of ranks of which nothing is known from before."""
    return judge(ranks, synchronous=is_synchronous(ranks))
