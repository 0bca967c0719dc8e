"""The metrics of GPU time: added up by namespace, with a bound."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry

from reveal_analyzer.ledger import gpu_time_metrics as module
from reveal_analyzer.ledger.gpu_time import GpuHours
from reveal_analyzer.ledger.gpu_time_metrics import GpuTimeMetrics


def scraped(metrics: GpuTimeMetrics) -> dict[str, dict[str, float]]:
    """Return the GPU-hours by the name of the counter and namespace."""
    registry = CollectorRegistry()
    registry.register(metrics)
    return {
        family.name: {each.labels["namespace"]: each.value for each in family.samples}
        for family in registry.collect()
    }


def test_the_hours_of_all_nodes_are_added() -> None:
    metrics = GpuTimeMetrics()
    metrics.add({"ml": GpuHours(2.0, 0.5), "dev": GpuHours(1.0)})
    metrics.add({"ml": GpuHours(1.0, 0.25)})
    assert scraped(metrics) == {
        "reveal_pod_gpu_hours": {"ml": 3.0, "dev": 1.0},
        "reveal_pod_lost_gpu_hours": {"ml": 0.75, "dev": 0.0},
    }


def test_namespaces_above_the_limit_are_added_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_NAMESPACES", 2)
    metrics = GpuTimeMetrics()
    metrics.add({f"n{number}": GpuHours(1.0, 0.5) for number in range(5)})
    metrics.add({"n0": GpuHours(1.0), "n4": GpuHours(1.0)})
    assert scraped(metrics)["reveal_pod_gpu_hours"] == {"n0": 2.0, "n1": 1.0, "*": 4.0}
