"""The collector's Prometheus endpoint: its own health and, if enabled, the sampled values.

All values are computed during a scrape.  Import this module only where the endpoint is enabled:
the client library takes megabytes of memory.
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
    "buffered": ("slices_buffered", "Slices that wait for Redis: the delay in seconds."),
}
_COUNTERS = {
    "delivered": ("slices_delivered", "Slices delivered."),
    "dropped": (
        "slices_dropped",
        "Slices lost: Redis was unavailable for too long, or encoding failed.",
    ),
    "skipped_slices": ("slices_skipped", "Seconds not sampled because the host stood still."),
    "late_ticks": ("ticks_late", "Ticks over a tenth of the period late."),
    "missed_ticks": ("ticks_missed", "Ticks a period late or more, recorded as missing."),
}
# label values should be short: `reveal doctor` prints the whole reason
_LONGEST_REASON = 120


class HealthExporter(Exporter):
    """Exports the collector's status at every scrape."""

    def __init__(self, collector: Collector) -> None:
        self._collector = collector

    def collect(self) -> Iterator[Metric]:
        """Yield the metric families of the status, the budget and the build."""
        settings = self._collector.settings
        yield from families(self._collector.status())
        yield GaugeMetricFamily(
            f"{_PREFIX}_cpu_budget_cores",
            "CPU budget of the collector in cores: compare with process_cpu_seconds_total.",
            settings.cpu_budget_millicores / 1000,
        )
        yield http_endpoints.build_info(f"{_PREFIX}_build_info")


def families(status: CollectorStatus) -> Iterator[Metric]:
    """Yield the metric families of one status."""
    for name, (suffix, meaning) in _GAUGES.items():
        yield GaugeMetricFamily(f"{_PREFIX}_{suffix}", meaning, getattr(status, name))
    for name, (suffix, meaning) in _COUNTERS.items():
        yield CounterMetricFamily(f"{_PREFIX}_{suffix}", meaning, getattr(status, name))
    yield GaugeMetricFamily(
        f"{_PREFIX}_degraded", "Fallbacks in use, sinks with errors included.",
        len(status.degraded),
    )  # fmt: skip
    yield from _of_sources(status)


def _of_sources(status: CollectorStatus) -> Iterator[Metric]:
    up = GaugeMetricFamily(
        f"{_PREFIX}_source_up", "1 while the source can be read and answers.", labels=["source"]
    )
    lane = GaugeMetricFamily(
        f"{_PREFIX}_source_info", "1, with the lane of the source.", labels=["source", "lane"]
    )
    spent = GaugeMetricFamily(
        f"{_PREFIX}_source_read_seconds",
        "Duration of the last read of the source.",
        labels=["source"],
    )
    for feed in status.feeds:
        up.add_metric([feed.source], int(feed.up))
        lane.add_metric([feed.source, feed.lane], 1)
        if feed.up:
            spent.add_metric([feed.source], feed.read_ns / 1e9)
    absent = GaugeMetricFamily(
        f"{_PREFIX}_source_missing_info", "1, with the reason why the source is not available.",
        labels=["source", "reason"],
    )  # fmt: skip
    for source in status.missing:
        up.add_metric([source.source], 0)
        absent.add_metric([source.source, source.reason[:_LONGEST_REASON]], 1)
    yield from (up, lane, spent, absent)


def serve(collector: Collector, port: int) -> int:
    """Serve scrapes and probes on this port and return it; see ``http_endpoints.serve``."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(HealthExporter(collector))
    ProcessCollector(registry=registry)
    if collector.settings.metrics_series:
        exporter = SampleExporter(collector.recent_tick, collector.settings.metrics_series)
        registry.register(exporter)
    folder = collector.settings.metrics_access_folder
    return http_endpoints.serve(
        registry, port, collector.pulse.stalled, partial(not_ready, collector), folder
    )


def not_ready(collector: Collector) -> str:
    """Return why the collector is not ready; "" once a sink delivered a slice."""
    return "" if collector.pulse.is_ready else "no slice has been delivered yet"
