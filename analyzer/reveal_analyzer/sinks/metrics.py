"""Prometheus metrics of findings, slices, the stream and the Kubernetes sink."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping

import prometheus_client
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from reveal_analyzer.sinks.lost_gpu_hours import LostGpuHours
from reveal_contract import VERSION
from reveal_contract.finding import Finding, FindingChange, FindingUpdate, State
from reveal_contract.runtime import http_endpoints
from reveal_contract.runtime.http_endpoints import Check

Labels = tuple[str, str, str, str]  # node, subsystem, severity, kind

# seconds from the close of a slice; an analyzer that keeps up needs a fraction of a second
_VERDICT_BUCKETS = (0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_COUNTERS = {
    "received": ("reveal_slices", "Slices read from the stream"),
    "missing": ("reveal_slices_missing", "Slices that never arrived, by their sequence numbers"),
    "repeated": ("reveal_slices_repeated", "Slices that arrived again and were dropped"),
    "restarts": ("reveal_collector_restarts", "Times that a node's sequence started again"),
    "refused": ("reveal_messages_refused", "Messages that could not be used"),
    "trimmed": ("reveal_messages_trimmed", "Slices trimmed before they were read or acknowledged"),
    "groups_recreated": (
        "reveal_stream_groups_recreated",
        "Consumer groups that were created again",
    ),
    "outages": ("reveal_stream_outages", "Times that Redis became unavailable"),
}
_GAUGES = {
    "waiting": ("reveal_slices_waiting", "Slices waiting for their channel table"),
    "shards": ("reveal_stream_shards", "Shards held by this analyzer"),
    "connected": ("reveal_stream_connected", "1 while Redis responds"),
}
_KUBE_GAUGES = {
    "up": ("reveal_kubernetes_up", "1 while the Kubernetes API accepts requests"),
    "waiting": ("reveal_reports_waiting", "Reports that wait for the Kubernetes API"),
}
_REPORT_RESULTS = ("created", "updated", "resolved", "verified", "invalid", "summed", "dropped")
_EVENT_RESULTS = ("posted", "repeated", "counted", "limited", "silenced", "dropped")


class Metrics:
    """A sink that counts; a scrape reads its ``registry``."""

    def __init__(self) -> None:
        self.registry = prometheus_client.CollectorRegistry()
        self._labels: dict[str, Labels] = {}
        self._open = prometheus_client.Gauge(
            "reveal_findings_open",
            "Findings open now",
            ("node", "subsystem", "severity", "kind"),
            registry=self.registry,
        )
        self._opened = self._counter(
            "reveal_findings", "Findings opened", ("subsystem", "severity")
        )
        self._suspected = self._counter("reveal_suspicions", "Suspicions", ("subsystem",))
        self._lost_gpu_hours = LostGpuHours(self.registry)
        self.node_failures = self._counter(
            "reveal_node_failures", "Slices whose analysis failed and reset their node"
        )
        self.sink_failures = self._counter(
            "reveal_sink_failures", "Updates of findings that a sink could not write", ("sink",)
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
        """Add the counts of a stream reader; each scrape reads them."""
        self.registry.register(StreamMetrics(status))

    def watch_states(self, counts: Mapping[str, int]) -> None:
        """Add the counts of saved states; each scrape reads them."""
        self.registry.register(StateMetrics(counts))

    def serve(
        self,
        port: int,
        health: Check | None = None,
        ready: Check | None = None,
        access_folder: str = "",
    ) -> None:
        """Serve scrapes and probes on ``port`` from threads; see ``http_endpoints.serve``."""
        http_endpoints.serve(self.registry, port, health, ready, access_folder)

    def write(self, update: FindingUpdate) -> None:
        """Count one update."""
        finding = update.finding
        if update.change is FindingChange.SUSPECTED:
            self._suspected.labels(finding.subsystem.value).inc()
            return
        if update.change is FindingChange.VERIFIED:
            return
        if update.change is FindingChange.OPENED:
            self._opened.labels(finding.subsystem.value, finding.severity.value).inc()
        self._lost_gpu_hours.write(update)
        before = self._labels.pop(finding.id, None)
        if finding.state is State.OPEN:
            self._labels[finding.id] = _labels(finding)
        self._update_open({before} if before else set())

    def forget(self, node: str, lost: str = "") -> None:
        """Drop the open findings of a node that is not observed here any more."""
        self._lost_gpu_hours.forget(node, lost=bool(lost))
        gone = {labels for labels in self._labels.values() if labels[0] == node}
        self._labels = {id_: labels for id_, labels in self._labels.items() if labels[0] != node}
        self._update_open(gone)

    def close(self) -> None:
        """Do nothing: there is nothing left to write."""

    def _update_open(self, gone: set[Labels]) -> None:
        numbers = Counter(self._labels.values())
        for labels in gone - numbers.keys():
            self._open.remove(*labels)
        for labels, number in numbers.items():
            self._open.labels(*labels).set(number)

    def _counter(
        self, name: str, meaning: str, labels: tuple[str, ...] = ()
    ) -> prometheus_client.Counter:
        return prometheus_client.Counter(name, meaning, labels, registry=self.registry)


class KubeSinkMetrics(Collector):
    """The counts of a ``KubeSink``; all results exist from the start."""

    def __init__(self, counts: Callable[[], Mapping[str, int]]) -> None:
        self._counts = counts

    def collect(self) -> Iterator[Metric]:
        counts = self._counts()
        for key, (name, meaning) in _KUBE_GAUGES.items():
            yield GaugeMetricFamily(name, meaning, value=counts[key])
        yield _by_result(
            "reveal_report_writes",
            "Writes of AnomalyReports; summed: over the limit, part of the summary report;"
            " invalid: rejected by the API; dropped: too many to keep",
            {result: counts.get(f"report {result}", 0) for result in _REPORT_RESULTS},
        )
        yield _by_result(
            "reveal_events",
            "Events; repeated: the API had it already; counted: part of a series; limited: too"
            " many on one object; silenced: of a silenced report; dropped: rejected by the API",
            {result: counts.get(f"event {result}", 0) for result in _EVENT_RESULTS},
        )
        yield CounterMetricFamily(
            "reveal_spool_rows_corrupt",
            "Rows of an earlier run that could not be read",
            value=counts["corrupt"],
        )


class OtlpMetrics(Collector):
    """The counts of an ``OtlpSink``."""

    def __init__(self, counts: Mapping[str, int]) -> None:
        self._counts = counts

    def collect(self) -> Iterator[Metric]:
        yield _by_result(
            "reveal_otlp_records",
            "Log records for the OpenTelemetry receiver; refused: it does not take them; dropped:"
            " too many to keep",
            self._counts,
        )


class StreamMetrics(Collector):
    """The counts of a stream reader."""

    def __init__(self, status: Callable[[], Mapping[str, int]]) -> None:
        self._status = status

    def collect(self) -> Iterator[Metric]:
        status = self._status()
        for key, (name, meaning) in _COUNTERS.items():
            yield CounterMetricFamily(name, meaning, value=status[key])
        for key, (name, meaning) in _GAUGES.items():
            yield GaugeMetricFamily(name, meaning, value=status[key])


class StateMetrics(Collector):
    """The counts of saved states; all results exist from the start."""

    def __init__(self, counts: Mapping[str, int]) -> None:
        self._counts = counts

    def collect(self) -> Iterator[Metric]:
        yield _by_result(
            "reveal_node_states",
            "Saved states of nodes; unreadable, old: the node is learned again; failed: one was"
            " not saved, read or deleted",
            self._counts,
        )


def _by_result(name: str, meaning: str, counts: Mapping[str, int]) -> CounterMetricFamily:
    family = CounterMetricFamily(name, meaning, labels=["result"])
    for result, count in counts.items():
        family.add_metric([result], count)
    return family


def _labels(finding: Finding) -> Labels:
    subsystem, severity, kind = finding.subsystem, finding.severity, finding.kind
    return finding.node_name, subsystem.value, severity.value, kind.value
