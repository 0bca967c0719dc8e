"""Findings while the primary of a Redis with Sentinels is lost again and again.

    python bench/failover.py [--nodes 200] [--outages 20] [--kind kill|pause|full]

Nodes send made-up seconds through the collector's sink, and the analyzer's own process reads them.
Each node has a fault of 15 s once a minute, at a time of its own.  ``kill`` ends the primary and
starts it again as a replica, ``pause`` stops its process for as long as a failover takes, and
``full`` leaves it no memory for some seconds.  A finding that is not reported is lost, a second one
of the same fault is a duplicate, and the gap is from the onset to the report.
"""

from __future__ import annotations

import argparse
import json
import logging
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from benchmark_report import Row, report
from reveal_collector.shipping.redis_sink import RedisSink
from reveal_collector.shipping.sinks import EncodedSlice
from reveal_contract import wire
from reveal_contract.settings import CollectorSettings
from support.polling import wait_until
from support.redis_server import launcher
from support.sentinel_group import Member, SentinelGroup
from support.synthetic_node import BOOT, TABLE, WORK, Node

WARMUP_S = 30  # of the analyzer
CYCLE_S, FAULT_S = 60, 15
BETWEEN_S = 20  # from one outage to the next
DOWN_S = 4  # of a primary that is paused or full
TOLERANCE_S = 2
THROTTLED = {f"cpu.subject.throttled_time{{{WORK}}}": 5e8}
GAUGES = wire.gauges(TABLE)


class Fault(NamedTuple):
    """A node and when its fault began (s since the epoch)."""

    node: str
    onset_s: float


class Reported(NamedTuple):
    """A finding: when it was first observed, and when it was read (s since the epoch)."""

    node: str
    onset_s: float
    read_s: float


@dataclass
class Fleet:
    """Nodes that send a second each second, spread over it; their faults are noted."""

    url: str
    count: int
    faults: list[Fault] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.names = [f"node-{number}" for number in range(self.count)]
        self._nodes = {name: Node(seed=number) for number, name in enumerate(self.names)}
        self._sinks = {name: RedisSink(CollectorSettings(name, self.url)) for name in self.names}
        self._stopping = threading.Event()
        self._began_s = time.time()
        self._faulty: set[str] = set()

    @contextmanager
    def sending(self) -> Iterator[None]:
        for sink in self._sinks.values():
            sink.start(lambda: {"table": TABLE.key.hex()})
        thread = threading.Thread(target=self._send)
        thread.start()
        try:
            yield
        finally:
            self._stopping.set()
            thread.join()
            for sink in self._sinks.values():
                sink.close(1.0)

    @property
    def dropped(self) -> int:
        return sum(sink.health().dropped for sink in self._sinks.values())

    @property
    def buffered(self) -> int:
        return sum(sink.health().buffered for sink in self._sinks.values())

    def _send(self) -> None:
        due = time.time()
        while not self._stopping.is_set():
            for number, name in enumerate(self.names):
                self._stopping.wait(max(0.0, due + number / self.count - time.time()))
                self._put(number, name)
            due += 1.0

    def _put(self, number: int, name: str) -> None:
        now = time.time()
        age = now - self._began_s - 2 * WARMUP_S
        phase = (age - CYCLE_S * number / self.count) % CYCLE_S
        is_faulty = age > CYCLE_S * number / self.count and phase < FAULT_S
        if is_faulty and name not in self._faulty:
            self.faults.append(Fault(name, now - 1))
        (self._faulty.add if is_faulty else self._faulty.discard)(name)
        message = self._nodes[name].slice(THROTTLED if is_faulty else {})
        message = replace(message, node=name, start_ns=int((now - 1) * 1e9))
        data = wire.encode(message, GAUGES)
        slice_ = EncodedSlice(name, BOOT, message.sequence, message.start_ns, TABLE, data)
        self._sinks[name].put(slice_)


class Findings:
    """Reads what the analyzer appends to its file; the first row of a finding counts."""

    def __init__(self, path: Path) -> None:
        self._path, self._offset, self._known = path, 0, set[str]()
        self.reported: list[Reported] = []

    def read(self) -> None:
        with self._path.open("rb") as file:
            file.seek(self._offset)
            for line in file:
                if not line.endswith(b"\n"):
                    break
                self._offset += len(line)
                self._add(json.loads(line))

    def _add(self, row: Mapping[str, str]) -> None:
        if row["id"] not in self._known:
            self._known.add(row["id"])
            onset = datetime.fromisoformat(row["firstSeenTime"]).timestamp()
            self.reported.append(Reported(row["nodeName"], onset, time.time()))


class Outages:
    """Takes the primary away and gives it back; ``times`` are when (s since the epoch)."""

    def __init__(self, group: SentinelGroup, kind: str) -> None:
        self._group, self._take_away = group, getattr(self, f"_{kind}")
        self._primary, self._replica = group.primary, group.replica
        self.times: list[float] = []

    def next(self) -> None:
        self.times.append(time.time())
        self._take_away()

    def _kill(self) -> None:
        self._primary.kill()
        wait_until(lambda: self._replica.role == "master", "the replica is promoted", 30)
        returned = self._group.replica_of(self._replica, port=self._primary.port)
        self._primary, self._replica = self._replica, returned

    def _pause(self) -> None:
        self._primary.signal(signal.SIGSTOP)
        wait_until(lambda: self._replica.role == "master", "the replica is promoted", 30)
        time.sleep(DOWN_S)
        self._primary.signal(signal.SIGCONT)
        wait_until(lambda: self._primary.role == "slave", "the old primary is a replica", 30)
        self._primary, self._replica = self._replica, self._primary

    def _full(self) -> None:
        self._set_memory(self._primary, 1)
        time.sleep(DOWN_S)
        self._set_memory(self._primary, 0)

    def _set_memory(self, member: Member, most: int) -> None:
        member.client.config_set("maxmemory", most)


@contextmanager
def analyzing(url: str, path: Path) -> Iterator[None]:
    path.touch()
    settings = path.with_suffix(".settings.json")
    settings.write_text(json.dumps({"warmupSeconds": WARMUP_S}))
    command = [sys.executable, "-m", "reveal_analyzer", "--redis", url, "--jsonl", str(path)]
    with path.with_suffix(".log").open("wb") as log:
        process = subprocess.Popen([*command, "--settings", str(settings)], stderr=log)
        try:
            yield
        finally:
            process.terminate()
            process.wait(30)


def run(nodes: int, outages: int, kind: str, folder: Path) -> Row:
    with ExitStack() as stack:
        group = SentinelGroup(stack.enter_context(launcher()))
        found = Findings(folder / "findings.jsonl")
        stack.enter_context(analyzing(group.url(), folder / "findings.jsonl"))
        fleet = Fleet(group.url(), nodes)
        stack.enter_context(fleet.sending())
        taken = Outages(group, kind)
        _follow(found, 2 * WARMUP_S + CYCLE_S)
        for number in range(outages):
            began = time.time()
            taken.next()
            took = time.time() - began
            print(f"{kind} {number + 1}: {took:.1f} s, {len(found.reported)} findings", flush=True)
            _follow(found, BETWEEN_S - took)
        _follow(found, CYCLE_S)
        row = _row(fleet, found, taken.times)
    return {"kind": kind, "nodes": nodes, "outages": outages, **row}


def _follow(found: Findings, seconds: float) -> None:
    ends = time.time() + max(seconds, 0.0)
    while True:
        found.read()
        if time.time() >= ends:
            return
        time.sleep(0.1)


def _row(fleet: Fleet, found: Findings, outages: Sequence[float]) -> Row:
    # the last faults may not have been reported yet
    faults = [fault for fault in fleet.faults if fault.onset_s < time.time() - CYCLE_S / 2]
    gaps, lost, duplicates = list[tuple[float, float]](), 0, 0
    for fault in faults:
        own = [each for each in found.reported if _is_of(each, fault)]
        lost += not own
        duplicates += len(own) > 1
        gaps += [(fault.onset_s, min(each.read_s for each in own) - fault.onset_s)] if own else []
    matched = sum(any(_is_of(each, fault) for fault in fleet.faults) for each in found.reported)
    disturbed = [gap for onset, gap in gaps if _is_disturbed(onset, outages)]
    quiet = [gap for onset, gap in gaps if not _is_disturbed(onset, outages)]
    return {
        "faults": len(faults), "lost": lost, "duplicates": duplicates,
        "of no fault": len(found.reported) - matched,
        "slices dropped": fleet.dropped, "slices waiting": fleet.buffered,
        "gap s, median": statistics.median(quiet),
        "of faults in outages": statistics.median(disturbed) if disturbed else 0.0,
        "longest": max(gap for _, gap in gaps),
    }  # fmt: skip


def _is_of(each: Reported, fault: Fault) -> bool:
    late = each.onset_s - fault.onset_s
    return each.node == fault.node and -TOLERANCE_S <= late < FAULT_S + TOLERANCE_S


def _is_disturbed(onset_s: float, outages: Sequence[float]) -> bool:
    return any(outage - FAULT_S / 2 <= onset_s <= outage + FAULT_S / 2 for outage in outages)


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code 0 done."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=200)
    parser.add_argument("--outages", type=int, default=20)
    kinds = ("kill", "pause", "full")
    parser.add_argument("--kind", choices=kinds, action="append", help="default: all, in turn")
    asked = parser.parse_args(argv)
    logging.disable(logging.WARNING)  # each sink reports each outage
    rows = []
    for kind in asked.kind or kinds:
        with tempfile.TemporaryDirectory() as folder:
            rows.append(run(asked.nodes, asked.outages, kind, Path(folder)))
    report("failover", rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
