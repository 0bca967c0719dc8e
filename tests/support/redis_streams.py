"""A stream as collectors write it and readers on it, for the tests of the stream."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np
import redis

from reveal_analyzer.stream.leases import LeaseTiming
from reveal_analyzer.stream.reader import StreamReader
from reveal_analyzer.stream.received import Received
from reveal_contract import names, wire
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.metric import Kind, Lane
from reveal_contract.settings import AnalyzerSettings

TABLE = ChannelTable(
    (Channel("cpu.user", kind=Kind.COUNTER), Channel("memory.free")),
    (Channel("memory.huge", lane=Lane.SLOW),),
)
QUICK = LeaseTiming(lease=0.6, beat=0.05, patience=0.2, settle=0.1)
T0 = 1_700_000_000_000_000_000


def message(node: str, sequence: int, table: ChannelTable = TABLE, **other: Any) -> wire.Message:
    fast = np.arange(10 * len(table.fast), dtype=np.int64).reshape(10, -1) + sequence
    slow = np.full(len(table.slow), sequence, np.int64)
    given: dict[str, Any] = {"boot": b"b" * 16, "start_ns": T0 + sequence * 10**9, **other}
    return wire.Message(
        node=node, sequence=sequence, tick_us=100_000, table=table.key, fast=fast, slow=slow,
        fast_missing=np.zeros(fast.shape, np.bool_), slow_missing=np.zeros(slow.shape, np.bool_),
        **given,
    )  # fmt: skip


@dataclass
class Stream:
    """What a collector does to Redis, and readers on the same one."""

    url: str
    stack: ExitStack

    def __post_init__(self) -> None:
        self.began_ms = int(time.time() * 1000)
        self.client = redis.Redis.from_url(self.url, protocol=2)
        self.stack.callback(self.client.close)

    def announce(self, table: ChannelTable = TABLE) -> None:
        self.client.set(names.table_key("default", table.key), table.announcement())

    def raw(self, node: str, fields: dict[Any, Any], entry_id: str = "*") -> bytes:
        key = names.samples_key("default", names.shard(node))
        written = self.client.xadd(key, fields, entry_id)
        assert isinstance(written, bytes)
        return written

    def send(self, *messages: wire.Message) -> None:
        for item in messages:
            data = wire.encode(item, wire.gauges(TABLE)[: item.fast.shape[1]])
            self.raw(item.node, {names.FIELD_NODE: item.node, names.FIELD_DATA: data})

    def reader(self, owner: str = "one", **options: Any) -> StreamReader:
        settings = AnalyzerSettings(redis_url=self.url)
        reader = StreamReader(settings, owner, **{"timing": QUICK, "ack_seconds": 0.0} | options)
        self.stack.callback(reader.close)
        return reader

    def pending(self, node: str) -> int:
        key = names.samples_key("default", names.shard(node))
        count = self.client.xpending(key, names.GROUP)["pending"]
        assert isinstance(count, int)
        return count


def read(
    reader: StreamReader,
    until: Callable[[list[Received]], bool],
    seconds: float = 45,  # only ends a test that hangs
    ack: bool = True,
) -> list[Received]:
    """Poll until the condition holds for all that came."""
    got: list[Received] = []
    deadline = time.monotonic() + seconds
    while not until(got):
        assert time.monotonic() < deadline, f"only {node_sequences(got)} came; {reader.status()}"
        batch = reader.poll()
        got += batch
        if ack:
            reader.ack(batch)
    return got


def count(number: int) -> Callable[[list[Received]], bool]:
    return lambda got: len(got) >= number


def node_sequences(got: list[Received]) -> list[tuple[str, int]]:
    return [(item.node, item.message.sequence) for item in got]


def beats(reader: StreamReader, number: int = 12) -> list[Received]:
    """So many polls: each shard is asked at least once."""
    return [item for _ in range(number) for item in reader.poll()]


def nodes_of_same_shard() -> tuple[str, str]:
    first = "node-0"
    same = (f"other-{i}" for i in range(10_000))
    return first, next(n for n in same if names.shard(n) == names.shard(first))
