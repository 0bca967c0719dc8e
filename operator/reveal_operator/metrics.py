"""Prometheus metrics of the operator."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    PlatformCollector,
    ProcessCollector,
)
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from reveal_contract.runtime.http_endpoints import build_info

PREFIX = "reveal_operator_"
# seconds: a visit without changes takes microseconds, one with an apply some round trips
_BUCKETS = (0.001, 0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class ScrapedGauges(Collector):
    """Gauges that are read at each scrape: name -> (help text, function)."""

    def __init__(self, gauges: Mapping[str, tuple[str, Callable[[], float]]]) -> None:
        self._gauges = gauges

    def collect(self) -> Iterable[GaugeMetricFamily]:
        yield build_info(f"{PREFIX}build_info")
        for name, (meaning, read) in self._gauges.items():
            yield GaugeMetricFamily(PREFIX + name, meaning, value=read())


class OperatorMetrics:
    """Counters; threads may share it."""

    def __init__(self) -> None:
        registry = self.registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        PlatformCollector(registry=registry)
        GCCollector(registry=registry)
        self._visits = Counter(
            f"{PREFIX}reconcile", "Visits of profiles.", ["result"], registry=registry
        )
        self._seconds = Histogram(
            f"{PREFIX}reconcile_seconds", "A visit.", buckets=_BUCKETS, registry=registry
        )
        self._applies = Counter(
            f"{PREFIX}apply", "Server-side applies.", ["kind", "result"], registry=registry
        )
        self._deletes = Counter(f"{PREFIX}delete", "Objects deleted.", ["kind"], registry=registry)
        self._statuses = Counter(
            f"{PREFIX}status_writes", "Statuses of profiles written.", registry=registry
        )
        self._events = Counter(f"{PREFIX}events", "Events.", ["result"], registry=registry)
        self._nodes = {
            what: Gauge(f"{PREFIX}nodes_{what}", meaning, ["profile"], registry=registry)
            for what, meaning in (
                ("desired", "Nodes that should have a collector."),
                ("reporting", "Nodes whose samples arrive, by the telemetry of the analyzers."),
            )
        }
        for result in ("done", "retried", "failed"):
            self._visits.labels(result)  # rates need the series before its first event

    def watch(self, gauges: Mapping[str, tuple[str, Callable[[], float]]]) -> None:
        """Read these gauges at every scrape."""
        self.registry.register(ScrapedGauges(gauges))

    @contextmanager
    def visit(self) -> Iterator[None]:
        """Measure a visit of a profile; ``visited`` has its result."""
        begun = time.perf_counter()
        try:
            yield
        finally:
            self._seconds.observe(time.perf_counter() - begun)

    def visited(self, result: str) -> None:
        """Count a visit: ``done``, ``retried`` (the API failed), ``failed`` (a defect)."""
        self._visits.labels(result).inc()

    def applied(self, kind: str, result: str) -> None:
        """Count an apply: ``created``, ``changed``, ``unchanged``, ``refused``."""
        self._applies.labels(kind, result).inc()

    def deleted(self, kind: str) -> None:
        """Count a deleted object."""
        self._deletes.labels(kind).inc()

    def status_written(self) -> None:
        """Count a write of a profile's status."""
        self._statuses.inc()

    def nodes(self, profile: str, desired: int | None, reporting: int | None) -> None:
        """Set the nodes of a profile; None where the number is not known."""
        for what, number in (("desired", desired), ("reporting", reporting)):
            if number is not None:
                self._nodes[what].labels(profile).set(number)
            else:
                with suppress(KeyError):
                    self._nodes[what].remove(profile)

    def event(self, result: str) -> None:
        """Count an Event: ``posted``, ``failed``, ``dropped``."""
        self._events.labels(result).inc()
