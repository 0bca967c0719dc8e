"""``kubectl reveal top``: which node of which profile is shown."""

from __future__ import annotations

import pytest

from reveal_analyzer.evidence.endpoint import application
from reveal_cli.errors import ERROR, CliError
from reveal_cli.kubectl import cluster, top
from reveal_cli.kubectl.__main__ import main
from reveal_contract.kube.errors import ForbiddenError
from reveal_contract.runtime.http_endpoints import serve_locally
from support.evidence_samples import FixedNodes
from support.reports_api import ReportsApi


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> ReportsApi:
    """A cluster with two profiles, whose analyzers know one node."""
    found = ReportsApi()
    found.profiles = ["p", "q"]
    found.pods["a"] = serve_locally(0, application(None, FixedNodes("n1")))
    monkeypatch.setattr(top, "connect", lambda _: cluster.Cluster(found))
    return found


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """Return the only line of the error."""
    assert main(["top", *words]) == ERROR
    [line] = capsys.readouterr().err.splitlines()
    return line


def test_the_first_profile_that_has_the_node_is_taken(api: ReportsApi) -> None:
    assert top.stream_of(cluster.Cluster(api), "n1", "", "reveal-system").node == "n1"
    with pytest.raises(CliError, match="no RevealProfile has a node n2"):
        top.stream_of(cluster.Cluster(api), "n2", "", "reveal-system")


def test_errors_are_sentences_with_the_remedy(
    api: ReportsApi, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "there is no RevealProfile r" in refused(capsys, "n1", "--profile", "r")
    assert "n2 has sent nothing" in refused(capsys, "n2", "--profile", "p")
    other = refused(capsys, "n1", "--profile", "p", "--reveal-namespace", "other")
    assert "give the namespace of Reveal with --reveal-namespace" in other
    api.errors["FORWARD"] = ForbiddenError("no", 403)
    assert "the Role reveal-samples" in refused(capsys, "n1")
    api.profiles = []
    assert "nothing is watched in this cluster" in refused(capsys, "n1")
