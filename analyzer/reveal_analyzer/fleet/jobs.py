"""Slow nodes of one job: the same work, another level.

The parts of a job on its nodes are held against each other.  What a part suffers (throttling,
pressure, retransmissions) decides as it does for whole nodes.  What it does is no harm either
way, but a part that does less of everything its peers do alike is slow.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from reveal_analyzer.fleet.compare import (
    FULL_SECONDS,
    LEAST,
    LOADED_FLOOR,
    Compared,
    Matrix,
    Outlier,
    capacity,
    compare,
    few,
    harmed,
)
from reveal_analyzer.fleet.measures import measure
from reveal_analyzer.fleet.summary import Summary
from reveal_analyzer.fleet.work import USAGE
from reveal_contract.metric import Kind

Floats = NDArray[np.float64]
_SLOW = 0.85  # of its peers' rates
_STEADY = 0.05  # deviation of the peers, of their median: what they do alike
_RATES = 2  # at least: one rate alone may be the part's role in the job
_QUANTA = 3.0  # a rate below so many says nothing


def slow(summaries: Sequence[Summary]) -> list[Outlier]:
    """What the parts of jobs on single nodes of a class suffer, most first."""
    found: list[Outlier] = []
    for name in sorted({name for one in summaries for name in one.jobs}):
        nodes = [one for one in summaries if name in one.jobs and one.seconds >= FULL_SECONDS]
        if len(nodes) >= LEAST:
            compared = compare(_matrix(sorted(nodes, key=lambda one: one.node), name), LOADED_FLOOR)
            found += [one for one in harmed(compared, name) if one.harm]
            found += _lagging(compared, name)
    return sorted(found, key=lambda one: (-one.score, one.node, one.metric))


def _matrix(nodes: Sequence[Summary], name: str) -> Matrix:
    parts = [one.jobs[name].levels for one in nodes]
    metrics = sorted({metric for levels in parts for metric in levels})
    known = [(metric, made) for metric in metrics if (made := measure(metric)) is not None]
    levels = np.array([[of.get(metric, np.nan) for metric, _ in known] for of in parts])
    levels = levels.reshape(len(parts), len(known))
    still = np.zeros(levels.shape)  # how restless a part was within its minute is not told
    rows = [made for _, made in known]
    return Matrix([one.node for one in nodes], rows, levels, still, *capacity(nodes))


def _lagging(compared: Compared, job: str) -> Iterator[Outlier]:
    """Nodes on which all rates that the others share are lower by a seventh or more."""
    ratios = _ratios(compared.matrix)
    if ratios.shape[1] < _RATES:
        return
    behind = np.flatnonzero((ratios <= _SLOW).all(axis=1))
    if not 0 < len(behind) <= few(len(ratios)):
        return
    usage = [one.row.name for one in compared.matrix.measures].index(USAGE)
    for at in behind:
        lost = 1.0 - float(np.median(ratios[at]))
        shown = compared.outlier(int(at), usage, job)
        yield replace(shown, score=lost / (1.0 - _SLOW), harm=True, lost=lost)


def _ratios(matrix: Matrix) -> Floats:
    """(nodes, rates): of the nodes' median, for the rates that most of them share."""
    rates = [
        at
        for at, one in enumerate(matrix.measures)
        if not one.sign and one.row.kind is Kind.COUNTER and one.row.name != USAGE
    ]
    levels, quantum = matrix.levels[:, rates], matrix.quanta()[rates]
    whole = np.isfinite(levels).all(axis=0)
    levels, quantum = levels[:, whole], quantum[whole]
    middle = np.median(levels, axis=0)
    used = middle >= _QUANTA * quantum
    ratios = levels[:, used] / middle[used]
    alike = np.median(np.abs(ratios - 1.0), axis=0) <= _STEADY
    shared: Floats = ratios[:, alike]
    return shared
