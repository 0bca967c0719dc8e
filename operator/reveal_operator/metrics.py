"""What the operator tells Prometheus about itself."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager

from prometheus_client import (
    CollectorRegistry,
    Counter,
    GCCollector,
    Histogram,
    PlatformCollector,
    ProcessCollector,
)
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from reveal_contract.runtime.http_endpoints import build_info

PREFIX = "reveal_operator_"
# seconds: a visit that finds nothing to do takes microseconds, one that applies a few round trips
_BUCKETS = (0.001, 0.005, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)


class Gauges(Collector):
    """Numbers that are asked for at the scrape: by name, what it is and how to get it."""

    def __init__(self, asked: Mapping[str, tuple[str, Callable[[], float]]]) -> None:
        self._asked = asked

    def collect(self) -> Iterable[GaugeMetricFamily]:
        yield build_info(f"{PREFIX}build_info")
        for name, (told, ask) in self._asked.items():
            yield GaugeMetricFamily(PREFIX + name, told, value=ask())


class Metrics:
    """Counters of what was done; threads may share it."""

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
        for result in ("done", "retried", "failed"):
            self._visits.labels(result)  # so that rates exist before the first one

    def watch(self, asked: Mapping[str, tuple[str, Callable[[], float]]]) -> None:
        """Ask for these at every scrape."""
        self.registry.register(Gauges(asked))

    @contextmanager
    def visit(self) -> Iterator[None]:
        """Times a visit of a profile; ``visited`` says how it went."""
        begun = time.perf_counter()
        try:
            yield
        finally:
            self._seconds.observe(time.perf_counter() - begun)

    def visited(self, result: str) -> None:
        """``done``, ``retried`` (the API server would not now), ``failed`` (a defect of ours)."""
        self._visits.labels(result).inc()

    def applied(self, kind: str, result: str) -> None:
        """``created``, ``changed``, ``unchanged``, ``refused``."""
        self._applies.labels(kind, result).inc()

    def deleted(self, kind: str) -> None:
        self._deletes.labels(kind).inc()

    def status_written(self) -> None:
        self._statuses.inc()

    def event(self, result: str) -> None:
        """``posted``, ``failed``, ``dropped``."""
        self._events.labels(result).inc()
