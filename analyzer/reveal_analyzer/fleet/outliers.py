"""Outliers among nodes: which nodes differ, and by which metrics; from summaries alone.

A level is scaled as in the live score: linear below the metric's quantum, logarithmic above.  Its
distance from the median of the nodes is measured in deviations: those of the nodes (from the
median distance), those within the minutes, or a floor, whichever is largest.  A large distance is
not enough: outliers are few, and separated from all other nodes.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from reveal_analyzer.arrays import Bools, Floats
from reveal_analyzer.derive.columns import DEFAULT_MEMORY
from reveal_analyzer.fleet.measures import (
    CPUS,
    MEMORY,
    Measure,
    Quanta,
    measure,
)
from reveal_analyzer.fleet.summary import Summary

LEAST = 4  # nodes: of three, none is a reliable outlier
THRESHOLD = 6.0  # deviations
STANDING_FLOOR = 0.02  # equal setups differ by up to a hundredth
LOADED_FLOOR = 0.2
_DEVIATIONS = 1.4826  # standard deviations of a normal distribution per median distance
_GAP = 0.5  # share of an outlier's distance without other nodes
_NODES_PER_OUTLIER = 5  # one of so many may be an outlier, and one always
METRICS_PER_PART = 40  # compared at a time: about 40 ms for 4000 nodes
FULL_SECONDS = 30  # of a minute; fewer do not show the load


@dataclass(frozen=True)
class Outlier:
    """One metric by which a node is an outlier; base units, counters per second.

    ``low`` and ``high`` are the range of the nodes that are no outliers; ``alike`` is the number
    of outliers among the ``compared`` nodes.  ``score`` is its distance in multiples of the
    threshold.  Without ``harm`` it is activity, which may explain harm and decides nothing.
    """

    node: str
    metric: str
    value: float
    median: float
    low: float
    high: float
    compared: int
    alike: int
    score: float
    standing: bool = False
    job: str = ""
    harm: bool = True
    lost: float = 0.0  # share of its peers' progress, if that is known


@dataclass(frozen=True)
class Drift:
    """One fact in which a node differs from most of its peers."""

    node: str
    fact: str
    value: str
    expected: str
    compared: int
    alike: int


@dataclass(frozen=True)
class LevelMatrix:
    """Levels of nodes of one class, (nodes, metrics), with the metrics and the nodes' size."""

    nodes: Sequence[str]
    measures: Sequence[Measure]
    levels: Floats
    spreads: Floats
    memory: float  # bytes
    cpus: int

    def quanta(self) -> Floats:
        """Return the least significant level of each metric on nodes of this size."""
        return Quanta.of(self.measures).scaled(self.memory, self.cpus)


@dataclass(frozen=True)
class ComparedLevels:
    """Every level compared with those of the other nodes: (nodes, metrics).

    ``distance`` is in deviations and grows with harm (activity: with the level); it is NaN if
    fewer than four nodes have the metric.  ``apart`` marks outliers.
    """

    matrix: LevelMatrix
    distance: Floats
    apart: Bools

    def outlier(self, row: int, column: int, job: str = "") -> Outlier:
        """Return the outlier of a node (a row) by a metric (a column)."""
        by = self.matrix.measures[column]
        levels, apart = self.matrix.levels[:, column], self.apart[:, column].copy()
        apart[row] = True
        others = levels[~apart & np.isfinite(levels)]
        known = levels[np.isfinite(levels)]
        return Outlier(
            node=self.matrix.nodes[row], metric=by.row.name, value=float(levels[row]),
            median=float(np.median(known)), low=float(others.min()), high=float(others.max()),
            compared=known.size, alike=int(apart.sum()),
            score=float(self.distance[row, column] * by.row.weight / THRESHOLD),
            standing=by.standing, job=job, harm=by.sign != 0,
        )  # fmt: skip


def outliers(summaries: Sequence[Summary]) -> Iterator[list[Outlier]]:
    """Yield the outliers of nodes of one class: by standing metrics, then within each workload.

    A node with another workload than the others is compared by standing metrics only.
    """
    ordered = sorted(summaries, key=lambda summary: summary.node)
    yield found_outliers(
        compare(matrix_of(ordered, _is_standing, capacity(ordered)), STANDING_FLOOR)
    )
    for group in same_workload(ordered):
        suffering: set[str] = set()
        size = capacity(group)
        for some in _loaded(group):
            found = found_outliers(compare(matrix_of(group, some.__contains__, size), LOADED_FLOOR))
            suffering.update(outlier.node for outlier in found)
            yield found
        yield _explaining(group, suffering)


def ranked(found: Iterable[Outlier]) -> list[Outlier]:
    """Return outliers sorted by score; of equal ones, the node before the job."""
    return sorted(
        found, key=lambda outlier: (-outlier.score, outlier.node, outlier.metric, outlier.job)
    )


def drifts(summaries: Sequence[Summary]) -> list[Drift]:
    """Return the facts in which few nodes of a class differ from the rest."""
    by_fact: dict[str, dict[str, str]] = {}
    for summary in summaries:
        for name, value in summary.facts.items():
            by_fact.setdefault(name, {})[summary.node] = value
    found = []
    for name, values in sorted(by_fact.items()):
        expected, count = Counter(sorted(values.values())).most_common(1)[0]
        if len(values) >= LEAST and len(values) - count <= most_outliers(len(values)):
            found += [
                Drift(node, name, value, expected, len(values), len(values) - count)
                for node, value in sorted(values.items())
                if value != expected
            ]
    return found


def most_outliers(nodes: int) -> int:
    """Return how many nodes may be outliers; more would be a kind of their own."""
    return max(1, nodes // _NODES_PER_OUTLIER)


def matrix_of(
    summaries: Sequence[Summary], selected: Callable[[Measure], bool], size: tuple[float, int]
) -> LevelMatrix:
    """Return the levels of nodes, by all selected metrics that any of them has."""
    measures = [known for known in _measures(summaries) if selected(known)]
    levels = np.full((len(summaries), len(measures)), np.nan)
    spreads = levels.copy()
    columns = {each.row.name: column for column, each in enumerate(measures)}
    named: dict[int, list[int]] = {}
    for row, summary in enumerate(summaries):
        named.setdefault(id(summary.names), []).append(row)
    for rows in named.values():
        names = summaries[rows[0]].names
        taken = [k for k, name in enumerate(names) if name in columns]
        cells = np.ix_(rows, [columns[names[k]] for k in taken])
        levels[cells] = np.stack([summaries[row].levels for row in rows])[:, taken]
        spreads[cells] = np.stack([summaries[row].spreads for row in rows])[:, taken]
    nodes = [summary.node for summary in summaries]
    return LevelMatrix(nodes, measures, levels, spreads, *size)


def capacity(summaries: Sequence[Summary]) -> tuple[float, int]:
    """Return the median memory in bytes and number of CPUs."""
    memory, cpus = (levels[levels > 0] for levels in (column(summaries, MEMORY),
                                                       column(summaries, CPUS)))  # fmt: skip
    return (
        float(np.median(memory)) if memory.size else DEFAULT_MEMORY,
        round(float(np.median(cpus))) if cpus.size else 1,
    )


def column(summaries: Sequence[Summary], name: str) -> Floats:
    """Return the level of one metric on each node, as ``Summary.level`` does."""
    columns: dict[int, int] = {}
    levels = np.full(len(summaries), np.nan)
    for row, summary in enumerate(summaries):
        index = columns.get(id(summary.names))
        if index is None:
            index = summary.names.index(name) if name in summary.names else -1
            columns[id(summary.names)] = index
        if name in summary.activity:
            levels[row] = summary.activity[name]
        elif index >= 0:
            levels[row] = summary.levels[index]
    return levels


def compare(matrix: LevelMatrix, floor: float) -> ComparedLevels:
    """Compare every node with all nodes, metric by metric."""
    quantum = matrix.quanta()
    signs = np.array([each.sign or 1 for each in matrix.measures], float)
    scaled = signs * np.arcsinh(matrix.levels / quantum)
    own = matrix.spreads / np.hypot(matrix.levels, quantum)
    known = np.isfinite(scaled).sum(axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a metric that no node has
        middle = np.nanmedian(scaled, axis=0)
        scatter = _DEVIATIONS * np.nanmedian(np.abs(scaled - middle), axis=0)
        restless = np.nanmedian(own, axis=0)
    distance = (scaled - middle) / np.fmax(np.fmax(scatter, restless), floor)
    distance[:, known < LEAST] = np.nan
    return ComparedLevels(matrix, distance, _is_apart(scaled, distance, middle, known))


def _is_apart(scaled: Floats, distance: Floats, middle: Floats, known: Floats) -> Bools:
    """Return which levels are far out, few, and separated by a gap from all others."""
    far: Bools = np.nan_to_num(distance) > THRESHOLD
    allowed = np.maximum(1, known // _NODES_PER_OUTLIER)
    rest = np.where(far | np.isnan(scaled), -np.inf, scaled).max(axis=0, initial=-np.inf)
    nearest = np.where(far, scaled, np.inf).min(axis=0, initial=np.inf)
    with np.errstate(invalid="ignore"):  # if none is far out, there is no nearest
        gap = nearest - rest >= _GAP * (nearest - middle)
    apart: Bools = far & (far.sum(axis=0) <= allowed) & gap
    return apart


def found_outliers(compared: ComparedLevels, job: str = "") -> list[Outlier]:
    """Return the outliers; a metric of less weight must be farther out."""
    columns = zip(*np.nonzero(compared.apart), strict=True)
    found = [compared.outlier(int(row), int(column), job) for row, column in columns]
    return [outlier for outlier in found if outlier.score >= 1]


def _explaining(group: Sequence[Summary], nodes: Collection[str]) -> list[Outlier]:
    """Return the outliers by activity on nodes that suffer: they may explain the harm."""
    if not nodes:
        return []
    active = found_outliers(compare(_activity_of(group), LOADED_FLOOR))
    return [outlier for outlier in active if outlier.node in nodes]


def _activity_of(summaries: Sequence[Summary]) -> LevelMatrix:
    """Return levels of activity: 0 if a summary left it out, NaN if it was not read."""
    names = sorted({name for summary in summaries for name in summary.activity})
    measures = {name: each for name in names if (each := measure(name)) and not each.sign}
    rows = [[summary.activity.get(name, 0.0) for name in measures] for summary in summaries]
    levels = np.array(rows).reshape(len(summaries), len(measures))
    nodes, known = [summary.node for summary in summaries], list(measures.values())
    return LevelMatrix(nodes, known, levels, np.zeros(levels.shape), *capacity(summaries))


def _is_standing(metric: Measure) -> bool:
    return metric.standing


def _loaded(summaries: Sequence[Summary]) -> Iterator[set[Measure]]:
    """Yield the metrics that follow the load and can do harm, some at a time."""
    loaded = [each for each in _measures(summaries) if each.sign and not each.standing]
    for first in range(0, len(loaded), METRICS_PER_PART):
        yield set(loaded[first : first + METRICS_PER_PART])


def _measures(summaries: Sequence[Summary]) -> list[Measure]:
    """Return the metrics of all nodes, sorted by name."""
    kinds = {id(summary.names): summary.names for summary in summaries}.values()
    names = sorted({name for of_some in kinds for name in of_some})
    return [known for name in names if (known := measure(name)) is not None]


def same_workload(summaries: Sequence[Summary]) -> list[list[Summary]]:
    """Return the groups of enough nodes with the same workload; idle nodes are in none."""
    groups: dict[tuple[str, ...], list[Summary]] = {}
    for summary in summaries:
        if summary.workload and summary.seconds >= FULL_SECONDS:
            groups.setdefault(summary.workload, []).append(summary)
    return [group for group in groups.values() if len(group) >= LEAST]
