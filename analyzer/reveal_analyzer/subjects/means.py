"""Counters of subjects over some seconds: the mean of each one, and of its busiest seconds.

A value that was not read counts for nothing.  A subject without a channel used 0 in that second if
it had not started yet, had ended, or was never announced.  An announced subject that was alive then
was not measured.  A process group has no values from its end on.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import NamedTuple

import numpy as np

from reveal_analyzer.arrays import Bools, Floats, Indices, Ints
from reveal_analyzer.derive.channel_index import indices_by_metric
from reveal_analyzer.subjects.directory import Directory, SubjectKey, is_process_group
from reveal_analyzer.subjects.shares import ChannelIndices, host_indices, host_value
from reveal_contract import catalogue, ledger
from reveal_contract.channels import Channel
from reveal_contract.metric import Scope

Counter = tuple[str, SubjectKey]  # a metric of a subject
# samples of step times, starts, and the ledger, which has rules of its own
_NO_LEVELS = ("subject-fine", "subject-starts", ledger.SOURCE)
PEAK_S = 2  # the least evidence that names a culprit by growth is about as long


class Level(NamedTuple):
    """What a subject uses of a metric.

    ``mean`` is over all seconds, ``high`` over the busier half of them, and ``peak`` over the two
    busiest ones.
    """

    mean: float
    high: float
    peak: float

    def busiest(self, count: int, seconds: int) -> float:
        """Return the most that the mean of ``count`` of the ``seconds`` seconds can be.

        All of a few seconds may be in one burst of a job; its busier half says nothing of them.
        """
        if count <= PEAK_S:
            return max(self.high, self.peak)
        # no seconds together have more than the busier half has
        half = (seconds + 1) // 2
        return max(self.high, min(self.peak, self.high * half / count))


NOTHING = Level(0.0, 0.0, 0.0)


@dataclass(frozen=True, eq=False)
class Layout:
    """Where one channel table has the subjects' channels and the host's of the same metrics."""

    counters: tuple[tuple[str, str], ...]  # metric, instance
    host: Mapping[str, ChannelIndices]  # indices into the kept values of a second
    kept: Indices

    @classmethod
    def of(cls, channels: Sequence[Channel]) -> Layout:
        """Return the layout of a channel table."""
        kept = subject_indices(channels)
        counters = tuple((channels[index].metric, channels[index].instance) for index in kept)
        host = {}
        for metric, indices in host_indices(channels).items():
            host[metric] = tuple(range(len(kept), len(kept) + len(indices)))
            kept += indices
        return cls(counters, host, np.array(kept, np.intp))

    @cached_property
    def metrics(self) -> frozenset[str]:
        """The metrics that some subject has."""
        return frozenset(metric for metric, _ in self.counters)


class Row(NamedTuple):
    """One second as it was received; it is interpreted only when a case needs it."""

    start_ns: int
    layout: Layout
    kept: Floats


Run = Sequence[Row]  # seconds of one layout


@dataclass(frozen=True)
class SubjectMeans:
    """Levels over ``seconds`` seconds: of the subjects by metric, and means of the host.

    ``last_ns`` is the start of the last second.
    """

    levels: Mapping[str, Mapping[SubjectKey, Level]] = field(default_factory=dict)
    host: Mapping[str, float] = field(default_factory=dict)
    seconds: int = 0
    last_ns: int = 0

    def of(self, metric: str) -> Mapping[SubjectKey, Level]:
        """Return the level of each subject that had a value of the metric."""
        return self.levels.get(metric, {})


def subject_indices(channels: Sequence[Channel]) -> list[int]:
    """Return the indices of the channels that are a subject's level, ascending."""
    found = [
        index
        for metric, indices in indices_by_metric(channels).items()
        if _is_level_of_subjects(metric)
        for index in indices
        if channels[index].instance
    ]
    return sorted(found)


def is_subject_level(channel: Channel) -> bool:
    """Return whether a channel belongs to a subject and is meaningful as a level."""
    return bool(channel.instance) and _is_level_of_subjects(channel.metric)


@cache
def _is_level_of_subjects(name: str) -> bool:
    try:
        metric = catalogue.find(name)
    except catalogue.UnknownMetricError:
        return False
    return metric.scope is Scope.SUBJECT and metric.source not in _NO_LEVELS


def subject_means(
    rows: Sequence[Row], directory: Directory, metrics: Collection[str] = ()
) -> SubjectMeans:
    """Return the levels of the subjects over these seconds; of all metrics if none are given."""
    if not rows:
        return SubjectMeans()
    runs = [tuple(run) for _, run in itertools.groupby(rows, lambda row: id(row.layout))]
    series = _Series(directory, metrics)
    for run in runs:
        series.add(run)
    values = series.values(rows)
    means, highs, peaks = _mean(values), _busier_half(values), _peak(values)
    levels: dict[str, dict[SubjectKey, Level]] = {}
    for (metric, key), column in series.columns.items():
        if not np.isnan(means[column]):
            level = Level(*(float(each[column]) for each in (means, highs, peaks)))
            levels.setdefault(metric, {})[key] = level
    return SubjectMeans(levels, _host_means(runs, metrics), len(rows), rows[-1].start_ns)


class _Piece(NamedTuple):
    """Values of one counter in adjacent seconds."""

    column: int
    begin: int
    values: Floats


class _Series:
    """Collects the values of each counter over seconds whose channel tables may differ."""

    def __init__(self, directory: Directory, metrics: Collection[str]) -> None:
        self.columns: dict[Counter, int] = {}
        self._directory, self._metrics = directory, metrics
        self._pieces: list[_Piece] = []
        self._seconds = 0

    def add(self, run: Run) -> None:
        """Add the seconds of one layout."""
        block = np.array([row.kept for row in run])
        segments: dict[str, list[tuple[int, int, SubjectKey]]] = {}
        for source, (metric, instance) in enumerate(run[0].layout.counters):
            if self._metrics and metric not in self._metrics:
                continue
            if instance not in segments:
                segments[instance] = _segments(instance, run, self._directory)
            for begin, end, key in segments[instance]:
                column = self.columns.setdefault((metric, key), len(self.columns))
                piece = _Piece(column, self._seconds + begin, block[begin:end, source])
                self._pieces.append(piece)
        self._seconds += len(run)

    def values(self, rows: Sequence[Row]) -> Floats:
        """Return the values, (seconds, columns): NaN where a counter was not measured."""
        values = np.full((self._seconds, len(self.columns)), np.nan)
        has_channel = np.zeros(values.shape, np.bool_)
        for column, begin, part in self._pieces:
            values[begin : begin + len(part), column] = part
            has_channel[begin : begin + len(part), column] = True
        incomplete = np.isnan(values).any(axis=0)
        for (metric, key), column in self.columns.items():
            if incomplete[column]:
                unused = self._unused(key, rows, has_channel[:, column])
                read = np.array([metric in row.layout.metrics for row in rows])
                values[np.isnan(values[:, column]) & unused & read, column] = 0.0
        return values

    def _unused(self, key: SubjectKey, rows: Sequence[Row], has_channel: Bools) -> Bools:
        """Return the seconds in which the subject used nothing if no value was read."""
        directory = self._directory
        if is_process_group(key):  # it has no value from its end on
            return np.ones(len(rows), np.bool_)
        if directory.identity(key) is None:
            return ~has_channel
        return np.array([not directory.may_live(key, row.start_ns) for row in rows])


def _segments(
    instance: str, run: Run, directory: Directory
) -> list[tuple[int, int, SubjectKey]]:  # fmt: skip
    """Return the subjects that an instance stood for in a run, each with its seconds."""
    first, last = (directory.key(instance, row.start_ns) for row in (run[0], run[-1]))
    if first == last:  # an instance is rarely reused
        return [(0, len(run), first)]
    keys = [directory.key(instance, row.start_ns) for row in run]
    segments, begin = [], 0
    for key, same in itertools.groupby(keys):
        end = begin + len(list(same))
        segments.append((begin, end, key))
        begin = end
    return segments


def _mean(values: Floats) -> Floats:
    """Return the mean of the values of each column; NaN where there is none."""
    counts = (~np.isnan(values)).sum(axis=0)
    sums = np.nan_to_num(values).sum(axis=0)
    means: Floats = np.full(counts.shape, np.nan)
    np.divide(sums, counts, out=means, where=counts > 0)
    return means


def _busier_half(values: Floats) -> Floats:
    """Return the mean of the larger half of the values of each column."""
    counts = (~np.isnan(values)).sum(axis=0)
    return _largest(values, counts, counts - counts // 2)


def _peak(values: Floats) -> Floats:
    """Return the mean of the two largest values of each column."""
    counts = (~np.isnan(values)).sum(axis=0)
    return _largest(values, counts, np.minimum(counts, PEAK_S))


def _largest(values: Floats, counts: Ints, taken: Ints) -> Floats:
    """Return the mean of the ``taken`` largest of the ``counts`` values of each column."""
    ordered = np.nan_to_num(np.sort(values, axis=0))  # NaN is sorted to the end
    rank = np.arange(len(values))[:, np.newaxis]
    larger = (rank >= counts - taken) & (rank < counts)
    sums: Floats = np.where(larger, ordered, 0.0).sum(axis=0)
    largest: Floats = sums / np.maximum(taken, 1)
    return largest


def _host_means(runs: Iterable[Run], metrics: Collection[str]) -> dict[str, float]:
    """Return the mean of each host counter over the seconds in which it was read."""
    sums: dict[str, list[tuple[int, float]]] = {}
    for run in runs:
        counters = _mean(np.array([row.kept for row in run])).tolist()
        for metric, indices in run[0].layout.host.items():
            value = host_value(metric, indices, counters.__getitem__)
            if not (np.isnan(value) or (metrics and metric not in metrics)):
                sums.setdefault(metric, []).append((len(run), value))
    return {
        metric: sum(seconds * value for seconds, value in parts) / sum(n for n, _ in parts)
        for metric, parts in sums.items()
    }
