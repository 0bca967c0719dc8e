"""``kubectl reveal ui``: reports as a source of findings."""

from __future__ import annotations

import pytest

from reveal_analyzer.evidence.endpoint import application
from reveal_cli.errors import CliError
from reveal_cli.kubectl.cluster import Cluster
from reveal_cli.kubectl.cluster_findings import ClusterFindings
from reveal_cli.time_spans import Span
from reveal_contract.finding import EvidenceRef, FindingKind
from reveal_contract.kube.errors import UnavailableError
from reveal_contract.runtime.http_endpoints import serve_locally
from support.evidence_samples import FixedNodes, MemoryStore, finding, whole_recording
from support.reports_api import ReportsApi

KEPT = finding(100, end=130, id="cpu-1", evidence_ref=EvidenceRef("Redis", "cpu-1"),
               victims=("ml/train-0",))  # fmt: skip
HINT = finding(100, id="hint", kind=FindingKind.CONFIGURATION)


class SampledNode(FixedNodes):
    """A node whose stream has a recording."""

    def recording(self, node: str, since_ns: int) -> bytes:
        return super().recording(node, since_ns).removesuffix(b"0")


@pytest.fixture
def api() -> ReportsApi:
    return ReportsApi(KEPT, HINT)


def source_of(api: ReportsApi) -> ClusterFindings:
    return ClusterFindings(Cluster(api), "reveal-system")


def test_reports_are_listed_with_their_jobs(api: ReportsApi) -> None:
    listing = source_of(api).listing()
    assert {each.key: each.job for each in listing.findings} == {
        "p-n1-cpu-1": "ml/train", "p-n1-hint": "",
    }  # fmt: skip


def test_nodes_of_analyzers_are_listed_and_ranked(api: ReportsApi) -> None:
    """Without an analyzer the findings are listed all the same."""
    source = source_of(api)
    listing = source.listing()
    assert (list(listing.nodes), len(listing.findings)) == ([], 2)
    [warning] = listing.warnings
    assert "nodes without a finding are not known" in warning
    recording = whole_recording(KEPT, 200)
    api.pods["a"] = serve_locally(0, application(None, SampledNode("n1", recording)))
    assert list(source.listing().nodes) == ["n1"]
    ranking = source.nodes.ranking("n1", Span("60", "120"))
    assert ranking.ranking[0].metric in {"cpu.pressure.some", "cpu.procs_running"}


def test_the_page_has_the_samples_of_an_analyzer(api: ReportsApi) -> None:
    store = MemoryStore(kept={"cpu-1": whole_recording(KEPT, 200)})
    api.pods["a"] = serve_locally(0, application(store, FixedNodes()))
    assert "cpu.pressure.some" in source_of(api).page("p-n1-cpu-1")


def test_a_hint_has_no_samples(api: ReportsApi) -> None:
    with pytest.raises(CliError, match="is about the configuration"):
        source_of(api).page("p-n1-hint")


def test_a_cluster_that_is_away_is_a_sentence(api: ReportsApi) -> None:
    api.errors["LIST"] = UnavailableError("refused")
    with pytest.raises(CliError, match="cannot be reached"):
        source_of(api).listing()
