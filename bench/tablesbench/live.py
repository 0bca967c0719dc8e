"""Twenty real busy cgroups, and collectors and analyzers of several checkouts beside each other."""

from __future__ import annotations

import contextlib
import itertools
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import redis

from benchmark_report import Row
from reveal_cli.broker import Broker
from reveal_contract.names import samples_key, shard

ROOT = Path("/sys/fs/cgroup")
CONTROLLERS = ("cpu", "cpuacct", "memory", "pids")
READY_S = 300.0
SETTLE_S = 20.0
CHANGE_S = 2.0  # in churn, one cgroup ends and another begins so often
_SHARES = 8 * 1024
_FOLDER = "reveal-bench-tables"
_ANALYZERS = "reveal:{default}:analyzers"
_STREAM = samples_key("default", shard("bench"))
_TABLE = b"s"  # field of a slice: the key of its table
# joins its cgroups, then uses a share of a CPU that scatters
_WORK = """
import os, random, sys, time
for file in sys.argv[2:]:
    open(file, "w").write(str(os.getpid()))
share, due = float(sys.argv[1]), time.monotonic()
while True:
    end = time.thread_time() + 0.1 * share * max(0.0, random.gauss(1, 0.3))
    while time.thread_time() < end:
        sum(range(200))
    due = max(due + 0.1, time.monotonic())
    time.sleep(max(0.0, due - time.monotonic()))
"""


class BusyCgroups:
    """Real cgroups with a process each."""

    def __init__(self, count: int, share: float) -> None:
        self._share = share
        self._names = (f"worker-{number:03}" for number in itertools.count())
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        for _ in range(count):
            self._start()
        # whatever else runs on this host must not keep them from being busy
        (ROOT / "cpu" / _FOLDER / "cpu.shares").write_text(str(_SHARES))

    def replace_oldest(self) -> None:
        """End one cgroup and start another."""
        self._stop(next(iter(self._processes)))
        self._start()

    def close(self) -> None:
        for name in list(self._processes):
            self._stop(name)
        for controller in CONTROLLERS:
            with contextlib.suppress(OSError):
                (ROOT / controller / _FOLDER).rmdir()

    def _start(self) -> None:
        name = next(self._names)
        files = []
        for controller in CONTROLLERS:
            folder = ROOT / controller / _FOLDER / name
            folder.mkdir(parents=True, exist_ok=True)
            files.append(str(folder / "cgroup.procs"))
        self._processes[name] = subprocess.Popen(
            [sys.executable, "-c", _WORK, str(self._share), *files]
        )

    def _stop(self, name: str) -> None:
        process = self._processes.pop(name)
        process.kill()
        process.wait()
        for controller in CONTROLLERS:
            with contextlib.suppress(OSError):
                (ROOT / controller / _FOLDER / name).rmdir()


class Reveal:
    """A collector and an analyzer of one checkout, with a Redis of their own."""

    def __init__(self, python: Path, broker: Broker, folder: Path) -> None:
        self._client = redis.Redis.from_url(broker.url)
        self._last = b"0"
        common = {"cwd": folder, "stderr": subprocess.DEVNULL}
        # process groups of whatever else runs on this host come and go, too
        node = ["--node", "bench", "--redis-url", broker.url, "--exclude", "process-groups"]
        self._collector = subprocess.Popen([python, "-m", "reveal_collector", *node], **common)
        analyzer = [python, "-m", "reveal_analyzer", "--redis", broker.url, "--jsonl", "f.jsonl"]
        self._analyzer = subprocess.Popen(analyzer, **common)

    def wait_ready(self) -> None:
        """Wait until the analyzer reads; the first start of a checkout compiles its loops."""
        end = time.monotonic() + READY_S
        while not self._client.exists(_ANALYZERS):
            if time.monotonic() > end:
                raise TimeoutError("the analyzer does not start")
            time.sleep(1.0)

    def read(self) -> dict[str, float]:
        """Return what happened since the last call."""
        slices = self._slices()
        tables = [fields[_TABLE] for fields in slices]
        return {
            "slices": len(slices),
            "tables": sum(a != b for a, b in itertools.pairwise(tables)),
            "bytes": sum(sum(map(len, fields.values())) for fields in slices),
            "collector": cpu_seconds(self._collector.pid),
            "analyzer": cpu_seconds(self._analyzer.pid),
            "KB of tables": self._table_bytes() / 1e3,
        }

    def _slices(self) -> list[Any]:
        entries: Any = self._client.xrange(_STREAM, b"(" + self._last)
        if entries:
            self._last = entries[-1][0]
        return [fields for _, fields in entries]

    def _table_bytes(self) -> int:
        keys = [*self._client.scan_iter("reveal:{*}:table:*", count=1000), "reveal:catalogue"]
        return sum(int(self._client.memory_usage(key, samples=0) or 0) for key in keys)

    def close(self) -> None:
        for process in (self._collector, self._analyzer):
            process.terminate()
        for process in (self._collector, self._analyzer):
            process.wait()


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of all threads that live."""
    tasks = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((task / "schedstat").read_text().split()[0]) for task in tasks) / 1e9


def difference(before: Mapping[str, float], after: Mapping[str, float], seconds: float) -> Row:
    """Return the figures of a phase."""
    return {
        "tables a minute": after["tables"] * 60 / seconds,
        "bytes of slices a second": after["bytes"] / max(after["slices"], 1),
        "KB of tables in Redis": after["KB of tables"],
        "collector ms a second": (after["collector"] - before["collector"]) / seconds * 1e3,
        "analyzer ms a second": (after["analyzer"] - before["analyzer"]) / seconds * 1e3,
    }


def measure(pythons: Mapping[str, Path], cgroups: int, share: float, seconds: float) -> list[Row]:
    """Return the rows of a phase without and one with cgroups that come and go."""
    rows: list[Row] = []
    with contextlib.ExitStack() as stack:
        busy = BusyCgroups(cgroups, share)
        stack.callback(busy.close)
        running = {name: stack.enter_context(_started(python)) for name, python in pythons.items()}
        for reveal in running.values():
            reveal.wait_ready()
        time.sleep(SETTLE_S)
        for phase, replaced in (("busy", False), ("busy, 30 a minute come and go", True)):
            before = {name: each.read() for name, each in running.items()}
            began = time.monotonic()
            _pass(busy, seconds, replaced)
            spent = time.monotonic() - began
            for name, each in running.items():
                row = difference(before[name], each.read(), spent)
                rows.append({"code": name, "cgroups": cgroups, "phase": phase, **row})
    return rows


def _pass(busy: BusyCgroups, seconds: float, replaced: bool) -> None:
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        time.sleep(min(CHANGE_S, left))
        if replaced:
            busy.replace_oldest()


@contextlib.contextmanager
def _started(python: Path) -> Iterator[Reveal]:
    with Broker() as broker, tempfile.TemporaryDirectory() as folder:
        reveal = Reveal(python, broker, Path(folder))
        try:
            yield reveal
        finally:
            reveal.close()
