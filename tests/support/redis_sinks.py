"""A sink of a collector at a real Redis, and what it wrote there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import redis

from reveal_collector.shipping.redis_sink import RedisSink
from reveal_collector.shipping.sinks import EncodedSlice
from reveal_contract import names
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.settings import CollectorSettings

TABLE = ChannelTable((Channel("cpu.user"),), ())
OTHER = ChannelTable((Channel("cpu.user"), Channel("cpu.system")), ())
KEY = names.samples_key("default", names.shard("n1"))


def settings(path: Path, **changes: Any) -> CollectorSettings:
    return replace(CollectorSettings("n1", f"unix://{path}"), **changes)


def shipment(sequence: int, table: ChannelTable = TABLE, size: int = 10) -> EncodedSlice:
    return EncodedSlice("n1", bytes(range(16)), sequence, 7_000 + sequence, table, b"d" * size)


@contextmanager
def running(
    given: CollectorSettings, report: Callable[[], Mapping[str, Any]] | None = None
) -> Iterator[RedisSink]:
    sink = RedisSink(given)
    sink.start(report or (lambda: {"table": TABLE.key.hex(), "sequence": 3}))
    try:
        yield sink
    finally:
        sink.close(1.0)


def sequences(client: redis.Redis) -> list[int]:
    entries: Any = client.xrange(KEY)
    return [int(fields[b"q"]) for _, fields in entries]


def announced(client: redis.Redis) -> set[ChannelTable]:
    keys: Any = client.keys(names.table_key("default", b"") + "*")
    values: list[Any] = [client.get(key) for key in keys]
    return {ChannelTable.from_announcement(value) for value in values}


def status_of(client: redis.Redis) -> Any:
    return client.hget(names.node_key("default", "n1"), names.STATUS)


def facts_of(client: redis.Redis) -> Any:
    return client.hget(names.node_key("default", "n1"), names.FACTS)


def subjects_of(client: redis.Redis) -> bytes:
    found: Any = client.hget(names.node_key("default", "n1"), names.SUBJECTS)
    assert isinstance(found, bytes)
    return found
