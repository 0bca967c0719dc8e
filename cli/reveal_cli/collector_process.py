"""The collector as a process of its own, so that judging never delays a tick."""

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

from reveal_cli.errors import ERROR, USAGE, CliError
from reveal_contract.kube.names import REDIS_PASSWORD_VARIABLE, REDIS_USERNAME_VARIABLE
from reveal_contract.names import REDIS_VARIABLE

_KEPT_LINES = 20
_AT_ONCE = 0.3  # for its end where nobody waits for its last slice, s
_NAME = "reveal-collector: "  # begins the sentence of an error a user can act on


class HostOptions(Protocol):
    """The arguments of ``options.add_host``."""

    node: str
    proc_root: Path
    sys_root: Path
    cgroup_root: Path
    include_source: list[str]
    exclude_source: list[str]


def host_flags(options: HostOptions) -> list[str]:
    """The collector's flags for the node, roots and sources the user chose."""
    flags = ["--node", options.node]
    flags += ["--proc-root", str(options.proc_root), "--sys-root", str(options.sys_root)]
    flags += ["--cgroup-root", str(options.cgroup_root)]
    if options.include_source:
        flags += ["--include", *options.include_source]
    if options.exclude_source:
        flags += ["--exclude", *options.exclude_source]
    return flags


class CollectorProcess:
    """``reveal-collector`` as a child that dies with us; its last words are kept.

    It runs in a session of its own: a Ctrl-C on the terminal reaches us alone, and we end
    it in order.
    """

    def __init__(self, flags: Sequence[str], redis_url: str = "") -> None:
        # -P: a redis.py in the user's directory is not ours
        module = [sys.executable, "-P", "-m", "reveal_collector"]
        # JSON: its messages are quoted; brief, as what waits at our end has a server that ends too
        own = ["--die-with-parent", "--log-format", "json", "--drain-seconds", "0.9"]
        self._command = [*module, *own, *flags]
        # not a flag: anyone on the host may read those, and a URL may hold a password
        # and whoever the shell would have us be is nobody at a server of our own
        nobody = dict.fromkeys((REDIS_USERNAME_VARIABLE, REDIS_PASSWORD_VARIABLE), "")
        self._environment = {**os.environ, **nobody, REDIS_VARIABLE: redis_url}
        self._said: deque[str] = deque(maxlen=_KEPT_LINES)
        self._process = self._start()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """None while it runs."""
        return self._process.poll()

    @property
    def last_words(self) -> str:
        """Its last message, for the sentence that says why it ended."""
        return _message(self._said[-1]) if self._said else "it said nothing"

    def failure(self) -> CliError:
        """Why it ended before its work was done, in its own words, with its own exit code."""
        self._listener.join(0.5)
        code, said = self._process.poll(), self.last_words
        if not said.startswith(_NAME):
            return CliError(f"the collector ended ({code}): {said}")
        return CliError(said.removeprefix(_NAME), USAGE if code == USAGE else ERROR)

    def stop(self, timeout: float) -> None:
        """End it: ask, and after ``timeout`` seconds make sure."""
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(timeout)
            except subprocess.TimeoutExpired:
                self._process.kill()
        self._process.wait()
        self._listener.join(0.5)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self.stop(_AT_ONCE)

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
            self._said.extend(line.strip() for line in stream if line.strip())


class Keeper:
    """Keeps a collector running: one that ends is started again, a little later each time."""

    def __init__(self, flags: Sequence[str], redis_url: str) -> None:
        self._flags, self._redis_url = list(flags), redis_url
        self.process = self._launch()
        self.restarts = 0
        self._again_at: float | None = None

    def check(self, now: float, delivered: bool) -> str:
        """Start it again if it is due; what happened, or "" if all is well.

        One that ends before it ever delivered has no host to read: that is an error.
        """
        code = self.process.returncode
        if code is None:
            return ""
        if not delivered:
            raise self.process.failure()
        if self._again_at is None:
            self._again_at = now + min(2.0**self.restarts, 30.0)
            return f"the collector ended ({self.process.last_words}); it is started again"
        if now >= self._again_at:
            self.process.stop(0)
            self.process, self._again_at = self._launch(), None
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
        at: TracebackType | None,
    ) -> None:
        self.process.stop(_AT_ONCE)


def _message(line: str) -> str:
    """The text of a log line, be it JSON (not on a terminal) or plain."""
    try:
        entry = json.loads(line)
    except ValueError:
        return line
    return str(entry.get("message", line)) if isinstance(entry, dict) else line
