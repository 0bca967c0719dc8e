"""The last second's values of all channels as Prometheus metrics: a switch, off by default.

Nothing is done for them between scrapes: the slice shipped last is kept, and a scrape reads its
last row.  Counters are the kernel's own readings, so that a reset is one for Prometheus too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector as Exporter

from reveal_collector.readers.raw_slice import MISSING, RawSlice
from reveal_contract import catalogue
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.metric import Kind, Scope
from reveal_contract.metric import Metric as Row

LEFT_OUT = "reveal_collector_series_left_out"
_PREFIX = "reveal_"
# the catalogue's unit -> base unit of Prometheus, with the factor into it
_BASE = {
    "ns": ("seconds", 1e-9), "bytes": ("bytes", 1.0), "bytes/s": ("bytes_per_second", 1.0),
    "bits/s": ("bytes_per_second", 0.125), "Hz": ("hertz", 1.0), "ppm": ("ratio", 1e-6),
    "percent": ("ratio", 0.01), "celsius": ("celsius", 1.0), "joules": ("joules", 1.0),
    "watts": ("watts", 1.0),
}  # fmt: skip
# words of kernel names that read as units; the h is that of an HMac
_SPELLED = {"s": "slab", "sec": "secondary", "bits": "bit_errors"}
# endings that mean something to Prometheus: the types of its own, and the mark of a counter
_RESERVED = re.compile(r"_(total|count|sum|bucket|info)\Z")
_U64 = 1 << 64


@dataclass(frozen=True)
class _Series:
    """Where a value stands in the last row, and what it is called."""

    at: int
    labels: tuple[str, ...]
    factor: float


@dataclass
class _Family:
    name: str
    meaning: str
    counter: bool
    label: str
    series: list[_Series] = field(default_factory=list)

    def exposed(self, row: Sequence[int]) -> Metric:
        kind = CounterMetricFamily if self.counter else GaugeMetricFamily
        made = kind(self.name, self.meaning, labels=[self.label] if self.label else [])
        for series in self.series:
            value = row[series.at]
            if value == MISSING:
                continue
            if self.counter and value < 0:
                value += _U64  # a kernel's u64 above 2^63
            made.add_metric(series.labels, value * series.factor)
        return made


class SampleExporter(Exporter):
    """Up to ``most`` series of the slice that ``last`` gives; the host's own before its parts'."""

    def __init__(self, last: Callable[[], RawSlice | None], most: int) -> None:
        self._last, self._most = last, most
        self._layout: tuple[ChannelTable, list[_Family], int] | None = None

    def collect(self) -> Iterator[Metric]:
        raw = self._last()
        if raw is None or not raw.lateness:
            return
        families, left_out = self._families(raw.table)
        width = len(raw.table.fast)
        row = [*memoryview(raw.fast)[(len(raw.lateness) - 1) * width :], *raw.slow]
        for family in families:
            yield family.exposed(row)
        yield GaugeMetricFamily(LEFT_OUT, "Channels not shown, as there are too many.", left_out)

    def _families(self, table: ChannelTable) -> tuple[list[_Family], int]:
        if self._layout is None or self._layout[0] is not table:
            self._layout = (table, *metric_families(table, self._most))
        return self._layout[1:]


def metric_families(table: ChannelTable, most: int) -> tuple[list[_Family], int]:
    """The families of a table, whole ones up to ``most`` series; and how many channels are not."""
    by_name: dict[str, _Family] = {}
    for at, channel in enumerate((*table.fast, *table.slow)):
        row = catalogue.find(channel.metric)
        name, factor = family_name(row, channel)
        label = label_of(row.scope) if channel.instance else ""
        family = by_name.setdefault(
            name, _Family(name, f"{row.meaning.rstrip('.')}.", channel.kind is Kind.COUNTER, label)
        )
        labels = (channel.instance,) if channel.instance else ()
        family.series.append(_Series(at, labels, channel.scale * factor))
    taken: list[_Family] = []
    room = most
    for family in sorted(by_name.values(), key=lambda one: len(one.series)):
        if len(family.series) <= room:
            taken.append(family)
            room -= len(family.series)
    return taken, sum(len(one.series) for one in by_name.values()) - (most - room)


def family_name(row: Row, channel: Channel) -> tuple[str, float]:
    """``reveal_cpu_user_seconds`` and what a value in the catalogue's unit is multiplied by.

    What is both of the host and of its CPUs has two names, so that no sum counts it twice:
    ``reveal_cpu_user_seconds`` and ``reveal_cpu_user_by_cpu_seconds``.
    """
    base, factor = _BASE.get(row.unit, ("", 1.0))
    words = re.split(r"[._]", row.name)
    name = _PREFIX + "_".join(_SPELLED.get(word, word) for word in words).replace("_h_", "_h")
    if channel.instance and row.scope is Scope.CPU:
        name += "_by_cpu"
    if base and not name.endswith(f"_{base}"):
        name += f"_{base}"
    return (f"{name}_now" if _RESERVED.search(name) else name), factor


def label_of(scope: Scope) -> str:
    """The label of an instance; a thing of the whole host (a kind of softirq) is an item."""
    return "item" if scope is Scope.NODE else scope.value
