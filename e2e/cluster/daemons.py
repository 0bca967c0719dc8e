"""Background processes that never outlive the process that started them."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from random import SystemRandom

_TAIL = 3000
_PAUSE_S = 0.03
# below what Linux gives to outgoing connections (ip_local_port_range): a port stays ours while
# the server that had it is being restarted
_PORTS = (20000, 32000)


class StartError(RuntimeError):
    """A process that ended, or was not ready in time; says why, with the end of its log."""


class Daemon:
    """One background process and its log; may be started again after it ended.

    It dies with the thread that started it (prctl(2), PR_SET_PDEATHSIG): start it from a thread
    that lives as long as the process is wanted.
    """

    def __init__(
        self, name: str, command: Sequence[str | Path], log: Path,
        environment: Mapping[str, str] | None = None,
    ) -> None:  # fmt: skip
        self.name = name
        self.log = log
        dying = ("setpriv", "--pdeathsig", "KILL", "--") if shutil.which("setpriv") else ()
        self._command = [str(word) for word in (*dying, *command)]
        self._environment = environment or {}
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """Its process id; 0 while it does not run."""
        return self._process.pid if self._process is not None and self.running else 0

    @property
    def running(self) -> bool:
        """Whether it was started and has not ended."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start it, unless it runs."""
        if self.running:
            return
        with self.log.open("ab") as log:
            # a session of its own: Ctrl-C at a terminal ends the tests first, then they end it
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, **self._environment},
                start_new_session=True,
            )

    def stop(self, patience: float = 10.0) -> None:
        """SIGTERM, and SIGKILL where it still runs after ``patience`` seconds."""
        if self._process is None:
            return
        self._process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(patience)
        self.kill()

    def kill(self) -> None:
        """SIGKILL: what a crash or a loss of power looks like."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def wait_until(self, ready: Callable[[], bool], seconds: float) -> None:
        """Return when ``ready`` holds; ``StartError`` when it ends before, or takes longer."""
        deadline = time.monotonic() + seconds
        while not ready():
            if not self.running:
                raise StartError(f"{self.name} ended while starting; its log ends:\n{self.tail()}")
            if time.monotonic() > deadline:
                raise StartError(
                    f"{self.name} was not ready after {seconds:.0f} s; its log ends:\n{self.tail()}"
                )
            time.sleep(_PAUSE_S)

    def tail(self) -> str:
        """The end of its log."""
        try:
            return self.log.read_text(errors="replace")[-_TAIL:]
        except OSError:
            return "(no log)"


def free_ports(count: int) -> list[int]:
    """Ports of 127.0.0.1 on which nothing listens, all different."""
    found: set[int] = set()
    random = SystemRandom()  # runs side by side must not follow one sequence
    for _ in range(1000):
        if len(found) == count:
            return list(found)
        port = random.randrange(*_PORTS)
        if _is_free(port):
            found.add(port)
    raise StartError(f"no {count} free ports of 127.0.0.1 between {_PORTS[0]} and {_PORTS[1]}")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
