"""The pages of ``reveal ui`` in a real Chromium: the address, filters, a finding and back."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from reveal_analyzer.evidence.endpoint import application
from reveal_analyzer.evidence.live_nodes import LiveNodes
from reveal_cli.kubectl.cluster import Cluster
from reveal_cli.kubectl.cluster_findings import ClusterFindings
from reveal_cli.output_files import jsonl
from reveal_cli.scan_directory import FINDINGS, RECORDING, SUMMARY
from reveal_cli.ui.scan_folder import ScanFolder
from reveal_cli.ui.server import UiServer
from reveal_contract import names
from reveal_contract.finding import Severity
from reveal_contract.runtime.http_endpoints import serve_locally
from support.analyze_command import recording
from support.browser import chromium, program, visit
from support.finding_factory import finding, scan_finding
from support.ledger_node import Times
from support.ledger_stream import StreamedNode
from support.redis_streams import Stream
from support.reports_api import ReportsApi

pytestmark = [
    pytest.mark.skipif(not program(), reason="there is no Chromium"),
    pytest.mark.timeout(120),
]
JOB, HOG = "/train.service", "/hog.service"
CLAIMS = {"a": ("the first claim", Severity.HIGH), "b": ("the second claim", Severity.LOW)}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as running:
        yield running


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[UiServer]:
    """A server of two scans with a finding each."""
    folder = tmp_path_factory.mktemp("scans")
    for name, (claim, severity) in CLAIMS.items():
        _scan(folder / name, claim, severity)
    with UiServer(ScanFolder(folder), 0) as running:
        threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True).start()
        yield running
        running.shutdown()


def _scan(directory: Path, claim: str, severity: Severity) -> None:
    directory.mkdir()
    recording(directory / RECORDING, 30)
    (directory / FINDINGS).write_text(jsonl([replace(scan_finding(claim), severity=severity)]))
    (directory / SUMMARY).write_text(json.dumps({"node": "n1", "slices": {"received": 30}}))


def test_findings_are_filtered_opened_and_left_again(browser: Browser, server: UiServer) -> None:
    with visit(browser, server.url) as opened:
        page = opened.page
        assert "token" not in page.url
        assert page.get_by_text("the first claim").is_visible()
        assert page.get_by_text("the second claim").is_visible()
        page.locator("select[name=severity]").select_option("High")
        page.locator("form button").click()
        assert page.get_by_text("the first claim").is_visible()
        assert page.get_by_text("the second claim").count() == 0
        page.get_by_role("link", name="the first claim").click()
        assert page.get_by_text("the first claim").first.is_visible()
        assert page.get_by_role("heading", name="What to do").is_visible()
        page.go_back()
        assert page.locator("select[name=severity]").input_value() == "High"
        assert opened.errors == []
        own = f"http://127.0.0.1:{server.server_port}/"
        assert [each for each in opened.requests if not each.startswith(own)] == []


@pytest.fixture
def streamed(stream: Stream) -> StreamedNode:
    """A node on which a job loses time to another one, of 100 s."""
    stream.client.hset(names.node_key("default", "n1"), names.STATUS, "{}")
    times = {JOB: Times(run=0.5, cpu={HOG: 0.5}), HOG: Times(run=1.0)}
    node = StreamedNode(stream, times)
    node.send(100)
    return node


@pytest.fixture
def cluster(stream: Stream, streamed: StreamedNode) -> Iterator[UiServer]:
    """A server of a cluster whose analyzer has this node."""
    api = ReportsApi(finding("a", claim="the claim", node_name="n1"), profile="default")
    nodes = LiveNodes(stream.client, "default")
    api.pods["a"] = serve_locally(0, application(None, nodes))
    with UiServer(ClusterFindings(Cluster(api), "reveal-system"), 0) as running:
        threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True).start()
        yield running
        running.shutdown()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_node_is_live(
    browser: Browser, cluster: UiServer, streamed: StreamedNode, scheme: str
) -> None:
    with visit(browser, cluster.url, color_scheme=scheme) as opened:
        page = opened.page
        page.locator("a.tile", has_text="n1").click()
        assert page.get_by_text("100 slices").is_visible()
        assert page.get_by_role("rowheader", name=JOB).is_visible()
        assert opened.grave_problems() == []
        streamed.send(7)
        page.get_by_text("107 slices").wait_for()
        page.get_by_role("button", name="Pause").click()
        streamed.send(5)
        page.wait_for_timeout(2500)
        assert page.get_by_text("107 slices").is_visible()
        page.get_by_role("button", name="Go on").click()
        page.get_by_text("112 slices").wait_for()
        assert page.get_by_text("the claim").is_visible()
        assert opened.errors == []
        assert not opened.is_too_wide


def test_a_browser_without_the_token_gets_nothing(browser: Browser, server: UiServer) -> None:
    with visit(browser, f"http://127.0.0.1:{server.server_port}/") as opened:
        assert "claim" not in opened.page.content()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_list_has_no_serious_problem_for_assistive_programs(
    browser: Browser, server: UiServer, scheme: str
) -> None:
    with visit(browser, server.url, color_scheme=scheme) as opened:
        assert opened.grave_problems() == []
        assert not opened.is_too_wide
