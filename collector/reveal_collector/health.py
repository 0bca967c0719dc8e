"""The collector's own health for Prometheus; the samples themselves never go this way."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector as Exporter

if TYPE_CHECKING:
    from reveal_collector.collector import Collector, Status

_PREFIX = "reveal_collector"
_GAUGES = {
    "channels": "Channels sampled.",
    "buffered": "Slices that wait for Redis.",
}
_COUNTERS = {
    "delivered": "Slices delivered.",
    "dropped": "Slices lost: Redis away for too long, or not encodable.",
    "late_ticks": "Ticks over a tenth of the period late.",
    "missed_ticks": "Ticks a period late or more, recorded as missing.",
    "skipped_slices": "Seconds without a sample because the host stood still.",
}


class HealthExporter(Exporter):
    """Reads the status at every scrape."""

    def __init__(self, collector: Collector) -> None:
        self._collector = collector

    def collect(self) -> Iterator[Metric]:
        yield from families(self._collector.status())


def families(status: Status) -> Iterator[Metric]:
    """The metric families of one status."""
    for name, meaning in _GAUGES.items():
        yield GaugeMetricFamily(f"{_PREFIX}_{name}", meaning, getattr(status, name))
    for name, meaning in _COUNTERS.items():
        yield CounterMetricFamily(f"{_PREFIX}_{name}", meaning, getattr(status, name))
    sources = GaugeMetricFamily(
        f"{_PREFIX}_source_up", "Whether a source is sampled here.", labels=["source"]
    )
    for name in status.sources:
        sources.add_metric([name], 1)
    for lacking in status.missing:
        sources.add_metric([lacking.source], 0)
    yield sources
    yield GaugeMetricFamily(f"{_PREFIX}_degraded", "Fallbacks in use.", len(status.degraded))


def serve(collector: Collector, port: int) -> None:
    """Answer scrapes on this port until the process ends; raises ``OSError`` if it is taken."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(HealthExporter(collector))
    start_http_server(port, registry=registry)
