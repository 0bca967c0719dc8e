"""Slow nodes of a job: the same work at another level.

The parts of a job on its nodes are compared with each other.  The harm that a part suffers
(throttling, pressure, retransmissions) decides as it does for whole nodes, and so does its step
time, if it can be read.  Activity does no harm either way, but a part is slow if it does less of
everything that its peers do equally: these rates are its evidence.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

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
from reveal_analyzer.fleet.workload import USAGE, is_work
from reveal_contract.metric import Kind

_STEP_FLOOR = 0.005  # step times are exact to half a percent: 3 % is an outlier
_MULTIPLE = 0.03  # of a whole number of steps that the tracker may read as a single step
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
    for name, parts in parts_by_job(summaries):
        yield list(_of_job(parts, name))


def parts_by_job(summaries: Sequence[Summary]) -> Iterator[tuple[str, list[Summary]]]:
    """Yield the jobs that enough nodes run to be compared, with these nodes."""
    ordered = sorted(summaries, key=lambda summary: summary.node)
    for name in sorted({name for summary in ordered for name in summary.jobs}):
        parts = [s for s in ordered if name in s.jobs and s.seconds >= FULL_SECONDS]
        if len(parts) >= LEAST:
            yield name, parts


def _of_job(parts: Sequence[Summary], job: str) -> Iterator[Outlier]:
    rows = _levels(parts, job)
    metrics = {metric for row in rows for metric in row}
    size = capacity(parts)
    steps = compare(_matrix(parts, rows, metrics & {STEP}, size), _STEP_FLOOR)
    compared = compare(_matrix(parts, rows, metrics - {STEP}, size), LOADED_FLOOR)
    rates = _shared_rates(compared.matrix)
    for outlier in found_outliers(steps, job):
        if not _is_multiple(outlier, rates.of(outlier.node)):
            yield outlier
    yield from (outlier for outlier in found_outliers(compared, job) if outlier.harm)
    yield from _lagging(compared, rates, job)


def _levels(parts: Sequence[Summary], job: str) -> list[dict[str, float]]:
    """Return the levels of the parts of a job.

    If the job is a part of the node's workload, the pressure of the node replaces missing pressure
    of the job.
    """
    rows = [dict(part.jobs[job].levels) for part in parts]
    working = [is_work(job, part.workload) for part in parts]
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


@dataclass(frozen=True)
class _SharedRates:
    """The rates that most parts of a job share.

    ``columns`` are those of the matrix.  ``ratios`` (nodes, rates) are relative to the nodes'
    median, NaN where a rate was not read.
    """

    nodes: Sequence[str]
    columns: Sequence[int]
    ratios: Floats

    def of(self, node: str) -> Floats:
        """Return the ratios of a node that are known."""
        ratios: Floats = self.ratios[self.nodes.index(node)]
        return ratios[np.isfinite(ratios)]

    def behind(self) -> list[int]:
        """Return the nodes (rows) whose rates are all lower by a seventh or more."""
        known = np.isfinite(self.ratios)
        lower = (self.ratios <= _SLOW) | ~known
        behind = lower.all(axis=1) & (known.sum(axis=1) >= _LEAST_RATES)
        return [int(row) for row in np.flatnonzero(behind)]


def _shared_rates(matrix: LevelMatrix) -> _SharedRates:
    rates = np.array(_rate_columns(matrix), np.intp)
    read = np.isfinite(matrix.levels[:, rates]).sum(axis=0)
    rates = rates[read >= max(LEAST, len(matrix.nodes) // 2 + 1)]
    levels = matrix.levels[:, rates]
    middle = np.nanmedian(levels, axis=0)
    used = middle >= _LEAST_QUANTA * matrix.quanta()[rates]
    ratios = levels[:, used] / middle[used]
    alike = np.nanmedian(np.abs(ratios - 1.0), axis=0) <= _STEADY
    return _SharedRates(matrix.nodes, rates[used][alike].tolist(), ratios[:, alike])


def _rate_columns(matrix: LevelMatrix) -> list[int]:
    return [
        index
        for index, each in enumerate(matrix.measures)
        if not each.sign and each.row.kind is Kind.COUNTER and each.row.name != USAGE
    ]


def _is_multiple(outlier: Outlier, ratios: Floats) -> bool:
    """Return whether a step time is that of some steps at once: the rates are as elsewhere."""
    steps = outlier.value / outlier.median
    whole = round(steps)
    is_whole = whole >= 2 and abs(steps / whole - 1.0) <= _MULTIPLE
    return is_whole and ratios.size > 0 and float(np.median(ratios)) > _SLOW


def _lagging(compared: ComparedLevels, rates: _SharedRates, job: str) -> Iterator[Outlier]:
    """Yield what is lower on the nodes on which all rates that the others share are lower."""
    behind = rates.behind()
    if len(behind) > most_outliers(len(rates.nodes)):
        return
    for row in behind:
        lost = 1.0 - float(np.median(rates.of(rates.nodes[row])))
        score = lost / (1.0 - _SLOW)
        for index in _lower_columns(compared.matrix, rates, row):
            outlier = compared.outlier(row, index, job)
            yield replace(outlier, score=score, harm=True, lost=lost, alike=len(behind))


def _lower_columns(matrix: LevelMatrix, rates: _SharedRates, row: int) -> list[int]:
    """Return the rates of a node that were read, and the CPU time if it is lower as well."""
    known = np.isfinite(rates.ratios[row])
    lower = [index for index, read in zip(rates.columns, known, strict=True) if read]
    names = [each.row.name for each in matrix.measures]
    if USAGE in names:
        used = matrix.levels[:, names.index(USAGE)]
        if used[row] <= _SLOW * float(np.nanmedian(used)):
            lower.append(names.index(USAGE))
    return lower
