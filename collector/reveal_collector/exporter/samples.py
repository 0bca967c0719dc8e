"""The last values of all channels as Prometheus metrics; disabled by default.

No work is done between scrapes: the collector keeps the last tick it shipped, and a scrape reads
it.  Counters are exported as the kernel reports them, so that Prometheus detects resets.  Without a
recent tick nothing is exported: the last values say nothing about now.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector as Exporter

from reveal_collector.readers.raw_bounds import raw_bounds
from reveal_collector.readers.raw_slice import RawSlice
from reveal_contract import catalogue
from reveal_contract.bounds import RawBounds
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.metric import Kind, Scope
from reveal_contract.metric import Metric as Row

LEFT_OUT = "reveal_collector_series_left_out"
_PREFIX = "reveal_"
# unit of the catalogue -> base unit of Prometheus, and the factor between them
_BASE = {
    "ns": ("seconds", 1e-9), "bytes": ("bytes", 1.0), "bytes/s": ("bytes_per_second", 1.0),
    "bits/s": ("bytes_per_second", 0.125), "Hz": ("hertz", 1.0), "ppm": ("ratio", 1e-6),
    "percent": ("ratio", 0.01), "celsius": ("celsius", 1.0), "joules": ("joules", 1.0),
    "watts": ("watts", 1.0),
}  # fmt: skip
# words of kernel names that would read as units
_SPELLED = {"s": "slab", "sec": "secondary", "bits": "bit_errors"}
# suffixes that Prometheus reserves for its own types and for counters
_RESERVED = re.compile(r"_(total|count|sum|bucket|info)\Z")
_U64 = 1 << 64


@dataclass(frozen=True)
class _Series:
    """One series of a family: the index of its value in the last row, its labels and bounds."""

    index: int
    labels: tuple[str, ...]
    factor: float
    bounds: RawBounds


@dataclass
class _Family:
    """One metric family and its series."""

    name: str
    meaning: str
    counter: bool
    label: str
    series: list[_Series] = field(default_factory=list)

    def exposed(self, row: Sequence[int]) -> Metric:
        """Return the family with its values of this row; missing values are left out."""
        kind = CounterMetricFamily if self.counter else GaugeMetricFamily
        metric = kind(self.name, self.meaning, labels=[self.label] if self.label else [])
        for series in self.series:
            value = series.bounds.known(row[series.index])
            if value is None:
                continue
            if self.counter and value < 0:
                value += _U64  # a kernel's u64 above 2^63
            metric.add_metric(series.labels, value * series.factor)
        return metric


class SampleExporter(Exporter):
    """Exports up to ``most`` series of the slice that ``last`` returns; small families first."""

    def __init__(self, last: Callable[[], RawSlice | None], most: int) -> None:
        self._last, self._most = last, most
        self._layout: tuple[ChannelTable, list[_Family], int] | None = None

    def collect(self) -> Iterator[Metric]:
        """Yield the families of the last tick, and how many channels are left out."""
        raw = self._last()
        if raw is None or not raw.lateness:
            return
        families, left_out = self._families(raw.table)
        width = len(raw.table.fast)
        row = [*memoryview(raw.fast)[(len(raw.lateness) - 1) * width :], *raw.slow]
        for family in families:
            yield family.exposed(row)
        yield GaugeMetricFamily(
            LEFT_OUT, "Channels that are not exported because of the limit.", left_out
        )

    def _families(self, table: ChannelTable) -> tuple[list[_Family], int]:
        if self._layout is None or self._layout[0] is not table:
            self._layout = (table, *metric_families(table, self._most))
        return self._layout[1:]


def metric_families(table: ChannelTable, most: int) -> tuple[list[_Family], int]:
    """Return the families of a table, and how many channels are left out.

    Only complete families are exported, those with few series first, up to ``most`` series.
    """
    by_name: dict[str, _Family] = {}
    for index, channel in enumerate((*table.fast, *table.slow)):
        row = catalogue.find(channel.metric)
        name, factor = family_name(row, channel)
        label = label_of(row.scope) if channel.instance else ""
        family = by_name.setdefault(
            name, _Family(name, f"{row.meaning.rstrip('.')}.", channel.kind is Kind.COUNTER, label)
        )
        labels = (channel.instance,) if channel.instance else ()
        family.series.append(_Series(index, labels, channel.scale * factor, raw_bounds(channel)))
    taken: list[_Family] = []
    room = most
    for family in sorted(by_name.values(), key=lambda family: len(family.series)):
        if len(family.series) <= room:
            taken.append(family)
            room -= len(family.series)
    return taken, sum(len(family.series) for family in by_name.values()) - (most - room)


def family_name(row: Row, channel: Channel) -> tuple[str, float]:
    """Return the metric name, such as ``reveal_cpu_user_seconds``, and the factor into its unit.

    Metrics of both the host and its CPUs have two names, so that no sum counts a CPU twice:
    ``reveal_cpu_user_seconds`` and ``reveal_cpu_user_by_cpu_seconds``.
    """
    base, factor = _BASE.get(row.unit, ("", 1.0))
    words = re.split(r"[._]", row.name)
    name = _PREFIX + "_".join(_SPELLED.get(word, word) for word in words)
    name = name.replace("_h_", "_h")  # the h belongs to HMac, it is no unit
    if channel.instance and row.scope is Scope.CPU:
        name += "_by_cpu"
    if base and not name.endswith(f"_{base}"):
        name += f"_{base}"
    return (f"{name}_now" if _RESERVED.search(name) else name), factor


def label_of(scope: Scope) -> str:
    """Return the label name of an instance; parts of the whole host (a softirq) are items."""
    return "item" if scope is Scope.NODE else scope.value
