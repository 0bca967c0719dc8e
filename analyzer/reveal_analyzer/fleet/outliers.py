"""Which of many nodes stand apart, and by what.  Pure: summaries in, outliers out.

A level is seen as the live score sees it (linear below the metric's quantum, logarithmic above).
Its distance from the median of the nodes is told in deviations: those of the nodes (by the
median of the distances), or of the minutes themselves, or a floor, whichever is most.  Far out
is not enough: outliers are few, and apart from all others.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from reveal_analyzer.arrays import Bools, Floats
from reveal_analyzer.fleet.measures import Measure, measure
from reveal_analyzer.fleet.summarise import CPUS, MEMORY, USUAL_MEMORY, Quanta
from reveal_analyzer.fleet.summary import Summary

LEAST = 4  # nodes: among three it cannot be said which one is odd
CUT = 6.0  # deviations
STANDING_FLOOR = 0.02  # what is set up alike is alike to a hundredth
LOADED_FLOOR = 0.2
_DEVIATIONS = 1.4826  # of a normal distribution, in median distances from its median
_APART = 0.5  # of an outlier's distance is free of other nodes
_FEW = 5  # one of so many may be an outlier, and one always
AT_ONCE = 40  # metrics: of four thousand nodes some forty milliseconds
FULL_SECONDS = 30  # of a minute: less says nothing about load


@dataclass(frozen=True)
class Outlier:
    """One metric by which a node stands apart; base units, counters per second.

    ``low`` and ``high`` are what the nodes that do not stand apart have; ``alike`` is how many
    of the ``compared`` do.  ``score`` is its distance, in cuts.  Without ``harm`` it is activity,
    which explains and decides nothing.
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
    lost: float = 0.0  # of its peers' progress, where that can be told


@dataclass(frozen=True)
class Drift:
    """One fact that few of many nodes have otherwise."""

    node: str
    fact: str
    value: str
    usual: str
    compared: int
    alike: int


@dataclass(frozen=True)
class Matrix:
    """Levels of nodes of one class: (nodes, metrics), with what is known of the metrics."""

    nodes: Sequence[str]
    measures: Sequence[Measure]
    levels: Floats
    spreads: Floats
    memory: float  # bytes
    cpus: int

    def quanta(self) -> Floats:
        """What begins to matter on nodes of this size."""
        return Quanta.of(self.measures).at(self.memory, self.cpus)


@dataclass(frozen=True)
class Compared:
    """Every level against the others: (nodes, metrics).

    ``distance`` is in deviations and grows with harm (activity: with the level), NaN where
    fewer than four nodes have the metric.
    """

    matrix: Matrix
    distance: Floats
    apart: Bools

    def outlier(self, at: int, column: int, job: str = "") -> Outlier:
        one = self.matrix.measures[column]
        levels, mine = self.matrix.levels[:, column], self.apart[:, column].copy()
        mine[at] = True
        others = levels[~mine & np.isfinite(levels)]
        known = levels[np.isfinite(levels)]
        return Outlier(
            node=self.matrix.nodes[at], metric=one.row.name, value=float(levels[at]),
            median=float(np.median(known)), low=float(others.min()), high=float(others.max()),
            compared=known.size, alike=int(mine.sum()),
            score=float(self.distance[at, column] * one.row.weight / CUT),
            standing=one.standing, job=job, harm=one.sign != 0,
        )  # fmt: skip


def outliers(summaries: Sequence[Summary]) -> Iterator[list[Outlier]]:
    """What hurts single nodes of a class: set up so, then under each same work.

    ``summaries`` are of one class.  Nodes whose work is another than the others' are compared
    by what is set up only.
    """
    ordered = sorted(summaries, key=lambda one: one.node)
    yield harmed(compare(matrix_of(ordered, _is_standing, capacity(ordered)), STANDING_FLOOR))
    for group in _alike(ordered):
        suffering: set[str] = set()
        size = capacity(group)
        for some in _loaded(group):
            found = harmed(compare(matrix_of(group, some.__contains__, size), LOADED_FLOOR))
            suffering.update(one.node for one in found)
            yield found
        yield _explaining(group, suffering)


def ranked(found: Iterable[Outlier]) -> list[Outlier]:
    """Most first; of what is as far out, the node before the job."""
    return sorted(found, key=lambda one: (-one.score, one.node, one.metric, one.job))


def drifts(summaries: Sequence[Summary]) -> list[Drift]:
    """Facts that few nodes of a class have otherwise than the rest."""
    by_fact: dict[str, dict[str, str]] = {}
    for one in summaries:
        for name, value in one.facts.items():
            by_fact.setdefault(name, {})[one.node] = value
    found = []
    for name, values in sorted(by_fact.items()):
        usual, count = Counter(sorted(values.values())).most_common(1)[0]
        if len(values) >= LEAST and len(values) - count <= few(len(values)):
            found += [
                Drift(node, name, value, usual, len(values), len(values) - count)
                for node, value in sorted(values.items())
                if value != usual
            ]
    return found


def few(nodes: int) -> int:
    """How many of so many nodes may be outliers; more are a kind of their own."""
    return max(1, nodes // _FEW)


def matrix_of(
    summaries: Sequence[Summary], wanted: Callable[[Measure], bool], size: tuple[float, int]
) -> Matrix:
    """Their levels side by side, by all wanted metrics that any of them has."""
    measures = [made for made in _measures(summaries) if wanted(made)]
    levels = np.full((len(summaries), len(measures)), np.nan)
    spreads = levels.copy()
    places = {one.row.name: at for at, one in enumerate(measures)}
    named: dict[int, list[int]] = {}
    for at, one in enumerate(summaries):
        named.setdefault(id(one.names), []).append(at)
    for rows in named.values():
        names = summaries[rows[0]].names
        taken = [k for k, name in enumerate(names) if name in places]
        cells = np.ix_(rows, [places[names[k]] for k in taken])
        levels[cells] = np.stack([summaries[row].levels for row in rows])[:, taken]
        spreads[cells] = np.stack([summaries[row].spreads for row in rows])[:, taken]
    nodes = [one.node for one in summaries]
    return Matrix(nodes, measures, levels, spreads, *size)


def capacity(summaries: Sequence[Summary]) -> tuple[float, int]:
    """Memory in bytes and CPUs of most of them."""
    memory, cpus = (levels[levels > 0] for levels in (column(summaries, MEMORY),
                                                       column(summaries, CPUS)))  # fmt: skip
    return (
        float(np.median(memory)) if memory.size else USUAL_MEMORY,
        round(float(np.median(cpus))) if cpus.size else 1,
    )


def column(summaries: Sequence[Summary], name: str) -> Floats:
    """The level of one metric on each node, as ``Summary.level`` gives it."""
    places: dict[int, int] = {}
    levels = np.full(len(summaries), np.nan)
    for at, one in enumerate(summaries):
        place = places.get(id(one.names))
        if place is None:
            place = one.names.index(name) if name in one.names else -1
            places[id(one.names)] = place
        if name in one.activity:
            levels[at] = one.activity[name]
        elif place >= 0:
            levels[at] = one.levels[place]
    return levels


def compare(matrix: Matrix, floor: float) -> Compared:
    """Every node against all of them, metric by metric."""
    quantum = matrix.quanta()
    signs = np.array([one.sign or 1 for one in matrix.measures], float)
    seen = signs * np.arcsinh(matrix.levels / quantum)
    own = matrix.spreads / np.hypot(matrix.levels, quantum)
    known = np.isfinite(seen).sum(axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # a metric that no node has
        middle = np.nanmedian(seen, axis=0)
        scatter = _DEVIATIONS * np.nanmedian(np.abs(seen - middle), axis=0)
        restless = np.nanmedian(own, axis=0)
    distance = (seen - middle) / np.fmax(np.fmax(scatter, restless), floor)
    distance[:, known < LEAST] = np.nan
    return Compared(matrix, distance, _standing_apart(seen, distance, middle, known))


def _standing_apart(seen: Floats, distance: Floats, middle: Floats, known: Floats) -> Bools:
    """Far out, few, and with a gap between them and all others."""
    far: Bools = np.nan_to_num(distance) > CUT
    allowed = np.maximum(1, known // _FEW)
    rest = np.where(far | np.isnan(seen), -np.inf, seen).max(axis=0, initial=-np.inf)
    nearest = np.where(far, seen, np.inf).min(axis=0, initial=np.inf)
    with np.errstate(invalid="ignore"):  # where none is far there is no nearest
        gap = nearest - rest >= _APART * (nearest - middle)
    apart: Bools = far & (far.sum(axis=0) <= allowed) & gap
    return apart


def harmed(compared: Compared, job: str = "") -> list[Outlier]:
    """Who stands apart by what; a metric that hurts less must stand farther out."""
    places = zip(*np.nonzero(compared.apart), strict=True)
    found = [compared.outlier(int(at), int(column), job) for at, column in places]
    return [one for one in found if one.score >= 1]


def _explaining(group: Sequence[Summary], nodes: Collection[str]) -> list[Outlier]:
    """The activity of these nodes that stands apart as well."""
    if not nodes:
        return []
    active = harmed(compare(_activity_of(group), LOADED_FLOOR))
    return [one for one in active if one.node in nodes]


def _activity_of(summaries: Sequence[Summary]) -> Matrix:
    """What is not told was below what matters: as good as none."""
    names = sorted({name for one in summaries for name in one.activity})
    measures = {name: made for name in names if (made := measure(name)) and not made.sign}
    levels = np.array([[one.activity.get(name, 0.0) for name in measures] for one in summaries])
    levels = levels.reshape(len(summaries), len(measures))
    nodes, rows = [one.node for one in summaries], list(measures.values())
    return Matrix(nodes, rows, levels, np.zeros(levels.shape), *capacity(summaries))


def _is_standing(one: Measure) -> bool:
    return one.standing


def _loaded(summaries: Sequence[Summary]) -> Iterator[set[Measure]]:
    """What follows the load and hurts, some at a time."""
    loaded = [one for one in _measures(summaries) if one.sign and not one.standing]
    for at in range(0, len(loaded), AT_ONCE):
        yield set(loaded[at : at + AT_ONCE])


def _measures(summaries: Sequence[Summary]) -> list[Measure]:
    """All that any of them is compared by, in order of names; nodes of a kind share theirs."""
    kinds = {id(one.names): one.names for one in summaries}.values()
    names = sorted({name for of_some in kinds for name in of_some})
    return [made for name in names if (made := measure(name)) is not None]


def _alike(summaries: Sequence[Summary]) -> list[list[Summary]]:
    """Nodes with the same work, where there are enough of them; idle ones have none."""
    groups: dict[tuple[str, ...], list[Summary]] = {}
    for one in summaries:
        if one.workload and one.seconds >= FULL_SECONDS:
            groups.setdefault(one.workload, []).append(one)
    return [group for group in groups.values() if len(group) >= LEAST]
