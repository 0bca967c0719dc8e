"""The endpoint of samples, over HTTP."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from http.client import HTTPConnection
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest
import redis

from reveal_analyzer.evidence.endpoint import application
from reveal_contract.recording import RecordingError
from reveal_contract.runtime.http_endpoints import serve_locally
from support.evidence_samples import FixedNodes, MemoryHistory, MemoryStore

if TYPE_CHECKING:
    from wsgiref.types import WSGIApplication


@dataclass
class AwayStore(MemoryStore):
    """A store that fails as ``error`` says."""

    error: Exception | None = None

    def get(self, name: str) -> bytes | None:
        if self.error is not None:
            raise self.error
        return super().get(name)


def answer(
    store: MemoryStore | None, path: str, nodes: FixedNodes | None = None
) -> tuple[int, bytes]:
    return answer_of(application(store, nodes or FixedNodes()), path)


def answer_of(app: WSGIApplication, path: str) -> tuple[int, bytes]:
    port = serve_locally(0, app)
    connection = HTTPConnection("127.0.0.1", port, timeout=10)
    connection.request("GET", path)
    response = connection.getresponse()
    return response.status, response.read()


def test_the_recording_of_a_finding_is_served() -> None:
    store = MemoryStore(kept={"cpu-1": bytes(range(256))})
    assert answer(store, "/evidence/cpu-1") == (200, bytes(range(256)))


@pytest.mark.parametrize("path", ["/evidence/cpu-2", "/evidence/..%2Fcpu-1", "/evidence/"])
def test_what_is_not_kept_is_not_found(path: str) -> None:
    status, text = answer(MemoryStore(kept={"cpu-1": b"x"}), path)
    assert (status, text) == (404, b"there are no samples of this finding\n")


def test_without_a_store_there_are_no_samples_of_findings() -> None:
    assert answer(None, "/evidence/cpu-1") == (404, b"there are no samples of this finding\n")


@pytest.mark.parametrize("path", ["/", "/metrics", "/evidence", "/other/n1", "/%ff"])
def test_other_paths_are_not_found(path: str) -> None:
    assert answer(MemoryStore(), path)[0] == 404


def test_the_stream_of_a_node_is_served_from_a_time_on() -> None:
    nodes = FixedNodes("zone/n\u00e4", b"slices since ")
    name = quote("zone/n\u00e4", safe="")
    assert answer(None, f"/slices/{name}?since=17", nodes) == (200, b"slices since 17")
    assert answer(None, f"/slices/{name}", nodes) == (200, b"slices since 0")
    assert answer(None, f"/announced/{name}", nodes) == (200, b'{"status": "{}"}')
    assert answer(None, "/slices/n2", nodes) == (404, b"n2 has sent nothing\n")
    assert answer(None, f"/slices/{name}?since=x", nodes)[0] == 400


@pytest.mark.parametrize(
    ("error", "status"), [(redis.ConnectionError("gone"), 503), (RecordingError("damaged"), 500)]
)
def test_a_store_that_fails_is_an_error(error: Exception, status: int) -> None:
    found, text = answer(AwayStore(error=error), "/evidence/cpu-1")
    assert found == status
    assert str(error).encode() in text


def test_the_client_closes_first() -> None:
    """A proxy that forwards the port loses what it has not passed on when the server closes."""
    port = serve_locally(0, application(None, FixedNodes("n1", bytes(1 << 20))))
    with socket.create_connection(("127.0.0.1", port), 10) as connection:
        connection.sendall(b"GET /slices/n1 HTTP/1.0\r\n\r\n")
        head = b""
        while b"\r\n\r\n" not in head:
            head += connection.recv(1)
        length = (1 << 20) + len("0")
        assert f"Content-Length: {length}\r\n".encode() in head
        while length:
            length -= len(connection.recv(length))
        connection.settimeout(0.2)
        with pytest.raises(TimeoutError):
            connection.recv(1)


def test_an_hour_of_a_node_is_served() -> None:
    history = MemoryHistory({("zone/n\u00e4", 7): b"parts"})

    def asked(path: str, kept: MemoryHistory | None) -> tuple[int, bytes]:
        return answer_of(application(None, FixedNodes(), kept), path)

    name = quote("zone/n\u00e4", safe="")
    assert asked(f"/history/{name}?hour=7", history) == (200, b"parts")
    assert asked(f"/history/{name}?hour=8", history)[0] == 404
    assert asked(f"/history/{name}?hour=x", history)[0] == 400
    status, text = asked(f"/history/{name}?hour=7", None)
    assert (status, b"historyHours" in text) == (404, True)
