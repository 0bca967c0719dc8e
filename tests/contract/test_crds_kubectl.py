"""The output of kubectl at 120 columns against a real API server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from cluster.plane import ControlPlane
from reveal_contract.kube import names
from reveal_contract.kube.anomaly_report import report
from support import finding_factory, goldens
from support.api_server import Kube
from support.example_cluster import PROFILES, WATCHED, ExampleCluster, compare

WIDTH = 120
# commands that list objects, and whether the output must fit into a terminal
TABLES = {
    "get_rvp": ("get rvp", True),
    "get_rvp_wide": ("get rvp -o wide", False),
    "get_anomalyreports": ("get anomalyreports", True),
    "get_anomalyreports_wide": ("get anomalyreports -o wide", False),
    "get_anomalies_sorted": ("get anomalies --sort-by=.status.lastSeenTime", True),
    "get_reveal": ("get reveal", False),
    "get_events": ("get events --all-namespaces --sort-by=.eventTime", False),
}
REPORT = report(finding_factory.cpu_contention(0), WATCHED, 1).name
# commands that describe an object
DETAILS = {
    "describe_rvp": f"describe rvp {WATCHED}",
    "describe_anomalyreport": f"describe anomalyreport {REPORT}",
    "events": "events --for=node/gpu-07",
    "events_of_pod": "events --for=pod/reindex-5d9f7 --namespace=batch",
    "explain_rvp": "explain rvp",
    "explain_rvp_collector": "explain rvp.spec.collector",
    "explain_anomalies_status": "explain anomalies.status",
    "explain_anomalies_kind": "explain anomalies.spec.kind",
}
OPEN = "get_open"


@pytest.fixture(scope="module")
def cluster(api: Kube, control_plane: ControlPlane) -> Iterator[ExampleCluster]:
    example = ExampleCluster(api, control_plane)
    yield example
    example.clear()


@pytest.mark.parametrize("golden", TABLES)
def test_a_table(cluster: ExampleCluster, golden: str) -> None:
    command, fits = TABLES[golden]
    output = cluster.look(*command.split())
    compare(golden, command, output)
    if fits:
        assert max(map(len, output.splitlines())) <= WIDTH


@pytest.mark.parametrize("golden", DETAILS)
def test_a_detail(cluster: ExampleCluster, golden: str) -> None:
    command = DETAILS[golden]
    compare(golden, command, cluster.read(*command.split()))


def test_every_profile_and_report_is_a_line(cluster: ExampleCluster) -> None:
    assert len(cluster.look("get", "rvp", "--no-headers").splitlines()) == len(PROFILES)
    assert len(cluster.look("get", "anomaly", "--no-headers").splitlines()) == 4


def test_open_reports_are_selected_by_field_and_by_label(cluster: ExampleCluster) -> None:
    command = "get anomalies --field-selector=status.state=Open"
    by_field = cluster.look(*command.split())
    compare(OPEN, command, by_field)
    assert "Resolved" not in by_field
    assert by_field == cluster.look("get", "anomalies", only=f"{names.LABEL_STATE}=Open")


def test_every_golden_belongs_to_a_command() -> None:
    kept = {path.stem for path in (goldens.FIXTURES / "kubectl").iterdir()}
    assert kept == {*TABLES, *DETAILS, OPEN}
