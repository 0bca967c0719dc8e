"""Redis of a node whose pods come and go, by the real sink: an hour, ten times as fast."""

from __future__ import annotations

import os
import time
from typing import Any

import redis

from benchmark_report import Row
from reveal_cli.broker import Broker
from reveal_collector.shipping import redis_sink
from reveal_collector.shipping.redis_sink import RedisSink
from reveal_collector.shipping.sinks import EncodedSlice
from reveal_contract import catalogue
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.metric import Kind, Lane, Scope
from reveal_contract.settings import CollectorSettings

SPEED = 10
PODS = 40
CHANGE_S = 2  # a pod ends and another starts
SLICE_BYTES = 1700
_ROWS = [row for row in catalogue.rows() if row.lane is not Lane.DERIVED]
_ROWS = [row for row in _ROWS if row.kind in (Kind.COUNTER, Kind.GAUGE)]
_HOST = tuple(
    Channel(row.name, "", row.kind, 1.0, row.lane)
    for row in _ROWS
    if row.scope is not Scope.SUBJECT
)
_OF_POD = [row for row in _ROWS if row.scope is Scope.SUBJECT][:14]


def pods(first: int) -> list[str]:
    numbers = range(first, first + PODS)
    return [f"team-{n % 5}/worker-{n:05}-7d9f8b6c5d-x2k{n % 97:02}" for n in numbers]


def table(first: int) -> ChannelTable:
    """Return the table while the pods from this number on run."""
    own = [
        Channel(row.name, pod, row.kind, 1.0, row.lane) for pod in pods(first) for row in _OF_POD
    ]
    every = (*_HOST, *own)
    return ChannelTable(
        tuple(each for each in every if each.lane is Lane.FAST),
        tuple(each for each in every if each.lane is not Lane.FAST),
    )


def measure(minutes: int) -> list[Row]:
    """Return the bytes of Redis during the made-up hour, and after the end of the collector."""
    redis_sink.STATUS_SECONDS /= SPEED
    stream_seconds, buffer_seconds = 120 // SPEED, 60 // SPEED
    with Broker() as broker:
        client = redis.Redis.from_url(broker.url)
        sink = RedisSink(
            CollectorSettings(
                "bench", broker.url, stream_seconds=stream_seconds, buffer_seconds=buffer_seconds
            )
        )
        current = {"pods": 0}
        sink.start(
            lambda: {
                "subjects": [f"pod-{n}" for n in range(current["pods"], current["pods"] + PODS)]
            }
        )
        rows = _hour(client, sink, current, minutes)
        sink.close(2.0)
        time.sleep(2 * stream_seconds + buffer_seconds + 2)
        return [*rows, _row(client, "after the collector ended, and the time of tables")]


def _hour(client: redis.Redis, sink: RedisSink, current: dict[str, int], minutes: int) -> list[Row]:
    rows, began, now = [], time.monotonic(), table(0)
    for second in range(1, 60 * minutes + 1):
        if second % CHANGE_S == 0:
            current["pods"] += 1
            now = table(current["pods"])
        sink.put(
            EncodedSlice("bench", b"b" * 16, second, time.time_ns(), now, os.urandom(SLICE_BYTES))
        )
        time.sleep(max(0.0, began + second / SPEED - time.monotonic()))
        if second in (60, 300, 900, 1800, 3600):
            rows.append(_row(client, f"after {second // 60} min"))
    return rows


def _row(client: redis.Redis, when: str) -> Row:
    keys: Any = client.keys()
    sizes = {key: int(client.memory_usage(key, samples=0) or 0) for key in keys}
    tables = [size for key, size in sizes.items() if b":table:" in key or b":changes:" in key]
    ends = [client.ttl(key) for key in keys]
    return {
        "when": when,
        "KB": sum(sizes.values()) / 1e3,
        "tables": len(tables),
        "KB of tables": sum(tables) / 1e3,
        "keys without an end": ends.count(-1),
    }
