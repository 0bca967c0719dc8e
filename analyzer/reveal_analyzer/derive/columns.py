"""Columns of one second: what the live score sees of a channel table.

Per-CPU channels are folded to their largest (which CPU does the work changes all the time and
is not news), subjects' to their sum, gauges appear as level and as change per second, and a
few ratios that do not follow the load are added.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import numpy as np
from numpy.typing import NDArray

from reveal_analyzer.derive import ratios as derived
from reveal_analyzer.derive import tcp_losses
from reveal_analyzer.derive.ratios import Ratio
from reveal_analyzer.kernels.derive import Folds, Recipe
from reveal_analyzer.kernels.formulas import Program
from reveal_contract import catalogue
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.metric import Capacity, Harm, Kind, Metric, Scope

LEVEL, CHANGE = "mean", "mean_change"
LARGEST, TOTAL = "maximum", "sum_values"
# the collector's own figures; a rhythm's samples, which say nothing as a level
_NOT_JUDGED = ("own", "subject-fine")
_FOLDED = {Scope.CPU: LARGEST, Scope.SUBJECT: TOTAL}


@dataclass(frozen=True, slots=True)
class Column:
    """One number a second: a metric of an instance, seen through a feature.

    ``feature`` is ``mean`` (rate of a counter, level of a gauge), ``mean_change`` (of a gauge),
    ``maximum`` (over CPUs) or ``sum_values`` (over subjects).  ``label`` is its identity over
    changes of the table.
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
        """A level can hurt; that it moves is activity."""
        return Harm.NEITHER if self.feature == CHANGE else self.metric.harm


@dataclass(frozen=True, eq=False)
class Plan:
    """How to make the columns of a table from its channels; each is only equal to itself.

    ``recipe`` makes the first of them of all channels' seconds (fast, then slow).
    """

    columns: tuple[Column, ...]
    channels: tuple[Channel, ...]
    recipe: Recipe
    gauge: NDArray[np.bool_]
    ratios: tuple[Ratio, ...]
    loss_places: tcp_losses.Places | None

    @property
    def scale(self) -> NDArray[np.float64]:
        """To base units, of each channel."""
        return self.recipe.scale

    @cached_property
    def labels(self) -> tuple[str, ...]:
        return tuple(column.label for column in self.columns)


_SHARED: OrderedDict[bytes, Plan] = OrderedDict()
_MOST_SHARED = 16  # what differs between nodes are their pods
_COLUMNS = 1 << 16  # remembered; some 20 MB at most


def plan(table: ChannelTable, leave_out: Callable[[Channel], bool] | None = None) -> Plan:
    """The columns of a table, without the channels ``leave_out`` names."""
    channels = (*table.fast, *table.slow)
    kept = [
        at
        for at, channel in enumerate(channels)
        if known(channel) and not (leave_out and leave_out(channel))
    ]
    metrics = {at: catalogue.find(channels[at].metric) for at in kept}
    single, folded = _sort_out(channels, kept, metrics)
    changing = [at for at in single if channels[at].kind is Kind.GAUGE]
    columns = [_column(channels[at].metric, channels[at].instance, LEVEL) for at in single]
    columns += [_column(channels[at].metric, channels[at].instance, CHANGE) for at in changing]
    columns += [_column(metric, name, how) for metric, name, how in folded]
    ratios = derived.ratios(channels, kept)
    columns += [_column(ratio.metric.name, ratio.instance, LEVEL) for ratio in ratios]
    columns += [_column("cpu.stalled_subjects", "", LEVEL)]
    lossy = tcp_losses.places(table.fast)
    columns += [_column(name, "", LEVEL) for name in tcp_losses.METRICS if lossy]
    return Plan(
        columns=tuple(columns),
        channels=channels,
        ratios=ratios,
        recipe=Recipe(
            scale=np.array([channel.scale for channel in channels], np.float64),
            copied=np.array(single, np.intp),
            changes=np.array(changing, np.intp),
            folds=folds([(how, places) for (_, _, how), places in folded.items()]),
            formulas=Program.of([ratio.formula for ratio in ratios]),
            width=len(columns),
        ),
        gauge=np.array([channel.kind is not Kind.COUNTER for channel in channels], bool),
        loss_places=lossy,
    )


@lru_cache(maxsize=_COLUMNS)
def _column(metric: str, instance: str, feature: str) -> Column:
    """One for all plans that have it: nodes of a kind differ in their pods only."""
    return Column(catalogue.find(metric), instance, feature)


def shared_plan(table: ChannelTable) -> Plan:
    """The columns of a table: one plan for all nodes that send it, and there are few tables."""
    made = _SHARED.get(table.key)
    if made is None:
        made = _SHARED[table.key] = plan(table)
        if len(_SHARED) > _MOST_SHARED:
            _SHARED.popitem(last=False)
    _SHARED.move_to_end(table.key)
    return made


def places_before(labels: Sequence[str], before: Sequence[str]) -> NDArray[np.intp]:
    """Where each of these labels was among others, -1 for those that were not there."""
    old = {label: at for at, label in enumerate(before)}
    return np.array([old.get(label, -1) for label in labels], np.intp)


def known(channel: Channel) -> bool:
    """Whether this version's catalogue has the metric; a newer collector may send more."""
    try:
        catalogue.find(channel.metric)
    except catalogue.UnknownMetricError:
        return False
    return True


def _sort_out(
    channels: Sequence[Channel], kept: Sequence[int], metrics: dict[int, Metric]
) -> tuple[list[int], dict[tuple[str, str, str], list[int]]]:
    """Channels that stand alone, and those folded over CPUs or subjects."""
    single: list[int] = []
    folded: dict[tuple[str, str, str], list[int]] = {}
    for at in kept:
        channel, metric = channels[at], metrics[at]
        if metric.source in _NOT_JUDGED:
            continue
        how = _FOLDED.get(metric.scope)
        if how is None or not channel.instance:
            single.append(at)
        else:
            kind = channel.instance.rpartition("/")[0] if metric.scope is Scope.CPU else ""
            folded.setdefault((metric.name, kind, how), []).append(at)
    return single, folded


def folds(folded: Sequence[tuple[str, Sequence[int]]]) -> Folds:
    """From how each column is folded, and its channels."""
    ways, places = zip(*folded, strict=True) if folded else ((), ())
    return Folds(
        np.array([at for each in places for at in each], np.intp),
        np.cumsum([0, *map(len, places)], dtype=np.intp)[:-1],
        np.array([way == LARGEST for way in ways], np.bool_),
    )


def quanta(columns: Sequence[Column], memory_bytes: float, cpus: int) -> NDArray[np.float64]:
    """The amount of each column that begins to matter on a node of this size."""
    capacity = {Capacity.ABSOLUTE: 1.0, Capacity.MEMORY: memory_bytes, Capacity.CPUS: float(cpus)}
    halved = np.array([0.5 if column.feature == CHANGE else 1.0 for column in columns])
    return halved * [column.metric.quantum * capacity[column.metric.capacity] for column in columns]
