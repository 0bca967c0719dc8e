"""Prometheus metrics of GPU time: what pods had and what they lost of it, by namespace."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from prometheus_client.core import CounterMetricFamily, Metric
from prometheus_client.registry import Collector

from reveal_analyzer.ledger.gpu_time import GpuHours

_MOST_NAMESPACES = 1000
_OTHERS = "*"  # the namespaces above that number; no namespace has this name


class GpuTimeMetrics(Collector):
    """The GPU-hours of the nodes that this analyzer reads, added up."""

    def __init__(self) -> None:
        self._namespaces: dict[str, GpuHours] = {}

    def add(self, counted: Mapping[str, GpuHours]) -> None:
        """Add the GPU-hours of some seconds of a node, by namespace."""
        for namespace, hours in counted.items():
            is_new = namespace not in self._namespaces
            name = _OTHERS if is_new and len(self._namespaces) >= _MOST_NAMESPACES else namespace
            before = self._namespaces.get(name, GpuHours())
            self._namespaces[name] = before.plus(hours)

    def collect(self) -> Iterator[Metric]:
        allocated, lost = (
            CounterMetricFamily(name, meaning, labels=["namespace"])
            for name, meaning in (
                ("reveal_pod_gpu_hours", "GPU-hours that pods held"),
                ("reveal_pod_lost_gpu_hours", "GPU-hours of these that pods lost by findings"),
            )
        )
        for namespace, hours in list(self._namespaces.items()):
            allocated.add_metric([namespace], hours.allocated)
            lost.add_metric([namespace], hours.lost)
        yield from (allocated, lost)
