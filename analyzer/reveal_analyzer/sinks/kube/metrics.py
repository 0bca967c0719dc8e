"""What a Prometheus server is told of the Kubernetes sink."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

_REPORTS = ("created", "updated", "resolved", "invalid", "summed", "dropped")
_EVENTS = ("posted", "repeated", "counted", "limited", "dropped")
_GAUGES = {
    "up": ("reveal_kubernetes_up", "1 while the Kubernetes API takes what it is told"),
    "waiting": ("reveal_reports_waiting", "Reports that wait for the Kubernetes API"),
}


class SinkNumbers(Collector):
    """The counts a ``KubeSink`` keeps anyway; all results are there from the start."""

    def __init__(self, figures: Callable[[], Mapping[str, int]]) -> None:
        self._figures = figures

    def collect(self) -> Iterator[Metric]:
        figures = self._figures()
        for key, (name, meaning) in _GAUGES.items():
            yield GaugeMetricFamily(name, meaning, value=figures[key])
        yield _by_result(
            "reveal_report_writes",
            "Writes of AnomalyReports; summed: told by a summary of too many, not one by one",
            {result: figures.get(f"report {result}", 0) for result in _REPORTS},
        )
        yield _by_result(
            "reveal_events",
            "Events; repeated: had been told, counted: part of a series, limited: too many of one"
            " subject, dropped: not taken by the API",
            {result: figures.get(f"event {result}", 0) for result in _EVENTS},
        )
        yield CounterMetricFamily(
            "reveal_spool_rows_corrupt",
            "Rows of an earlier run that could not be read",
            value=figures["corrupt"],
        )


def _by_result(name: str, meaning: str, counts: Mapping[str, int]) -> CounterMetricFamily:
    family = CounterMetricFamily(name, meaning, labels=["result"])
    for result, count in counts.items():
        family.add_metric([result], count)
    return family
