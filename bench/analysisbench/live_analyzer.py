"""The whole analyzer on a live Redis: how many nodes a core serves, how soon it answers."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import redis

from analysisbench.analyzed_nodes import Node
from analysisbench.slice_load import Load, Sender, pin
from benchmark_report import Row
from reveal_analyzer.fleet.fleet import Fleet
from reveal_analyzer.sinks.metrics import Metrics
from reveal_analyzer.stream.reader import StreamReader
from reveal_analyzer.worker import Worker
from reveal_cli.broker import Broker
from reveal_contract import names, wire
from reveal_contract.channels import ChannelTable
from reveal_contract.settings import AnalyzerSettings
from slice_sources import Slice

SETTLE = 10  # seconds that are not counted: after a gap the views of ten seconds fill again
AHEAD = 1.0  # seconds before the load begins


class Delays:
    """Takes what the analyzer tells its histogram, but exactly."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def observe(self, seconds: float) -> None:
        self.seconds.append(seconds)


def live(recorded: Sequence[Slice], warm: Sequence[Node], nodes: int, seconds: int) -> Row:
    """So many nodes at one slice a second; each begins as a copy of one of ``warm``.

    So they know what minutes taught them, and take the memory and the cache misses of as many.
    """
    sender = Sender()
    named = [f"node-{number:06d}" for number in range(nodes)]
    with Broker() as broker:
        announce(broker.url, recorded[0][1])
        metrics, delays = Metrics(), Delays()
        metrics.verdict = delays  # type: ignore[assignment]
        reader = StreamReader(AnalyzerSettings(redis_url=broker.url), "bench")
        analyses = {name: warm[index % len(warm)].copied() for index, name in enumerate(named)}
        fleet = Fleet(reader.connection.client, names.DEFAULT_PROFILE, "bench")
        worker = Worker(reader, analyses.pop, [], metrics, fleet)
        while len(reader.shards) < names.SHARDS:
            worker.turn()
        templates = encoded(recorded, named[0])
        load = Load(broker.url, templates, named, time.time() + AHEAD, SETTLE + seconds)
        sender.send(load)
        with on_core(0):
            row = watched(worker, reader, delays, load)
        sender.join()
        worker.close()
    return row


def watched(worker: Worker, reader: StreamReader, delays: Delays, load: Load) -> Row:
    """Turn after turn until the load is over; what it took after the first seconds."""
    turn_until(worker, load.begin + SETTLE)
    before, missing = len(delays.seconds), reader.counts.missing
    cpu, wall = time.process_time(), time.time()
    turn_until(worker, load.begin + load.seconds)
    cpu, wall = time.process_time() - cpu, time.time() - wall
    late = np.array(delays.seconds[before:]) * 1e3
    return {
        "nodes": len(load.nodes),
        "core %": 100 * cpu / wall,
        "reveal us": 1e6 * cpu / len(late),
        "nodes a core": len(late) / cpu,
        "p50 ms": float(np.percentile(late, 50)),
        "p99 ms": float(np.percentile(late, 99)),
        "missing": reader.counts.missing - missing,
        "MiB a node": resident() / len(load.nodes) / 2**20,
    }


def turn_until(worker: Worker, end: float) -> None:
    while time.time() < end:
        worker.turn()


def encoded(recorded: Sequence[Slice], name: str) -> list[bytes]:
    gauges = wire.gauges(recorded[0][1])
    return [wire.encode(replace(message, node=name), gauges) for message, _ in recorded]


def announce(url: str, table: ChannelTable) -> None:
    client = redis.Redis.from_url(url, protocol=2)
    client.set(names.table_key(names.DEFAULT_PROFILE, table.key), table.announcement())
    client.close()


def resident() -> float:
    """Bytes of memory of this process."""
    with open("/proc/self/statm") as file:
        return float(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@contextmanager
def on_core(number: int) -> Iterator[None]:
    before = os.sched_getaffinity(0)
    pin(number)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
