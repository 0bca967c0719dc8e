"""What the chart says to the Prometheus Operator, against that project's own definitions."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster import binaries, golang
from support.api_server import Kube
from support.chart_releases import Cluster
from support.helm_chart import CHART, NAMESPACE

# its Go module holds the definitions of its kinds
MODULE = "github.com/prometheus-operator/prometheus-operator@v0.85.0"
GO = "1.24.0"
KINDS = ("servicemonitors", "podmonitors", "prometheusrules")


@pytest.fixture(scope="module")
def monitored(releases: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster that serves the kinds of the Prometheus Operator."""
    output = golang.find(GO, binaries.cache().parent).run(
        "mod", "download", "-json", MODULE, folder=tmp_path_factory.mktemp("nowhere"),
        check="the Prometheus Operator's module cannot be fetched",
    )  # fmt: skip
    folder = Path(json.loads(output)["Dir"]) / "example" / "prometheus-operator-crd"
    releases.kube.install(*(folder / f"monitoring.coreos.com_{kind}.yaml" for kind in KINDS))
    yield releases
    for kind in KINDS:
        name = f"{kind}.monitoring.coreos.com"
        releases.kube.delete(
            {
                "apiVersion": "apiextensions.k8s.io/v1",
                "kind": "CustomResourceDefinition",
                "metadata": {"name": name},
            }
        )


@pytest.mark.parametrize("values", ["service-monitor", "pod-monitor"])
def test_monitors_and_rules_fit_the_schema(monitored: Cluster, values: str) -> None:
    path = CHART / "ci" / f"{values}-values.yaml"
    ours = [
        each
        for each in monitored.helm.render("--values", path)
        if each["apiVersion"].startswith("monitoring.coreos.com/")
    ]
    assert len(ours) == 2
    kube: Kube = monitored.kube
    kube.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    # strict: a field that it does not know is refused
    assert len(kube.apply(ours, dry_run=True)) == 2


def test_a_release_with_all_monitoring_objects_installs(monitored: Cluster) -> None:
    monitored.wipe()
    monitored.upgrade(
        "--values", CHART / "ci" / "service-monitor-values.yaml",
        "--set", "grafanaDashboard.enabled=true",
    )  # fmt: skip
    assert monitored.kube.get("monitoring.coreos.com/v1", "ServiceMonitor", "reveal", NAMESPACE)
    monitored.wipe()
