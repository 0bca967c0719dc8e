"""Analyzer processes of one checkout: started, stopped, killed, replaced."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import redis

from reveal_contract.names import analyzers_key, owner_key

READY_S = 240.0  # the first start of a checkout compiles its loops
_PR_SET_PDEATHSIG = 1
_STUCK_S = 60.0
_POLL_S = 0.02


class AnalyzerError(RuntimeError):
    """An analyzer does not do what the timeline needs; the text says which and what."""


@dataclass(frozen=True)
class Checkout:
    """Code to play to: a name for the tables and the command of its analyzer."""

    name: str
    command: tuple[str, ...]

    @classmethod
    def here(cls) -> Checkout:
        """The code that runs this bench."""
        return cls("now", (sys.executable, "-m", "reveal_analyzer"))

    @classmethod
    def of(cls, folder: Path) -> Checkout:
        """The code of another checkout, with its own interpreter."""
        python = folder / ".venv" / "bin" / "python"
        if not python.exists():
            raise AnalyzerError(f"{folder} has no .venv/bin/python: run make there first")
        return cls("before", (str(python), "-m", "reveal_analyzer"))


@dataclass
class Analyzer:
    """One process; ``owner`` is its name among the analyzers of the profile."""

    owner: str
    process: subprocess.Popen[bytes]
    log: Path

    def sleeps(self) -> bool:
        """Whether its loop waits for the next turn: it is in nanosleep (proc_pid_wchan(5))."""
        try:
            return "nanosleep" in Path(f"/proc/{self.process.pid}/wchan").read_text()
        except OSError:
            return False

    def require_alive(self) -> None:
        if self.process.poll() is not None:
            lines = self.log.read_text(errors="replace").strip().splitlines()
            reason = lines[-1] if lines else "its log is empty"
            raise AnalyzerError(f"analyzer {self.owner} ended by itself: {reason}")


@dataclass
class Analyzers:
    """All processes of one checkout for one profile; they append to one file of findings."""

    checkout: Checkout
    profile: str
    shard: int  # of the node that is played
    client: redis.Redis
    url: str
    folder: Path
    running: list[Analyzer] = field(default_factory=list)
    _number: int = 0
    _read: dict[str, int] = field(default_factory=dict)  # lines of each log

    def failures(self) -> list[str]:
        """Return the errors that analyzers logged with a traceback since the last call."""
        found = []
        for log in sorted(self.folder.glob("*.log")):
            lines = log.read_text(errors="replace").splitlines()
            start = self._read.get(log.name, 0)
            self._read[log.name] = len(lines)
            new = lines[start:]
            # the last line of a traceback is the first one behind it that is not indented
            starts = [index for index, line in enumerate(new) if line.startswith("Traceback")]
            found += [
                next((line for line in new[index + 1 :] if line[:1].strip()), "an error")
                for index in starts
            ]
        return found

    @property
    def findings(self) -> Path:
        return self.folder / "findings.jsonl"

    def start(self, owner: str = "", extra: Sequence[str] = ()) -> Analyzer:
        """Start a process; it may not be ready yet."""
        self._number += 1
        owner = owner or f"{self.checkout.name}-{self._number}"
        self.folder.mkdir(parents=True, exist_ok=True)
        run_folder = self.folder / f"run-{self._number}"
        run_folder.mkdir(exist_ok=True)
        log = self.folder / f"{owner}.log"
        command = [
            *self.checkout.command, "--redis", self.url, "--profile", self.profile,
            "--jsonl", str(self.findings), "--owner", owner, "--run-folder", str(run_folder),
            *extra,
        ]  # fmt: skip
        with log.open("ab") as output:
            process = subprocess.Popen(
                command, cwd=self.folder, stdout=output, stderr=output, env=_environment(),
                preexec_fn=_die_with_parent(),  # noqa: PLW1509 - only async-signal-safe calls
            )  # fmt: skip
        analyzer = Analyzer(owner, process, log)
        self.running.append(analyzer)
        return analyzer

    def wait_owner(self, analyzer: Analyzer, seconds: float = READY_S) -> None:
        """Wait until this process reads the node's shard."""
        key = owner_key(self.profile, self.shard)

        def owns() -> bool:
            return bool(self.client.get(key) == analyzer.owner.encode())

        self._wait(analyzer, owns, seconds, f"take shard {self.shard}")

    def wait_registered(self, analyzer: Analyzer) -> None:
        """Wait until this process counts as a live analyzer."""
        key = analyzers_key(self.profile)

        def registered() -> bool:
            return self.client.zscore(key, analyzer.owner) is not None

        self._wait(analyzer, registered, READY_S, "register")

    def wait_idle(self) -> None:
        """Wait until the processes sleep before they read again.

        What they read before is analyzed then, and its findings are written.
        """
        for analyzer in self.running:
            self._wait(analyzer, analyzer.sleeps, _STUCK_S, "finish what it read")

    def _wait(
        self, analyzer: Analyzer, done: Callable[[], bool], seconds: float, what: str
    ) -> None:
        deadline = time.monotonic() + seconds
        while not done():
            analyzer.require_alive()
            if time.monotonic() > deadline:
                raise AnalyzerError(f"analyzer {analyzer.owner} does not {what}")
            time.sleep(_POLL_S)

    def terminate(self, analyzer: Analyzer) -> None:
        """End a process as Kubernetes does: SIGTERM, and wait."""
        analyzer.process.send_signal(signal.SIGTERM)
        try:
            analyzer.process.wait(20)
        except subprocess.TimeoutExpired:
            analyzer.process.kill()
            analyzer.process.wait()
        self.running.remove(analyzer)

    def kill(self, analyzer: Analyzer) -> None:
        """SIGKILL; its leases then expire at once, as if seven seconds had passed."""
        analyzer.process.kill()
        analyzer.process.wait()
        self.running.remove(analyzer)
        for number in range(64):
            key = owner_key(self.profile, number)
            if self.client.get(key) == analyzer.owner.encode():
                self.client.delete(key)
        self.client.zrem(analyzers_key(self.profile), analyzer.owner)

    def close(self) -> None:
        for analyzer in list(self.running):
            self.terminate(analyzer)


def _environment() -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "REVEAL_"))}
    return {**kept, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


def _die_with_parent() -> Callable[[], None]:
    prctl = ctypes.CDLL(None, use_errno=True).prctl

    def prepare() -> None:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)

    return prepare
