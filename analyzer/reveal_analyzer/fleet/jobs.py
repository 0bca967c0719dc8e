"""Slow nodes of a job: the same work at another level.

The parts of a job on its nodes are compared with each other.  The harm that a part suffers
(throttling, pressure, retransmissions) decides as it does for whole nodes, and so does its step
time, if it can be read.  Activity does no harm either way, but a part is slow if it does less of
everything that its peers do equally.
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
    ComparedLevels,
    LevelMatrix,
    Outlier,
    capacity,
    column,
    compare,
    found_outliers,
    most_outliers,
)
from reveal_analyzer.fleet.summary import Summary
from reveal_analyzer.fleet.workload import USAGE, with_count
from reveal_contract.metric import Kind

_STEP_FLOOR = 0.005  # step times are exact to half a percent: 3 % is an outlier
_OTHER_RHYTHM = 1.7  # times its peers' step time: the tracker found every second step
_SLOW = 0.85  # of its peers' rates
_STEADY = 0.05  # deviation from the median of the peers, up to which they share a rate
_LEAST_RATES = 2  # a single rate may differ because of the part's role in the job
_LEAST_QUANTA = 3.0  # a rate below so many quanta is not significant
# pressure of a subject, and of the node, which replaces it where subjects have none (cgroup v1)
_PRESSURES = {
    "cpu.subject.pressure": ("cpu.pressure.some",),
    "memory.subject.pressure": ("memory.pressure.some", "memory.pressure.full"),
    "storage.subject.pressure": ("storage.pressure.some", "storage.pressure.full"),
}


def slow_parts(summaries: Sequence[Summary]) -> Iterator[list[Outlier]]:
    """Yield the outliers among the parts of each job on nodes of one class."""
    ordered = sorted(summaries, key=lambda summary: summary.node)
    for name in sorted({name for summary in ordered for name in summary.jobs}):
        parts = [s for s in ordered if name in s.jobs and s.seconds >= FULL_SECONDS]
        if len(parts) >= LEAST:
            yield list(_of_job(parts, name))


def _of_job(parts: Sequence[Summary], job: str) -> Iterator[Outlier]:
    rows = _levels(parts, job)
    metrics = {metric for row in rows for metric in row}
    size = capacity(parts)
    steps = compare(_matrix(parts, rows, metrics & {STEP}, size), _STEP_FLOOR)
    for outlier in found_outliers(steps, job):
        if outlier.value < _OTHER_RHYTHM * outlier.median:
            yield outlier
    compared = compare(_matrix(parts, rows, metrics - {STEP}, size), LOADED_FLOOR)
    yield from (outlier for outlier in found_outliers(compared, job) if outlier.harm)
    yield from _lagging(compared, job)


def _levels(parts: Sequence[Summary], job: str) -> list[dict[str, float]]:
    """Return the levels of the parts of a job.

    If the job is a part of the node's workload, the pressure of the node replaces missing pressure
    of the job.
    """
    rows = [dict(part.jobs[job].levels) for part in parts]
    working = [with_count(job, part.jobs[job]) in part.workload for part in parts]
    for own, of_node in _PRESSURES.items():
        missing = [works and own not in row for works, row in zip(working, rows, strict=True)]
        for name in of_node:
            for row, is_missing, level in zip(rows, missing, column(parts, name), strict=True):
                if is_missing:
                    row[name] = float(level)
    return rows


def _matrix(
    parts: Sequence[Summary], rows: Sequence[Mapping[str, float]], metrics: set[str],
    size: tuple[float, int],
) -> LevelMatrix:  # fmt: skip
    known = [(name, each) for name in sorted(metrics) if (each := measure(name)) is not None]
    levels = np.array([[row.get(name, np.nan) for name, _ in known] for row in rows])
    levels = levels.reshape(len(parts), len(known))
    spreads = np.zeros(levels.shape)  # a summary has no spread within the minute of a job's levels
    nodes, measures = [part.node for part in parts], [each for _, each in known]
    return LevelMatrix(nodes, measures, levels, spreads, *size)


def _lagging(compared: ComparedLevels, job: str) -> Iterator[Outlier]:
    """Yield the nodes on which all rates that the others share are lower by a seventh or more."""
    ratios = _ratios(compared.matrix)
    behind = np.flatnonzero((ratios <= _SLOW).all(axis=1))
    names = [each.row.name for each in compared.matrix.measures]
    if USAGE not in names or ratios.shape[1] < _LEAST_RATES:
        return
    if len(behind) > most_outliers(len(ratios)):
        return
    for row in behind:
        lost = 1.0 - float(np.median(ratios[row]))
        outlier = compared.outlier(int(row), names.index(USAGE), job)
        score = lost / (1.0 - _SLOW)
        yield replace(outlier, score=score, harm=True, lost=lost, alike=len(behind))


def _ratios(matrix: LevelMatrix) -> Floats:
    """Return (nodes, rates): relative to the nodes' median, for the rates that most share."""
    rates = [
        index
        for index, each in enumerate(matrix.measures)
        if not each.sign and each.row.kind is Kind.COUNTER and each.row.name != USAGE
    ]
    levels, quantum = matrix.levels[:, rates], matrix.quanta()[rates]
    whole = np.isfinite(levels).all(axis=0)
    levels, quantum = levels[:, whole], quantum[whole]
    middle = np.median(levels, axis=0)
    used = middle >= _LEAST_QUANTA * quantum
    ratios = levels[:, used] / middle[used]
    alike = np.median(np.abs(ratios - 1.0), axis=0) <= _STEADY
    shared: Floats = ratios[:, alike]
    return shared
