"""The HTTP endpoint: metrics, probes, both address families, and a port in use."""

from __future__ import annotations

import errno
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from prometheus_client import CollectorRegistry, Gauge

from reveal_contract.runtime import http_endpoints
from support.component_processes import answer
from support.dripping_client import closes_after_a_byte
from support.polling import wait_until

MOST_CONNECTIONS = http_endpoints._MOST_CONNECTIONS


class Checks:
    """What the checks say."""

    def __init__(self) -> None:
        self.health = ""
        self.ready = "not yet"


@pytest.fixture(scope="module")
def checks() -> Checks:
    return Checks()


@pytest.fixture(scope="module")
def port(checks: Checks) -> Iterator[int]:
    registry = CollectorRegistry()
    Gauge("reveal_thing", "A thing.", registry=registry).set(7)
    yield http_endpoints.serve(registry, 0, lambda: checks.health, lambda: checks.ready)


def test_metrics_are_served(port: int) -> None:
    status, text = answer(port, "/metrics")
    assert status == 200
    assert "reveal_thing 7.0" in text


def test_a_probe_answers_what_is_wrong(port: int, checks: Checks) -> None:
    assert answer(port, "/healthz") == (200, "ok\n")
    assert answer(port, "/readyz") == (503, "not yet\n")
    checks.ready, checks.health = "", "the loop has stopped"
    assert answer(port, "/readyz") == (200, "ok\n")
    assert answer(port, "/healthz") == (503, "the loop has stopped\n")


def test_an_unknown_path_lists_the_known_paths(port: int) -> None:
    assert answer(port, "/") == (404, "not found; try /metrics, /healthz, /readyz\n")


def test_without_checks_there_are_no_probes() -> None:
    port = http_endpoints.serve(CollectorRegistry(), 0)
    assert answer(port, "/healthz") == (404, "not found; try /metrics\n")


def test_both_families_are_answered(port: int) -> None:
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            pass
    except OSError:
        pytest.skip("no IPv6 here")
    assert answer(port, "/metrics", "[::1]")[0] == 200


@pytest.mark.parametrize("address", ["0.0.0.0", "127.0.0.1"])
def test_a_port_in_use_is_a_readable_error(address: str) -> None:
    with socket.create_server((address, 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(OSError, match=f"port {port} for metrics: Address already") as refused:
            http_endpoints.serve(CollectorRegistry(), port)
    assert refused.value.errno == errno.EADDRINUSE


def test_a_silent_client_does_not_block_others(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port)):
        assert answer(port, "/metrics")[0] == 200


def test_a_client_with_many_connections_gets_no_more_and_blocks_no_others(port: int) -> None:
    with ExitStack() as stack:
        for _ in range(MOST_CONNECTIONS):
            stack.enter_context(socket.create_connection(("127.0.0.1", port)))
        refused = stack.enter_context(socket.create_connection(("127.0.0.1", port)))
        refused.settimeout(10)
        assert refused.recv(1) == b""
        other = socket.create_connection(("127.0.0.1", port), 10, ("127.0.0.2", 0))
        stack.enter_context(other)
        other.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        assert other.recv(15) == b"HTTP/1.0 200 OK"
    wait_until(lambda: answer(port, "/metrics")[0] == 200, "the client is let in again")


@pytest.fixture
def few_connections(monkeypatch: pytest.MonkeyPatch) -> int:
    """A port that has at most 12 connections, the last four for addresses with hardly any."""
    monkeypatch.setattr(http_endpoints, "_MOST_OF_ALL", 12)
    monkeypatch.setattr(http_endpoints, "_KEPT_FOR_FEW", 4)
    return http_endpoints.serve(CollectorRegistry(), 0, lambda: "")


def is_let_in(port: int, address: str) -> bool:
    """Return whether a client of an address of this host gets an answer."""
    with socket.create_connection(("127.0.0.1", port), 10, (address, 0)) as connection:
        try:
            connection.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
            return connection.recv(15) == b"HTTP/1.0 200 OK"
        except ConnectionError:
            return False


def silent_clients(port: int, address: str, number: int) -> ExitStack:
    """Return open connections from an address of this host."""
    stack = ExitStack()
    for _ in range(number):
        client = socket.create_connection(("127.0.0.1", port), 10, (address, 0))
        stack.enter_context(client)
    return stack


def test_all_clients_together_leave_room_for_those_with_few_connections(
    few_connections: int,
) -> None:
    port = few_connections
    with silent_clients(port, "127.0.0.2", 4), silent_clients(port, "127.0.0.3", 4):
        assert not is_let_in(port, "127.0.0.2")
        with silent_clients(port, "127.0.0.4", 2):
            assert not is_let_in(port, "127.0.0.4")
            with silent_clients(port, "127.0.0.5", 2):
                assert not is_let_in(port, "127.0.0.6"), "there are 12"
            wait_until(lambda: is_let_in(port, "127.0.0.6"), "there is room again")
    wait_until(lambda: is_let_in(port, "127.0.0.2"), "the others are gone")


def test_a_client_that_drips_bytes_is_closed(
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(http_endpoints._Handler, "timeout", 0.2)
    port = http_endpoints.serve(CollectorRegistry(), 0)
    with socket.create_connection(("127.0.0.1", port), 10) as client:
        wait_until(lambda: closes_after_a_byte(client), "the client is closed")
    assert (capfd.readouterr().err, caplog.text) == ("", "")


def test_a_request_that_comes_in_parts_is_answered(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), 10) as client:
        for part in (b"GET /met", b"rics HTTP/1.0\r\nAccept: ", b"text/plain\r\n\r\n"):
            client.sendall(part)
            time.sleep(0.05)
        assert client.recv(15) == b"HTTP/1.0 200 OK"


def test_a_client_that_stays_silent_is_no_defect(
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(http_endpoints._Handler, "timeout", 0.05)
    port = http_endpoints.serve(CollectorRegistry(), 0)
    with socket.create_connection(("127.0.0.1", port), 10) as silent:
        assert silent.recv(1) == b""
    assert (capfd.readouterr().err, caplog.text) == ("", "")
