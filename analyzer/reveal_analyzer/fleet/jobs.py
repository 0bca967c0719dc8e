"""Slow nodes of one job: the same work, another level.

The parts of a job on its nodes are held against each other.  What a part suffers (throttling,
pressure, retransmissions) decides as it does for whole nodes, and so does the time of its steps
where they can be read.  What it does is no harm either way, but a part that does less of
everything its peers do alike is slow.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from reveal_analyzer.arrays import Floats
from reveal_analyzer.fleet.measures import STEP, measure
from reveal_analyzer.fleet.outliers import (
    FULL_SECONDS,
    LEAST,
    LOADED_FLOOR,
    Compared,
    Matrix,
    Outlier,
    capacity,
    column,
    compare,
    few,
    harmed,
)
from reveal_analyzer.fleet.summary import Summary
from reveal_analyzer.fleet.workload import USAGE, counted
from reveal_contract.metric import Kind

_STEP_FLOOR = 0.005  # step times are read to half a percent: 3 % is told
_ANOTHER_BEAT = 1.7  # times as long as its peers': every other beat was read, not every one
_SLOW = 0.85  # of its peers' rates
_STEADY = 0.05  # deviation of the peers, of their median: what they do alike
_RATES = 2  # at least: one rate alone may be the part's role in the job
_QUANTA = 3.0  # a rate below so many says nothing
# of a subject, and what stands in for it where subjects have none (cgroup v1)
_PRESSURES = {
    "cpu.subject.pressure": ("cpu.pressure.some",),
    "memory.subject.pressure": ("memory.pressure.some", "memory.pressure.full"),
    "storage.subject.pressure": ("storage.pressure.some", "storage.pressure.full"),
}


def slow(summaries: Sequence[Summary]) -> Iterator[list[Outlier]]:
    """What the parts of jobs on single nodes of a class suffer, job by job."""
    ordered = sorted(summaries, key=lambda one: one.node)
    for name in sorted({name for one in ordered for name in one.jobs}):
        parts = [one for one in ordered if name in one.jobs and one.seconds >= FULL_SECONDS]
        if len(parts) >= LEAST:
            yield list(_of_job(parts, name))


def _of_job(parts: Sequence[Summary], job: str) -> Iterator[Outlier]:
    rows = _levels(parts, job)
    metrics = {metric for row in rows for metric in row}
    size = capacity(parts)
    steps = compare(_matrix(parts, rows, metrics & {STEP}, size), _STEP_FLOOR)
    for one in harmed(steps, job):
        if one.value < _ANOTHER_BEAT * one.median:
            yield one
    compared = compare(_matrix(parts, rows, metrics - {STEP}, size), LOADED_FLOOR)
    yield from (one for one in harmed(compared, job) if one.harm)
    yield from _lagging(compared, job)


def _levels(parts: Sequence[Summary], job: str) -> list[dict[str, float]]:
    """What the parts of a job did and suffered on their nodes.

    A node's pressure is its work's where the job is a part of that.
    """
    rows = [dict(one.jobs[job].levels) for one in parts]
    working = [counted(job, one.jobs[job]) in one.workload for one in parts]
    for own, of_node in _PRESSURES.items():
        lacking = [works and own not in row for works, row in zip(working, rows, strict=True)]
        for name in of_node:
            for row, lacks, level in zip(rows, lacking, column(parts, name), strict=True):
                if lacks:
                    row[name] = float(level)
    return rows


def _matrix(
    parts: Sequence[Summary], rows: Sequence[Mapping[str, float]], metrics: set[str],
    size: tuple[float, int],
) -> Matrix:  # fmt: skip
    known = [(name, made) for name in sorted(metrics) if (made := measure(name)) is not None]
    levels = np.array([[row.get(name, np.nan) for name, _ in known] for row in rows])
    levels = levels.reshape(len(parts), len(known))
    still = np.zeros(levels.shape)  # how restless a part was within its minute is not told
    nodes, measures = [one.node for one in parts], [made for _, made in known]
    return Matrix(nodes, measures, levels, still, *size)


def _lagging(compared: Compared, job: str) -> Iterator[Outlier]:
    """Nodes on which all rates that the others share are lower by a seventh or more."""
    ratios = _ratios(compared.matrix)
    behind = np.flatnonzero((ratios <= _SLOW).all(axis=1))
    names = [one.row.name for one in compared.matrix.measures]
    if USAGE not in names or ratios.shape[1] < _RATES or len(behind) > few(len(ratios)):
        return
    for at in behind:
        lost = 1.0 - float(np.median(ratios[at]))
        shown = compared.outlier(int(at), names.index(USAGE), job)
        score = lost / (1.0 - _SLOW)
        yield replace(shown, score=score, harm=True, lost=lost, alike=len(behind))


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
