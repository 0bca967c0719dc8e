"""The collector as a process of its own, so that judging never delays its sampling."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Protocol, Self

from reveal_cli import child_process
from reveal_cli.errors import ERROR, USAGE, CliError
from reveal_contract.kube.names import (
    REDIS_PASSWORD_VARIABLE,
    REDIS_USERNAME_VARIABLE,
    SENTINEL_PASSWORD_VARIABLE,
    SENTINEL_USERNAME_VARIABLE,
)
from reveal_contract.names import REDIS_VARIABLE

_LOGIN = (
    REDIS_USERNAME_VARIABLE,
    REDIS_PASSWORD_VARIABLE,
    SENTINEL_USERNAME_VARIABLE,
    SENTINEL_PASSWORD_VARIABLE,
)
_POD_LOGS = Path("/var/log/pods")  # the kubelet's, on a node of Kubernetes
_KEPT_LINES = 20
_STOP_S = 0.3  # time to stop where its last slice is not needed, s
_NAME = "reveal-collector: "  # prefix of an error that a user can act on


class HostOptions(Protocol):
    """The arguments that ``options.add_host`` adds."""

    node: str
    proc_root: Path
    sys_root: Path
    cgroup_root: Path
    include_source: list[str]
    exclude_source: list[str]


def host_flags(options: HostOptions) -> list[str]:
    """Return the collector's flags for the node, roots and sources that the user chose."""
    flags = ["--node", options.node]
    flags += ["--proc-root", str(options.proc_root), "--sys-root", str(options.sys_root)]
    flags += ["--cgroup-root", str(options.cgroup_root)]
    if options.include_source:
        flags += ["--include", *options.include_source]
    if options.exclude_source:
        flags += ["--exclude", *options.exclude_source]
    # only of this host: another root is that of a container, or a recorded tree
    if options.proc_root == Path("/proc") and os.access(_POD_LOGS, os.R_OK | os.X_OK):
        flags += ["--pod-source", "logs"]
    return flags


class CollectorProcess:
    """``reveal-collector`` as a child process that ends with this one; keeps its last messages.

    It runs in a session of its own: Ctrl-C on the terminal reaches this process alone, which then
    stops the collector in order.
    """

    def __init__(self, flags: Sequence[str], redis_url: str = "") -> None:
        # -P: do not import a redis.py of the user's current directory
        module = [sys.executable, "-P", "-m", "reveal_collector"]
        # JSON, because its messages are quoted; a short drain, as Redis stops with the scan
        fixed = ["--die-with-parent", "--log-format", "json", "--drain-seconds", "0.9"]
        self._command = [*module, *fixed, *flags]
        # not as a flag: everyone on the host can read flags, and a URL may hold a password
        # a login of the environment must not be used for the private server
        login = dict.fromkeys(_LOGIN, "")
        self._environment = {**os.environ, **login, REDIS_VARIABLE: redis_url}
        self._messages: deque[str] = deque(maxlen=_KEPT_LINES)
        self._process = self._start()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """Return the exit code; ``None`` while it runs."""
        return self._process.poll()

    @property
    def last_message(self) -> str:
        """Return its last message: why it ended."""
        return _message(self._messages[-1]) if self._messages else "without a message"

    def failure(self) -> CliError:
        """Return the error with which it ended: its own message and exit code."""
        self._listener.join(0.5)
        code, message = self._process.poll(), self.last_message
        if not message.startswith(_NAME):
            return CliError(f"the collector ended ({code}): {message}")
        return CliError(message.removeprefix(_NAME), USAGE if code == USAGE else ERROR)

    def stop(self, timeout: float) -> None:
        """Stop it with SIGTERM, and with SIGKILL after ``timeout`` seconds."""
        child_process.stop(self._process, timeout)
        self._listener.join(0.5)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop(_STOP_S)

    def _start(self) -> subprocess.Popen[str]:
        try:
            process = subprocess.Popen(
                self._command,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                start_new_session=True,
            )
        except OSError as error:
            raise CliError(f"cannot start the collector: {error.strerror}") from None
        assert process.stderr is not None
        self._listener = threading.Thread(target=self._listen, args=(process.stderr,), daemon=True)
        self._listener.start()
        return process

    def _listen(self, stream: IO[str]) -> None:
        with stream:
            self._messages.extend(line.strip() for line in stream if line.strip())


class CollectorSupervisor:
    """Starts a collector again when it ends, after a pause that grows each time."""

    def __init__(self, flags: Sequence[str], redis_url: str) -> None:
        self._flags, self._redis_url = list(flags), redis_url
        self.process = self._launch()
        self.restarts = 0
        self._restart_time: float | None = None

    def check(self, now: float, delivered: bool) -> str:
        """Start it again when its pause is over; return what happened, or "".

        Raises ``CliError`` for a collector that ends before it delivered: it cannot read the host.
        """
        code = self.process.returncode
        if code is None:
            return ""
        if not delivered:
            raise self.process.failure()
        if self._restart_time is None:
            self._restart_time = now + min(2.0**self.restarts, 30.0)
            return f"the collector ended ({self.process.last_message}); it is started again"
        if now >= self._restart_time:
            self.process.stop(0)
            self.process, self._restart_time = self._launch(), None
            self.restarts += 1
        return ""

    def _launch(self) -> CollectorProcess:
        return CollectorProcess(self._flags, self._redis_url)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.process.stop(_STOP_S)


def _message(line: str) -> str:
    """Return the text of a log line, JSON or plain."""
    try:
        entry = json.loads(line)
    except ValueError:
        return line
    return str(entry.get("message", line)) if isinstance(entry, dict) else line
