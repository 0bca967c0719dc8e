"""An HTTP server on 127.0.0.1 for one user: who has the printed address, with its token."""

from __future__ import annotations

import hmac
import secrets
from argparse import ArgumentTypeError
from http import HTTPStatus
from http.cookies import CookieError, SimpleCookie
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.resources import files
from typing import TypeAlias
from urllib.parse import parse_qs, urlsplit

from reveal_cli.errors import CliError
from reveal_cli.page.markup import Markup, element
from reveal_cli.time_spans import span
from reveal_cli.ui.finding_rows import worst_first
from reveal_cli.ui.frame import page
from reveal_cli.ui.index_page import index_page
from reveal_cli.ui.node_page import no_state, node_page, ranked, state_of
from reveal_cli.ui.selection import Selection
from reveal_cli.ui.source import NodeSource, Source

COOKIE = "reveal-token"
HTML, CSS, TEXT = "text/html; charset=utf-8", "text/css; charset=utf-8", "text/plain; charset=utf-8"
SCRIPT = "text/javascript; charset=utf-8"
_POLICY = (
    "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none';"
    " frame-ancestors 'none'"
)
_LIVE_POLICY = f"{_POLICY}; script-src 'self'; connect-src 'self'"
_CLIENT_SECONDS = 30.0

Query: TypeAlias = "dict[str, list[str]]"


class UiServer(ThreadingHTTPServer):
    """Serves a source; ``url`` is the address to open, which has the token.

    Raises ``OSError`` where the port is in use.
    """

    daemon_threads = True

    def __init__(self, source: Source, port: int) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.source, self.token = source, secrets.token_urlsafe(24)
        self.style = "".join(
            _asset(package, file)
            for package, file in (("reveal_cli.page", "style.css"), ("reveal_cli.ui", "ui.css"))
        )

    @property
    def url(self) -> str:
        """The address to open."""
        return f"http://127.0.0.1:{self.server_port}/?token={self.token}"

    @property
    def hosts(self) -> frozenset[str]:
        """What a request may name as its host: pages of other names must not reach it."""
        return frozenset(f"{name}:{self.server_port}" for name in ("127.0.0.1", "localhost"))


class _Handler(BaseHTTPRequestHandler):
    server: UiServer
    timeout = _CLIENT_SECONDS
    server_version, sys_version = "reveal", ""

    def do_GET(self) -> None:
        """Answer a request; nobody without the token gets anything."""
        address = urlsplit(self.path)
        query = parse_qs(address.query)
        if self.headers.get("Host", "") not in self.server.hosts:
            self._send(HTTPStatus.FORBIDDEN, TEXT, "this server has another name\n")
        elif self._is_token(query.get("token", [""])[0]):
            self._let_in()
        elif not self._is_token(self._cookie()):
            self._send(HTTPStatus.FORBIDDEN, TEXT, "open the address that `reveal ui` printed\n")
        else:
            self._answer(address.path, query)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing: addresses may have the token."""

    def _answer(self, path: str, query: Query) -> None:
        source = self.server.source
        try:
            if path == "/":
                html = index_page(
                    source.title,
                    source.listing(),
                    Selection.of(query),
                    watched=source.nodes is not None,
                )
                self._send(HTTPStatus.OK, HTML, html, _POLICY)
            elif path.startswith("/node") and source.nodes is not None:
                self._answer_node(path, query, source.nodes)
            elif path == "/finding":
                # the page has a policy of its own, by the digests of its style and script
                self._send(HTTPStatus.OK, HTML, source.page(query.get("key", [""])[0]))
            elif path == "/style.css":
                self._send(HTTPStatus.OK, CSS, self.server.style)
            elif path == "/live.js":
                self._send(HTTPStatus.OK, SCRIPT, _asset("reveal_cli.ui", "live.js"))
            else:
                self._send(HTTPStatus.NOT_FOUND, TEXT, "there is no such page\n")
        except CliError as error:
            self._send(HTTPStatus.BAD_GATEWAY, HTML, _error_page(str(error)), _POLICY)

    def _answer_node(self, path: str, query: Query, nodes: NodeSource) -> None:
        """Answer with the page of a node, or with its state alone."""
        given = {field: query.get(field, [""])[0] for field in ("name", "from", "to")}
        state = _state(nodes, given["name"])
        if path == "/node/now":
            self._send(HTTPStatus.OK, HTML, state)
            return
        listed = self.server.source.listing().findings
        own = [each for each in listed if each.finding.node_name == given["name"]]
        span = given["from"], given["to"]
        result = _ranking(nodes, given["name"], span) if all(span) else None
        html = node_page(given["name"], state, sorted(own, key=worst_first), span, result)
        self._send(HTTPStatus.OK, HTML, html, _LIVE_POLICY)

    def _let_in(self) -> None:
        """Keep the token in a cookie, and leave it out of the address."""
        self.send_response(HTTPStatus.SEE_OTHER)
        self.send_header("Location", "/")
        self.send_header(
            "Set-Cookie", f"{COOKIE}={self.server.token}; HttpOnly; SameSite=Strict; Path=/"
        )
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _is_token(self, text: str) -> bool:
        return hmac.compare_digest(text.encode(errors="replace"), self.server.token.encode())

    def _cookie(self) -> str:
        try:
            found = SimpleCookie(self.headers.get("Cookie", "")).get(COOKIE)
        except CookieError:
            return ""
        return found.value if found else ""

    def _send(self, status: HTTPStatus, content: str, text: str, policy: str = "") -> None:
        data = text.encode()
        self.send_response(status)
        headers = {
            "Content-Type": content,
            "Content-Length": f"{len(data)}",
            "Cache-Control": "no-store",
            "Referrer-Policy": "no-referrer",
            "X-Content-Type-Options": "nosniff",
            "X-Frame-Options": "DENY",
        }
        if policy:
            headers["Content-Security-Policy"] = policy
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)


def _state(nodes: NodeSource, node: str) -> Markup:
    try:
        return state_of(nodes.view(node))
    except CliError as error:
        return no_state(str(error))


def _ranking(nodes: NodeSource, node: str, asked: tuple[str, str]) -> Markup:
    try:
        return ranked(nodes.ranking(node, span("/".join(asked))))
    except (CliError, ArgumentTypeError) as error:
        return no_state(str(error))


def _error_page(sentence: str) -> str:
    back = element("p", element("a", "All findings", href="/"))
    content = element("main", element("h1", "It did not work"), element("p", sentence), back)
    return page("Reveal: error", content)


def _asset(package: str, file: str) -> str:
    return files(package).joinpath(file).read_text("utf-8")
