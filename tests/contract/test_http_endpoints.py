"""The HTTP endpoint: metrics, probes, both address families, and a port in use."""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from prometheus_client import CollectorRegistry, Gauge

from reveal_contract.runtime import http_endpoints
from support.component_processes import answer
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
