"""Collector and analyzer as processes, as a pod runs them."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path

from reveal_contract.kube.names import REDIS_PASSWORD_VARIABLE, REDIS_USERNAME_VARIABLE

# of a shell that runs the tests
_NOBODY = (REDIS_USERNAME_VARIABLE, REDIS_PASSWORD_VARIABLE)


class Process:
    """A process and what it logs, a JSON object a line."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self.process = process
        self.pid = process.pid
        self._log = log

    @property
    def text(self) -> str:
        """All it wrote."""
        return self._log.read_text()

    @property
    def messages(self) -> list[str]:
        return [str(json.loads(line)["message"]) for line in self.text.splitlines()]

    def has_logged(self, words: str) -> bool:
        return words in self.text

    def has_pending_signals(self) -> bool:
        """Return whether a signal was sent that no thread has received (``ShdPnd``, proc(5))."""
        rows = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        return any(int(row.split()[1], 16) for row in rows if row.startswith(("SigPnd", "ShdPnd")))

    def terminated(self) -> bool:
        """Send SIGTERM, unless it has ended; return whether it has."""
        self.process.terminate()
        return self.process.poll() is not None

    def end(self, seconds: float = 20) -> int:
        """Ask it to end, wait for it; its exit code."""
        self.process.terminate()
        return self.process.wait(seconds)


@contextlib.contextmanager
def running(
    module: str, folder: Path, *flags: str, environment: Mapping[str, str] | None = None
) -> Iterator[Process]:
    """``reveal_collector`` or ``reveal_analyzer``; killed at the end if it still runs."""
    log = folder / f"{module}-{time.monotonic_ns()}.log"
    command = [sys.executable, "-m", module, "--log-format", "json", *flags]
    given = {**os.environ, "OMP_NUM_THREADS": "1", **dict.fromkeys(_NOBODY, "")}
    with log.open("wb") as file:
        process = subprocess.Popen(command, stderr=file, env={**given, **(environment or {})})
    try:
        yield Process(process, log)
    finally:
        process.kill()
        process.wait()


def is_running(pid: int) -> bool:
    """Return whether the process exists and is not a zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


def answer(
    port: int,
    path: str,
    host: str = "127.0.0.1",
    context: ssl.SSLContext | None = None,
    headers: Mapping[str, str] | None = None,
) -> tuple[int, str]:
    """Status and text of a GET, by HTTPS with a context; 0 while nobody listens."""
    scheme = "https" if context else "http"
    asked = urllib.request.Request(f"{scheme}://{host}:{port}{path}", headers=dict(headers or {}))
    try:
        with urllib.request.urlopen(asked, timeout=10, context=context) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, refused.read().decode()
    except OSError:
        return 0, ""
