"""Collector and analyzer at a real Redis with TLS and an ACL: accepted, or refused and why."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import redis

from reveal_contract import names
from reveal_contract.kube.names import REDIS_PASSWORD_VARIABLE, REDIS_USERNAME_VARIABLE
from reveal_contract.names import REDIS_VARIABLE
from reveal_contract.redis_address import IS_OF_CLUSTER
from support.certificates import Certificate, on_loopback
from support.component_processes import free_port, running
from support.polling import wait_until
from support.redis_server import tls_flags

KEY = names.samples_key("default", names.shard("n1"))
PASSWORD = "p@ss/w:r#d?%41 é"
PAGE = Path(__file__).parents[2] / "docs" / "contributing" / "processes.md"
MODULES = ("reveal_collector", "reveal_analyzer")
FLAGS = {"reveal_collector": ("--node", "n1", "--include", "loadavg"), "reveal_analyzer": ()}


def documented_rights(user: str) -> list[str]:
    """Return what the page says that a user needs of an ACL."""
    [line] = [
        line for line in PAGE.read_text().splitlines() if line.startswith(f"ACL SETUSER {user} ")
    ]
    return line.split()[5:]


@dataclass(frozen=True)
class Guarded:
    """A Redis behind TLS whose default user is off."""

    admin: redis.Redis
    port: int
    certificate: Certificate

    def environment(self, module: str, **changed: str) -> dict[str, str]:
        user = module.removeprefix("reveal_")
        options = changed.pop("options", f"ssl_ca_certs={self.certificate.authority}")
        return {
            REDIS_VARIABLE: f"rediss://127.0.0.1:{self.port}?{options}",
            REDIS_USERNAME_VARIABLE: user,
            REDIS_PASSWORD_VARIABLE: PASSWORD + "\n",  # as `echo` into a Secret leaves it
            **changed,
        }


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return on_loopback(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def guarded(redis_launcher: Callable[..., Any], certificate: Certificate) -> Iterator[Guarded]:
    port = free_port()
    server = redis_launcher(*tls_flags(certificate, port), needs="tls-port")
    admin = redis.Redis(unix_socket_path=str(server.socket))
    for user in ("collector", "analyzer"):
        admin.execute_command(
            "ACL", "SETUSER", user, "on", f">{PASSWORD}", *documented_rights(user)
        )
    admin.execute_command("ACL", "SETUSER", "default", "resetkeys", "-@all", "+ping")
    admin.close()
    watcher = redis.Redis(
        unix_socket_path=str(server.socket), username="analyzer", password=PASSWORD
    )
    with watcher:
        yield Guarded(watcher, port, certificate)


def is_worked(guarded: Guarded, module: str) -> bool:
    """Whether the collector has shipped, or the analyzer holds shards."""
    if module == "reveal_collector":
        return bool(guarded.admin.xlen(KEY))
    return bool(guarded.admin.exists(names.analyzers_key("default")))


@pytest.mark.parametrize("module", MODULES)
def test_collector_and_analyzer_connect_with_secret_and_certificate(
    guarded: Guarded, module: str, tmp_path: Path
) -> None:
    environment = guarded.environment(module)
    with running(module, tmp_path, *FLAGS[module], environment=environment) as process:
        wait_until(lambda: is_worked(guarded, module), "work is done")
        assert "p@ss" not in Path(f"/proc/{process.pid}/cmdline").read_text()
        assert process.end() == 0
        assert "p@ss" not in process.text
        assert not process.has_logged("NOPERM")
        assert not process.has_logged("Traceback")


@pytest.mark.parametrize("module", MODULES)
@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({REDIS_PASSWORD_VARIABLE: "wr0ng"}, "invalid username-password pair"),
        ({REDIS_USERNAME_VARIABLE: "nobody"}, "invalid username-password pair"),
        ({"options": "ssl_cert_reqs=required"}, "certificate verify failed"),
        ({"options": "ssl_ca_certs=/none/ca.crt"}, "/none/ca.crt: No such file"),
    ],
)
def test_a_refused_client_reports_the_reason_without_a_password(
    guarded: Guarded, module: str, changed: dict[str, str], message: str, tmp_path: Path
) -> None:
    environment = guarded.environment(module, **changed)
    with running(module, tmp_path, *FLAGS[module], environment=environment) as process:
        wait_until(lambda: process.has_logged(message), message)
        assert process.process.poll() is None  # a fixed configuration is used without a restart
        for secret in ("p@ss", "p%40ss", "wr0ng"):
            assert secret not in process.text


@pytest.mark.parametrize("module", MODULES)
def test_a_certificate_is_not_verified_if_disabled(
    guarded: Guarded, module: str, tmp_path: Path
) -> None:
    environment = guarded.environment(module, options="ssl_cert_reqs=none")
    with running(module, tmp_path, *FLAGS[module], environment=environment) as process:
        wait_until(lambda: is_worked(guarded, module), "work is done")
        assert process.end() == 0


@pytest.mark.parametrize("module", MODULES)
def test_a_cluster_node_is_refused_with_a_clear_message(
    redis_launcher: Callable[..., Any], module: str, tmp_path: Path
) -> None:
    port, bus = free_port(), free_port()
    flags = ["--port", str(port), "--cluster-enabled", "yes", "--cluster-port", str(bus)]
    redis_launcher(*flags, needs="cluster-port")
    environment = {REDIS_VARIABLE: f"redis://127.0.0.1:{port}"}
    with running(module, tmp_path, *FLAGS[module], environment=environment) as process:
        wait_until(lambda: process.has_logged(IS_OF_CLUSTER), "the sentence")
