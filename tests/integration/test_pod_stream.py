"""``kubectl reveal top`` of a node in a real Redis, through the endpoint of analyzers."""

from __future__ import annotations

import json

import pytest

from reveal_analyzer.evidence.endpoint import application
from reveal_analyzer.evidence.live_nodes import LiveNodes
from reveal_cli.errors import DONE
from reveal_cli.kubectl import cluster, explain, top
from reveal_cli.kubectl.__main__ import main
from reveal_cli.kubectl.pod_samples import AnalyzerPods
from reveal_cli.kubectl.pod_stream import PodNodeStream
from reveal_contract import names
from reveal_contract.runtime.http_endpoints import serve_locally
from support.ledger_node import Times
from support.ledger_stream import send_seconds
from support.redis_streams import Stream
from support.reports_api import ReportsApi

JOB, HOG = "/train.service", "/hog.service"
STATE = {"ledger": {"tier": 3}}


@pytest.fixture
def api(stream: Stream) -> ReportsApi:
    """A cluster with an analyzer, and 100 s of a node on which a job loses time to another one."""
    stream.client.hset(names.node_key("default", "n1"), names.STATUS, json.dumps(STATE))
    times = {JOB: Times(run=0.5, cpu={HOG: 0.5}), HOG: Times(run=1.0)}
    send_seconds(stream, times, 100)
    found = ReportsApi(profile="default")
    nodes = LiveNodes(stream.client, "default")
    found.pods["a"] = serve_locally(0, application(None, nodes))
    return found


def stream_of(api: ReportsApi, node: str) -> PodNodeStream:
    return PodNodeStream(node, AnalyzerPods(api, "default", "reveal-system"))


def test_slices_and_what_was_published_are_those_of_the_node(api: ReportsApi) -> None:
    node = stream_of(api, "n1")
    slices = node.since(0)
    assert len(slices) == 100
    later = node.since(slices[-11][0].start_ns)
    assert [message.sequence for message, _ in later] == [m.sequence for m, _ in slices[-10:]]
    assert (node.state(), node.announced().subjects()) == (STATE, ())
    assert node.since(slices[-1][0].start_ns) == []


def test_an_unknown_node_is_a_sentence_with_those_that_are_known(api: ReportsApi) -> None:
    node = stream_of(api, "n2")
    assert node.since(0) == []
    assert str(node.why_empty()).endswith("last two minutes; nodes of the profile: n1")
    assert (node.is_known, stream_of(api, "n1").is_known) == (False, True)


def test_the_frame_is_that_of_the_node(
    api: ReportsApi, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(top, "connect", lambda _: cluster.Cluster(api))
    assert main(["top", "n1"]) == DONE
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("reveal · n1")
    assert any(JOB in line and HOG in line for line in lines)


def test_metrics_of_a_span_are_ranked(
    api: ReportsApi, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(explain, "connect", lambda _: cluster.Cluster(api))
    assert main(["explain", "n1", "--span", "60/90", "--span", "0/10", "-o", "json"]) == DONE
    first, second = map(json.loads, capsys.readouterr().out.splitlines())
    assert first["ranking"]
    assert first["from"] > second["from"]
    assert main(["explain", "n1", "--profile", "default", "--span", "60/90"]) == DONE
    assert "METRIC" in capsys.readouterr().out
