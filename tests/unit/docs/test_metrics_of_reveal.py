"""The page of Reveal's own metrics names every series of the three processes, and no other."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import cast

import pytest
from prometheus_client.metrics_core import Metric

from reveal_analyzer.ledger.gpu_time_metrics import GpuTimeMetrics
from reveal_analyzer.ledger.subject_metrics import SubjectMetrics
from reveal_analyzer.sinks.metrics import KubeSinkMetrics, Metrics, OtlpMetrics
from reveal_analyzer.sinks.otlp.client import OtlpClient
from reveal_analyzer.sinks.otlp.sink import OtlpSink
from reveal_collector.collector import Collector
from reveal_collector.exporter.metrics import HealthExporter
from reveal_collector.exporter.samples import LEFT_OUT
from reveal_contract.settings import CollectorSettings
from reveal_operator.app import Operator, OperatorOptions
from reveal_operator.kube import KubernetesClient
from reveal_operator.spec import Defaults
from support.ledger_node import Times, accounts_of

PAGE = Path(__file__).parents[3] / "docs/reference/metrics-of-reveal.md"
_ROW = re.compile(r"^\| `(reveal_\w+)` \| (\w+) \|([^|]*)\|", re.MULTILINE)


@pytest.fixture(scope="module")
def families() -> list[Metric]:
    """Return what a scrape of each process gives, but for the client library's own series."""
    analyzer = Metrics()
    analyzer.watch(lambda: defaultdict(int))
    analyzer.watch_states(defaultdict(int))
    analyzer.registry.register(KubeSinkMetrics(lambda: defaultdict(int)))
    analyzer.registry.register(OtlpMetrics(OtlpSink(OtlpClient("http://n"), "p").counts))
    analyzer.registry.register(subject_metrics())
    analyzer.registry.register(GpuTimeMetrics())
    collector = Collector(CollectorSettings(node="n", redis_url="", include=("loadavg",)), [])
    operator = Operator(
        cast(KubernetesClient, None), OperatorOptions(Defaults("n", "collector", "analyzer"))
    )
    collector.start()
    try:
        health = list(HealthExporter(collector).collect())
    finally:
        collector.stop()
    registries = (analyzer.registry.collect(), operator._metrics.registry.collect())
    found = [family for some in registries for family in some] + health
    return [family for family in found if family.name.startswith("reveal_")]


def subject_metrics() -> SubjectMetrics:
    """Return the metrics of a node with a single subject."""
    metrics = SubjectMetrics(1)
    metrics.add("n1", accounts_of({"/job": Times(run=0.5)}))
    return metrics


def types_by_name(families: Iterable[Metric]) -> dict[str, str]:
    """Return the series by the name that a query uses, with their types."""
    ending = {"counter": "_total"}
    return {family.name + ending.get(family.type, ""): family.type for family in families}


def test_the_page_has_every_series_with_its_type(families: list[Metric]) -> None:
    page = {name: kind for name, kind, _ in _ROW.findall(PAGE.read_text())}
    assert page.pop(LEFT_OUT) == "gauge"  # only where sampled values are exposed
    assert page == types_by_name(families)


def test_the_page_has_the_labels_of_every_series_that_has_samples(families: list[Metric]) -> None:
    page = {
        name: set(re.findall(r"`(\w+)`", labels))
        for name, _, labels in _ROW.findall(PAGE.read_text())
    }
    names = dict(zip(types_by_name(families), families, strict=True))
    for name, family in names.items():
        for sample in family.samples:
            if not sample.name.endswith(("_bucket", "_created")):
                assert set(sample.labels) == page[name], name
