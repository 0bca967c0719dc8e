"""Many nodes' slices into a Redis, each at its own moment of the second, by another process."""

from __future__ import annotations

import multiprocessing
import os
import struct
import time
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import NamedTuple

import redis

from reveal_contract import names

SLOTS = 100  # a second is sent in so many portions
_SEQUENCE_OFFSET, _NAME_OFFSET, _CRC_OFFSET, _CHECKED_FROM = 28, 66, 4, 8  # the layout of ``wire``
_TICKS, _TICK_NS = 10, 100_000_000
KEPT_SECONDS = 10  # in the streams


@dataclass(frozen=True)
class Load:
    """``templates`` are messages of a node whose name is as long as those of ``nodes``."""

    url: str
    templates: Sequence[bytes]
    nodes: Sequence[str]
    begin: float  # seconds since the epoch
    seconds: int


class Slot(NamedTuple):
    """A portion of a second that is over: slices whose last tick was in it are due."""

    second: int
    number: int
    closed_s: float  # its begin, since the epoch
    late_s: float  # since its end; negative where its end was waited for


class Sender:
    """The process that sends; begun before there is much to copy, it waits for its load."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("fork")
        self._ours, theirs = context.Pipe()
        self._process = context.Process(target=_wait_and_send, args=(theirs,), daemon=True)
        self._process.start()

    def send(self, load: Load) -> None:
        self._ours.send(load)

    def join(self) -> None:
        self._process.join()


def _wait_and_send(theirs: Connection) -> None:
    pin(1)
    send(theirs.recv())


def send(load: Load) -> None:
    """A slice a second of every node, sent within 10 ms of its last tick."""
    client = redis.Redis.from_url(load.url, protocol=2)
    due: list[list[str]] = [[] for _ in range(SLOTS)]
    for node in load.nodes:
        due[zlib.crc32(node.encode()) % SLOTS].append(node)
    for slot in slots(load.begin, load.seconds):
        post(client, load, due[slot.number], slot.second, int(slot.closed_s * 1e9))
    client.close()


def slots(begin_s: float, seconds: int) -> Iterator[Slot]:
    """Yield the slots of so many seconds, each when it is over."""
    for second in range(seconds):
        for number in range(SLOTS):
            closed_s = begin_s + second + number / SLOTS
            late_s = time.time() - closed_s - 1 / SLOTS
            time.sleep(max(0.0, -late_s))
            yield Slot(second, number, closed_s, late_s)


def post(
    client: redis.Redis, load: Load, nodes: Sequence[str], second: int, closed_ns: int
) -> None:
    """The last tick of a slice was at ``closed_ns``."""
    template = load.templates[second % len(load.templates)]
    start_ns = first_tick_ns(closed_ns)
    kept = max(1, KEPT_SECONDS * len(load.nodes) // names.SHARDS)
    with client.pipeline(transaction=False) as pipe:
        for node in nodes:
            key = names.samples_key(names.DEFAULT_PROFILE, names.shard(node))
            data = restamped(template, node, second, start_ns)
            pipe.xadd(key, {names.FIELD_DATA: data}, maxlen=kept, approximate=True)
        pipe.execute()


def first_tick_ns(closed_ns: int) -> int:
    """Return the time of the first tick of a slice whose last one was at ``closed_ns``."""
    return closed_ns - (_TICKS - 1) * _TICK_NS


def restamped(template: bytes, node: str, sequence: int, start_ns: int) -> bytes:
    """A message with the name and time of another node: to encode each would take longer."""
    data = bytearray(template)
    struct.pack_into("<Qq", data, _SEQUENCE_OFFSET, sequence, start_ns)
    name = node.encode()
    data[_NAME_OFFSET : _NAME_OFFSET + len(name)] = name
    struct.pack_into("<I", data, _CRC_OFFSET, zlib.crc32(memoryview(data)[_CHECKED_FROM:]))
    return bytes(data)


def pin(number: int) -> None:
    """Keep this process on one core, where there are more: what is measured is a core."""
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[number % len(cores)]})
