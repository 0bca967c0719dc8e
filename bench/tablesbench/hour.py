"""An accelerated hour of a node: real sources over made-up cgroups, and an analyzer of its tables.

Runs in the interpreter of the checkout that is measured; prints one JSON row.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))

from reveal_contract import catalogue
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.metric import Kind, Lane, Scope
from reveal_contract.settings import AnalyzerSettings
from reveal_contract.wire import Message
from tablesbench import checkout
from tablesbench.uses import uses

WALK_S = 30
ANALYZED = range(300, 400)  # seconds whose tables an analyzer gets
WARMUP_S = 70  # of the analyzer
_STAT = (
    "usage_usec {}\nuser_usec 1\nsystem_usec 2\nnr_periods 20\nnr_throttled 3\nthrottled_usec 9\n"
)
_MEMORY = "anon 2048\nfile 4096\npgfault 30\npgmajfault 4\n"


class Node:
    """The sources of a node whose subjects use what ``uses`` says; its clock is the test's."""

    def __init__(self, root: Path, subjects: int) -> None:
        self.now = 0.0
        self.spent = 0.0
        self._root = root
        self._used = [0.0] * subjects
        self._make_cgroups()
        self._fine_module = sys.modules[checkout.load("FineCpu").__module__]
        self._fine_module.time = SimpleNamespace(
            monotonic=lambda: self.now, monotonic_ns=lambda: round(self.now * 1e9)
        )
        trees = checkout.load("hierarchies")(root)
        self._tracker = checkout.load("Tracker")(trees, checkout.load("Selection")())
        self._tracker._users = 1  # no thread: the bench walks
        checkout.walk(self._tracker, 0.0)
        self._fine = checkout.load("FineCpu")(self._tracker)
        clocks = checkout.cgroup_source("CgroupClocks", trees, self._tracker)
        usage = checkout.cgroup_source("CgroupUsage", trees, self._tracker)
        self._sources = [clocks, usage, self._fine]
        for source in self._sources:
            source.open()

    def _make_cgroups(self) -> None:
        (self._root / "cgroup.controllers").write_text("cpu io memory pids\n")
        (self._root / "cgroup.procs").write_text("1\n")
        for subject in range(len(self._used)):
            folder = self._folder(subject)
            folder.mkdir(parents=True)
            (folder / "cgroup.procs").write_text("42\n")
            (folder / "cpu.stat").write_text(_STAT.format(0))
            (folder / "memory.current").write_text("8192\n")
            (folder / "memory.stat").write_text(_MEMORY)
            (folder / "pids.current").write_text("5\n")

    def _folder(self, subject: int) -> Path:
        return self._root / f"team/worker-{subject:03}"

    def second(self, use: Any, number: int) -> tuple[Channel, ...]:
        """Let a second pass; return the columns of subjects after it."""
        self.now = float(number)
        for subject in range(len(self._used)):
            self._used[subject] += 1e6 * use(subject, number)
            (self._folder(subject) / "cpu.stat").write_text(_STAT.format(int(self._used[subject])))
        began = time.process_time()
        if number % WALK_S == 0:
            checkout.walk(self._tracker, self.now)
        for source in self._sources:
            try:
                source.read()
            except checkout.load("LayoutChanged"):
                source.read()
        self.spent += time.process_time() - began
        return tuple(channel for source in self._sources for channel in source.channels)


def host_channels() -> tuple[Channel, ...]:
    """Return a channel for each metric of a host."""
    return tuple(
        Channel(row.name, "", row.kind, 1.0, row.lane)
        for row in catalogue.rows()
        if row.scope is not Scope.SUBJECT
        and row.lane is not Lane.DERIVED
        and row.kind in (Kind.COUNTER, Kind.GAUGE)
    )


def table_of(channels: tuple[Channel, ...]) -> ChannelTable:
    every = (*host_channels(), *channels)
    return ChannelTable(
        tuple(each for each in every if each.lane is Lane.FAST),
        tuple(each for each in every if each.lane is not Lane.FAST),
    )


def analyzed_ms(tables: list[ChannelTable]) -> float:
    """Return the CPU time that an analyzer takes a second, tables included."""
    analyzer = checkout.load("NodeAnalyzer")("n1", AnalyzerSettings())
    analyze = getattr(analyzer, "analyze", None) or analyzer.step
    rng = np.random.default_rng(1)
    announcements = checkout.Announcements()
    known: dict[bytes, ChannelTable] = {}
    spent = []
    for number, table in enumerate([tables[0]] * WARMUP_S + tables):
        data, message = announcements.written(table), _message(table, number, rng)
        began = time.process_time()
        if table.key not in known:
            known = {table.key: announcements.read(ChannelTable, data)}
        analyze(message, known[table.key])
        if number >= WARMUP_S:
            spent.append(time.process_time() - began)
    return float(np.mean(spent)) * 1e3


def _message(table: ChannelTable, number: int, rng: np.random.Generator) -> Message:
    fast = 500 + rng.integers(0, 50, (10, len(table.fast)))
    slow = 500 + rng.integers(0, 50, len(table.slow))
    return Message(
        "n1", b"b" * 16, number, (1_700_000_000 + number) * 10**9, 100_000, table.key, fast, slow,
        np.zeros(fast.shape, np.bool_), np.zeros(slow.shape, np.bool_),
    )  # fmt: skip


def measure(subjects: int, kind: str, seconds: int) -> dict[str, str | float]:
    use = uses(random.Random(1))[kind]
    keys: set[bytes] = set()
    changes, announced, columns, analyzed = 0, 0, (), []
    announcements = checkout.Announcements()
    shared = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(dir=shared) as folder:
        node = Node(Path(folder), subjects)
        for number in range(1, seconds + 1):
            before, columns = columns, node.second(use, number)
            if columns != before:
                table = table_of(columns)
                began = time.process_time()
                announced += len(announcements.written(table))
                node.spent += time.process_time() - began
                keys.add(table.key)
                changes += 1
            announced += len(announcements.second(number))
            if number in ANALYZED:
                analyzed.append(table)
        for source in node._sources:
            source.close()
    return {
        "subjects": subjects,
        "use": kind,
        "tables an hour": changes * 3600 / seconds,
        "different": len(keys),
        "bytes of tables a second": announced / seconds,
        "collector ms a second": node.spent / seconds * 1e3,
        "analyzer ms a second": analyzed_ms(analyzed),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("subjects", type=int)
    parser.add_argument("use")
    parser.add_argument("seconds", type=int)
    given = parser.parse_args()
    print(json.dumps(measure(given.subjects, given.use, given.seconds)))


if __name__ == "__main__":
    main()
