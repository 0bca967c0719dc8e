"""The collector's endpoint for Prometheus: its own health and, by a switch, what it sampled.

All is computed when a scrape asks.  Import this only where the endpoint is on: the client
library takes megabytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector as Exporter

from reveal_collector.exporter.samples import SampleExporter
from reveal_contract.runtime import http_endpoints

if TYPE_CHECKING:
    from reveal_collector.collector import Collector, CollectorStatus

_PREFIX = "reveal_collector"
_GAUGES = {
    "channels": ("channels", "Channels sampled."),
    "buffered": ("slices_buffered", "Slices that wait for Redis: seconds it is behind."),
}
_COUNTERS = {
    "delivered": ("slices_delivered", "Slices delivered."),
    "dropped": ("slices_dropped", "Slices lost: Redis away for too long, or not encodable."),
    "skipped_slices": ("slices_skipped", "Seconds not sampled because the host stood still."),
    "late_ticks": ("ticks_late", "Ticks over a tenth of the period late."),
    "missed_ticks": ("ticks_missed", "Ticks a period late or more, recorded as missing."),
}
# a reason names what is absent, hardly more; the whole sentence is in `reveal doctor`
_LONGEST_REASON = 120


class HealthExporter(Exporter):
    """Reads the status at every scrape."""

    def __init__(self, collector: Collector) -> None:
        self._collector = collector

    def collect(self) -> Iterator[Metric]:
        settings = self._collector.settings
        yield from families(self._collector.status())
        yield GaugeMetricFamily(
            f"{_PREFIX}_cpu_budget_cores",
            "CPU the collector may use, in cores: compare process_cpu_seconds_total.",
            settings.cpu_budget_millicores / 1000,
        )
        yield http_endpoints.build_info(f"{_PREFIX}_build_info")


def families(status: CollectorStatus) -> Iterator[Metric]:
    """The metric families of one status."""
    for name, (shown, meaning) in _GAUGES.items():
        yield GaugeMetricFamily(f"{_PREFIX}_{shown}", meaning, getattr(status, name))
    for name, (shown, meaning) in _COUNTERS.items():
        yield CounterMetricFamily(f"{_PREFIX}_{shown}", meaning, getattr(status, name))
    yield GaugeMetricFamily(
        f"{_PREFIX}_degraded", "Lesser ways in use, sinks in trouble included.",
        len(status.degraded),
    )  # fmt: skip
    yield from _of_sources(status)


def _of_sources(status: CollectorStatus) -> Iterator[Metric]:
    up = GaugeMetricFamily(f"{_PREFIX}_source_up", "1 while it can be read.", labels=["source"])
    lane = GaugeMetricFamily(
        f"{_PREFIX}_source_info", "1, with the lane it is read in.", labels=["source", "lane"]
    )
    spent = GaugeMetricFamily(
        f"{_PREFIX}_source_read_seconds", "How long its last read took.", labels=["source"]
    )
    for feed in status.feeds:
        up.add_metric([feed.source], int(not feed.broken))
        lane.add_metric([feed.source, feed.lane], 1)
        spent.add_metric([feed.source], feed.read_ns / 1e9)
    absent = GaugeMetricFamily(
        f"{_PREFIX}_source_missing_info", "1, with why it is not there.",
        labels=["source", "reason"],
    )  # fmt: skip
    for lacking in status.missing:
        up.add_metric([lacking.source], 0)
        absent.add_metric([lacking.source, lacking.reason[:_LONGEST_REASON]], 1)
    yield from (up, lane, spent, absent)


def serve(collector: Collector, port: int) -> int:
    """Answer scrapes and probes on this port; raises ``OSError`` if it is taken."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(HealthExporter(collector))
    ProcessCollector(registry=registry)
    if collector.settings.metrics_series:
        exporter = SampleExporter(lambda: collector.last, collector.settings.metrics_series)
        registry.register(exporter)
    return http_endpoints.serve(
        registry, port, collector.pulse.stalled, partial(not_ready, collector)
    )


def not_ready(collector: Collector) -> str:
    """Why it is of no use yet; "" once a sink took a slice."""
    return "" if collector.pulse.is_ready else "no slice was delivered yet"
