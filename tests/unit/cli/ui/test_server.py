"""The server of ``reveal ui``: who may read it, and what it serves."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPResponse

import pytest

from reveal_cli.errors import CliError
from reveal_cli.progress import ProgressView
from reveal_cli.ranking import SpanRanking
from reveal_cli.time_spans import Span
from reveal_cli.ui.server import COOKIE, UiServer
from reveal_cli.ui.source import ListedFinding, Listing, NodeSource
from support.finding_factory import finding


class WatchedNode:
    """A node that is watched, and others that are not."""

    def view(self, node: str) -> ProgressView:
        if node != "n1":
            raise CliError(f"node {node} has sent nothing")
        return ProgressView(node, "watching", 1.0, 2.0, 77)

    def ranking(self, node: str, asked: Span) -> SpanRanking:
        return SpanRanking(f"{node} from {asked.begin}", asked.end, ())


@dataclass
class Findings:
    """A source with one finding; ``error`` is raised by its methods."""

    title: str = "here"
    error: str = ""
    nodes: NodeSource | None = None
    asked: list[str] = field(default_factory=list)

    def listing(self) -> Listing:
        self._fail()
        return Listing([ListedFinding("k", finding("a"), "", "")], ["n1"])

    def page(self, key: str) -> str:
        self._fail()
        self.asked.append(key)
        return "<!doctype html><title>finding</title>"

    def _fail(self) -> None:
        if self.error:
            raise CliError(self.error)


@pytest.fixture
def source() -> Findings:
    return Findings()


@pytest.fixture
def server(source: Findings) -> Iterator[UiServer]:
    with UiServer(source, 0) as running:
        threading.Thread(target=running.serve_forever, args=(0.01,), daemon=True).start()
        yield running
        running.shutdown()


def get(server: UiServer, path: str, **headers: str) -> tuple[HTTPResponse, str]:
    connection = HTTPConnection("127.0.0.1", server.server_port, timeout=10)
    connection.request("GET", path, headers=headers)
    response = connection.getresponse()
    return response, response.read().decode()


def known(server: UiServer, path: str) -> tuple[HTTPResponse, str]:
    return get(server, path, Cookie=f"{COOKIE}={server.token}")


def test_the_printed_address_lets_a_browser_in(server: UiServer) -> None:
    response, _ = get(server, server.url.partition(str(server.server_port))[2])
    assert (response.status, response.headers["Location"]) == (303, "/")
    cookie = response.headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    response, page = get(server, "/", Cookie=cookie.partition(";")[0])
    assert response.status == 200
    assert "1 open finding" in page
    assert response.headers["Content-Security-Policy"].startswith("default-src 'none'")


@pytest.mark.parametrize("headers", [{}, {"Cookie": f"{COOKIE}=wrong"}, {"Cookie": "=;=;"}])
@pytest.mark.parametrize(
    "path", ["/", "/finding?key=k", "/style.css", "/?token=wrong", "/?token=\u00e9"]
)
def test_without_the_token_nothing_is_served(
    server: UiServer, source: Findings, path: str, headers: dict[str, str]
) -> None:
    response, text = get(server, path.encode("ascii", "ignore").decode(), **headers)
    assert response.status == 403
    assert text == "open the address that `reveal ui` printed\n"
    assert source.asked == []


def test_a_page_of_another_name_cannot_reach_it(server: UiServer) -> None:
    response, _ = get(server, "/", Host="evil.example", Cookie=f"{COOKIE}={server.token}")
    assert response.status == 403


def test_pages_of_findings_and_the_style_are_served(server: UiServer, source: Findings) -> None:
    response, page = known(server, "/finding?key=a%23b")
    assert (response.status, source.asked) == (200, ["a#b"])
    assert "finding" in page
    response, style = known(server, "/style.css")
    assert response.headers["Content-Type"].startswith("text/css")
    assert ".tile" in style
    assert known(server, "/other")[0].status == 404


def test_an_error_of_the_source_is_a_sentence(server: UiServer, source: Findings) -> None:
    source.error = "the <store> is away"
    for path in ("/", "/finding?key=k"):
        response, page = known(server, path)
        assert response.status == 502
        assert "the &lt;store&gt; is away" in page


def test_a_used_port_is_an_error(server: UiServer, source: Findings) -> None:
    with pytest.raises(OSError, match="in use"):
        UiServer(source, server.server_port)


def test_a_node_has_a_page_its_state_and_a_ranking(server: UiServer, source: Findings) -> None:
    assert known(server, "/node?name=n1")[0].status == 404
    source.nodes = WatchedNode()
    response, page = known(server, "/node?name=n1")
    assert "77 slices" in page
    assert "script-src 'self'" in str(response.getheader("Content-Security-Policy"))
    _, state = known(server, "/node/now?name=n1")
    assert "77 slices" in state
    assert "<html" not in state
    _, ranking = known(server, "/node?name=n1&from=03:10&to=03:15")
    assert "n1 from 03:10 to 03:15" in ranking


def test_what_is_not_known_of_a_node_is_a_sentence(server: UiServer, source: Findings) -> None:
    source.nodes = WatchedNode()
    assert "node n2 has sent nothing" in known(server, "/node?name=n2")[1]
    assert "is not FROM/TO" in known(server, "/node?name=n1&from=x&to=y")[1]


def test_the_script_of_a_live_page_is_served(server: UiServer) -> None:
    response, text = known(server, "/live.js")
    assert str(response.getheader("Content-Type")).startswith("text/javascript")
    assert "now-state" in text
