"""Columns of one second: what the live score takes from a channel table.

Per-CPU channels are folded to their largest value, as it does not matter which CPU does the work.
Channels of subjects are folded to their sum.  Gauges appear as level and as change per second.
Some ratios that do not follow the load are added.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from reveal_analyzer.derive import stalls, tcp_losses, throttled_time
from reveal_analyzer.derive.ratios import Ratio, find_ratios
from reveal_analyzer.kernels.derive import Folds, Recipe
from reveal_analyzer.kernels.formulas import Opcode, Program
from reveal_contract import catalogue, ledger
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.metric import Capacity, Harm, Kind, Metric, Scope

COLUMN_SETS = 64  # of which caches keep what follows: nodes of one kind have the same
LEVEL, CHANGE = "mean", "mean_change"
DEFAULT_MEMORY = float(16 << 30)  # bytes, of a node that does not report its memory
LARGEST, TOTAL = "maximum", "sum_values"
# the collector's own metrics, the samples of step times, whose level means nothing, starts, and the
# ledger, which is judged by shares of time
_NOT_JUDGED = ("own", "subject-fine", "subject-starts", ledger.SOURCE)
_FOLDED = {Scope.CPU: LARGEST, Scope.SUBJECT: TOTAL}


@dataclass(frozen=True, slots=True)
class Column:
    """One number per second: a metric of an instance, seen through a feature.

    ``feature`` is ``mean`` (rate of a counter, level of a gauge), ``mean_change`` (of a gauge),
    ``maximum`` (over CPUs) or ``sum_values`` (over subjects).  ``label`` identifies the column in
    different tables.
    """

    metric: Metric
    instance: str
    feature: str
    label: str = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        where = f"{{{self.instance}}}" if self.instance else ""
        object.__setattr__(self, "label", f"{self.metric.name}{where}__{self.feature}")

    @property
    def harm(self) -> Harm:
        """Return in which direction the column is harmful; a change is activity, never harm."""
        return Harm.NEITHER if self.feature == CHANGE else self.metric.harm


@dataclass(frozen=True)
class PlanColumns:
    """The columns of a plan; sets with the same labels are equal, so that nodes share what follows.

    Nodes of one kind have the same columns and different pods, so their plans differ.
    """

    labels: tuple[str, ...]
    columns: tuple[Column, ...] = field(compare=False, repr=False)

    @cached_property
    def by_metric(self) -> Mapping[str, Sequence[int]]:
        """Return the indices of the columns of each metric."""
        return indices_by_metric(self.columns)


@dataclass(frozen=True, eq=False)
class ColumnPlan:
    """How the columns of a table are made from its channels; a plan equals only itself.

    ``recipe`` makes the first columns from the values of all channels (fast, then slow).
    """

    columns: tuple[Column, ...]
    channels: tuple[Channel, ...]
    recipe: Recipe
    gauge: NDArray[np.bool_]
    ratios: tuple[Ratio, ...]
    loss_counters: tcp_losses.LossCounters | None
    throttled: throttled_time.ThrottledChannels | None

    @cached_property
    def throttled_column(self) -> int:
        """Return the index of the column with the throttled time of all subjects."""
        return self.by_metric[throttled_time.TIME][0]

    @property
    def scale(self) -> NDArray[np.float64]:
        """Return the factor to base units of each channel."""
        return self.recipe.scale

    @cached_property
    def column_set(self) -> PlanColumns:
        """Return the columns, as one object for all plans that have the same."""
        return _interned(PlanColumns(tuple(column.label for column in self.columns), self.columns))

    @property
    def labels(self) -> tuple[str, ...]:
        return self.column_set.labels

    @property
    def by_metric(self) -> Mapping[str, Sequence[int]]:
        """Return the indices of the columns of each metric."""
        return self.column_set.by_metric

    @property
    def first_derived(self) -> int:
        """Return the index from which on columns are computed from several channels."""
        recipe = self.recipe
        return recipe.copied.size + recipe.changes.size + recipe.folds.starts.size

    @cached_property
    def derived_inputs(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Return the channels of derived columns, as pairs: index of the column, and channel."""
        formulas = self.recipe.formulas
        numbers = np.searchsorted(formulas.ends, np.arange(formulas.codes.size), side="right")
        reads = (formulas.codes == Opcode.READ) | (formulas.codes == Opcode.READ_OR_ZERO)
        activity = np.array(stalls.inputs(self.channels), np.intp)
        stalled = self.first_derived + formulas.ends.size
        columns = [self.first_derived + numbers[reads], np.full(activity.size, stalled, np.intp)]
        channels = [formulas.channels[reads], activity]
        if self.loss_counters is not None:
            counters, count = self.loss_counters.columns, len(tcp_losses.METRICS)
            losses = np.arange(self.recipe.width - count, self.recipe.width)
            columns.append(np.repeat(losses, counters.size))
            channels.append(np.tile(counters, count))
        return np.concatenate(columns), np.concatenate(channels)


@lru_cache(maxsize=COLUMN_SETS)
def _interned(columns: PlanColumns) -> PlanColumns:
    return columns


_SHARED: OrderedDict[bytes, ColumnPlan] = OrderedDict()
_MOST_SHARED = 16  # nodes differ in their pods mostly
_COLUMNS = 1 << 16  # kept in the cache; 20 MB at most


def column_plan(
    table: ChannelTable, leave_out: Callable[[Channel], bool] | None = None
) -> ColumnPlan:
    """Return the plan of a table, without the channels that ``leave_out`` selects."""
    channels = (*table.fast, *table.slow)
    kept = [
        index
        for index, channel in enumerate(channels)
        if in_catalogue(channel) and not (leave_out and leave_out(channel))
    ]
    metrics = {index: catalogue.find(channels[index].metric) for index in kept}
    single, folded = _partition(channels, kept, metrics)
    changing = [index for index in single if channels[index].kind is Kind.GAUGE]
    columns = [_column(channels[index].metric, channels[index].instance, LEVEL) for index in single]
    columns += [
        _column(channels[index].metric, channels[index].instance, CHANGE) for index in changing
    ]
    columns += [_column(metric, name, fold) for metric, name, fold in folded]
    ratios = find_ratios(channels, kept)
    columns += [_column(ratio.metric.name, ratio.instance, LEVEL) for ratio in ratios]
    columns += [_column("cpu.stalled_subjects", "", LEVEL)]
    counters = tcp_losses.loss_counters(table.fast)
    columns += [_column(name, "", LEVEL) for name in tcp_losses.METRICS if counters]
    return ColumnPlan(
        columns=tuple(columns),
        channels=channels,
        ratios=ratios,
        recipe=Recipe(
            scale=np.array([channel.scale for channel in channels], np.float64),
            copied=np.array(single, np.intp),
            changes=np.array(changing, np.intp),
            folds=folds([(fold, members) for (_, _, fold), members in folded.items()]),
            formulas=Program.of([ratio.formula for ratio in ratios]),
            width=len(columns),
        ),
        gauge=np.array([channel.kind is not Kind.COUNTER for channel in channels], bool),
        loss_counters=counters,
        throttled=throttled_time.throttled_channels(channels, kept),
    )


@lru_cache(maxsize=_COLUMNS)
def _column(metric: str, instance: str, feature: str) -> Column:
    """Return a column, shared by all plans, as nodes differ in their pods only."""
    return Column(catalogue.find(metric), instance, feature)


def shared_column_plan(table: ChannelTable) -> ColumnPlan:
    """Return the plan of a table, shared by all nodes that send the same table."""
    shared = _SHARED.get(table.key)
    if shared is None:
        shared = _SHARED[table.key] = column_plan(table)
        if len(_SHARED) > _MOST_SHARED:
            _SHARED.popitem(last=False)
    _SHARED.move_to_end(table.key)
    return shared


def indices_by_metric(columns: Iterable[Column]) -> dict[str, list[int]]:
    """Return the indices of the columns of each metric."""
    found: dict[str, list[int]] = {}
    for index, column in enumerate(columns):
        found.setdefault(column.metric.name, []).append(index)
    return found


def previous_indices(labels: Sequence[str], previous: Sequence[str]) -> NDArray[np.intp]:
    """Return the index of each label among the previous ones, -1 where it is new."""
    if labels == previous:
        return np.arange(len(labels))
    old = {label: index for index, label in enumerate(previous)}
    return np.array([old.get(label, -1) for label in labels], np.intp)


def in_catalogue(channel: Channel) -> bool:
    """Return whether this version's catalogue has the metric; a newer collector may send more."""
    try:
        catalogue.find(channel.metric)
    except catalogue.UnknownMetricError:
        return False
    return True


def _partition(
    channels: Sequence[Channel], kept: Sequence[int], metrics: dict[int, Metric]
) -> tuple[list[int], dict[tuple[str, str, str], list[int]]]:
    """Return the channels that are columns themselves, and those to be folded."""
    single: list[int] = []
    folded: dict[tuple[str, str, str], list[int]] = {}
    for index in kept:
        channel, metric = channels[index], metrics[index]
        if metric.source in _NOT_JUDGED:
            continue
        fold = _FOLDED.get(metric.scope)
        if fold is None or not channel.instance:
            single.append(index)
        else:
            kind = channel.instance.rpartition("/")[0] if metric.scope is Scope.CPU else ""
            folded.setdefault((metric.name, kind, fold), []).append(index)
    return single, folded


def folds(folded: Sequence[tuple[str, Sequence[int]]]) -> Folds:
    """Return the folds for pairs of fold feature and channels."""
    features, channels = zip(*folded, strict=True) if folded else ((), ())
    return Folds(
        np.array([index for each in channels for index in each], np.intp),
        np.cumsum([0, *map(len, channels)], dtype=np.intp)[:-1],
        np.array([way == LARGEST for way in features], np.bool_),
    )


@dataclass(frozen=True)
class ColumnQuanta:
    """The amount of each column that begins to matter, on a node whose size is 1 in all respects.

    ``capacity`` is what it grows with: an index into absolute, memory, CPUs.
    """

    amounts: NDArray[np.float64]
    halved: NDArray[np.float64]
    capacity: NDArray[np.intp]

    @classmethod
    def of(cls, columns: Sequence[Column]) -> ColumnQuanta:
        """Return those of some columns; of a change it is half."""
        numbers = {Capacity.ABSOLUTE: 0, Capacity.MEMORY: 1, Capacity.CPUS: 2}
        return cls(
            np.array([column.metric.quantum for column in columns], np.float64),
            np.array([0.5 if column.feature == CHANGE else 1.0 for column in columns]),
            np.array([numbers[column.metric.capacity] for column in columns], np.intp),
        )

    def scaled(self, memory_bytes: float, cpus: int) -> NDArray[np.float64]:
        """Return the amounts on a node of this size."""
        size = np.array([1.0, memory_bytes, float(cpus)])
        scaled: NDArray[np.float64] = self.halved * (self.amounts * size[self.capacity])
        return scaled


def quanta(columns: Sequence[Column], memory_bytes: float, cpus: int) -> NDArray[np.float64]:
    """Return the amount of each column that begins to matter on a node of this size."""
    return ColumnQuanta.of(columns).scaled(memory_bytes, cpus)
