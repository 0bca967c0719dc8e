"""What a Prometheus server is told of findings, slices and the stream."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Callable, Iterator, Mapping

import prometheus_client
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from reveal_contract import VERSION
from reveal_contract.finding import Finding, FindingChange, FindingUpdate, State
from reveal_contract.runtime import http_endpoints
from reveal_contract.runtime.http_endpoints import Check

Labels = tuple[str, str, str]  # node, subsystem, severity

# from the close of a slice; an analyzer that keeps up answers within a fraction of a second
_VERDICT_BUCKETS = (0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_COUNTERS = {
    "received": ("reveal_slices", "Slices read from the stream"),
    "missing": ("reveal_slices_missing", "Slices that never came, by their sequence numbers"),
    "repeated": ("reveal_slices_repeated", "Slices that came again and were dropped"),
    "restarts": ("reveal_collector_restarts", "New beginnings of a node's sequence"),
    "refused": ("reveal_messages_refused", "Messages that could not be used"),
    "trimmed": ("reveal_messages_trimmed", "Messages trimmed before they were acknowledged"),
    "groups_recreated": ("reveal_stream_groups_recreated", "Consumer groups that had vanished"),
    "outages": ("reveal_stream_outages", "Times that Redis went away"),
}
_GAUGES = {
    "waiting": ("reveal_slices_waiting", "Slices waiting for their channel table"),
    "shards": ("reveal_stream_shards", "Shards held by this analyzer"),
    "connected": ("reveal_stream_connected", "1 while Redis answers"),
}


class Metrics:
    """A sink that counts; ``registry`` is what a scrape reads."""

    def __init__(self) -> None:
        self.registry = prometheus_client.CollectorRegistry()
        self._shown: dict[str, Labels] = {}
        self._open = prometheus_client.Gauge(
            "reveal_findings_open",
            "Findings open now",
            ("node", "subsystem", "severity"),
            registry=self.registry,
        )
        self._opened = self._counter(
            "reveal_findings", "Findings opened", ("subsystem", "severity")
        )
        self._suspected = self._counter("reveal_suspicions", "Suspicions", ("subsystem",))
        self.node_failures = self._counter(
            "reveal_node_failures", "Slices whose analysis failed and reset their node"
        )
        self.sink_failures = self._counter(
            "reveal_sink_failures", "Changes of findings that a sink could not take", ("sink",)
        )
        self.verdict = prometheus_client.Histogram(
            "reveal_verdict_seconds",
            "Time from the close of a slice on its node to its verdict, clock error included",
            buckets=_VERDICT_BUCKETS,
            registry=self.registry,
        )
        prometheus_client.Gauge(
            "reveal_build_info",
            "1, with the version",
            ("version",),
            registry=self.registry,
        ).labels(VERSION).set(1)

    def watch(self, status: Callable[[], Mapping[str, int]]) -> None:
        """Show the numbers of a stream reader, asked for at each scrape."""
        self.registry.register(StreamNumbers(status))

    def serve(self, port: int, health: Check | None = None, ready: Check | None = None) -> None:
        """Answer scrapes and probes on ``port`` from threads; ``OSError`` where it is taken."""
        http_endpoints.serve(self.registry, port, health, ready)

    def write(self, update: FindingUpdate) -> None:
        finding = update.finding
        if update.change is FindingChange.SUSPECTED:
            self._suspected.labels(finding.subsystem.value).inc()
            return
        if update.change is FindingChange.OPENED:
            self._opened.labels(finding.subsystem.value, finding.severity.value).inc()
        before = self._shown.pop(finding.id, None)
        if finding.state is State.OPEN:
            self._shown[finding.id] = _labels(finding)
        self._show({before} if before else set())

    def forget(self, node: str) -> None:
        """Drop what is shown of a node that another analyzer speaks for."""
        gone = {labels for labels in self._shown.values() if labels[0] == node}
        self._shown = {at: labels for at, labels in self._shown.items() if labels[0] != node}
        self._show(gone)

    def close(self) -> None:
        """Nothing to write: a scrape has seen what there was."""

    def _show(self, gone: set[Labels]) -> None:
        tally = Tally(self._shown.values())
        for labels in gone - tally.keys():
            self._open.remove(*labels)
        for labels, number in tally.items():
            self._open.labels(*labels).set(number)

    def _counter(
        self, name: str, meaning: str, labels: tuple[str, ...] = ()
    ) -> prometheus_client.Counter:
        return prometheus_client.Counter(name, meaning, labels, registry=self.registry)


class StreamNumbers(Collector):
    """The counts a stream reader keeps anyway, as metrics."""

    def __init__(self, status: Callable[[], Mapping[str, int]]) -> None:
        self._status = status

    def collect(self) -> Iterator[Metric]:
        status = self._status()
        for key, (name, meaning) in _COUNTERS.items():
            yield CounterMetricFamily(name, meaning, value=status[key])
        for key, (name, meaning) in _GAUGES.items():
            yield GaugeMetricFamily(name, meaning, value=status[key])


def _labels(finding: Finding) -> Labels:
    return finding.node_name, finding.subsystem.value, finding.severity.value
