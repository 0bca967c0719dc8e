"""Nodes with known faults that send made-up seconds through the collector's sink."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from reveal_collector.shipping.redis_sink import RedisSink
from reveal_collector.shipping.sinks import EncodedSlice
from reveal_contract import wire
from reveal_contract.settings import CollectorSettings
from support.synthetic_node import BOOT, TABLE, WORK, Node

CYCLE_S, FAULT_S = 60, 15
WARMUP_S = 30  # of the analyzer
THROTTLED = {f"cpu.subject.throttled_time{{{WORK}}}": 5e8}
GAUGES = wire.gauges(TABLE)


class Fault(NamedTuple):
    """A node and when its fault began (s since the epoch)."""

    node: str
    onset_s: float


@dataclass
class Fleet:
    """Nodes that send a second each second, spread over it; their faults are noted."""

    url: str
    count: int
    faults: list[Fault] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._began_s = time.time()
        self._nodes = {number: Node(seed=number) for number in range(self.count)}
        self._sinks = {
            number: RedisSink(CollectorSettings(_name(number), self.url)) for number in self._nodes
        }
        self._stopping = threading.Event()
        self._faulty: set[int] = set()

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
            for number in self._nodes:
                self._stopping.wait(max(0.0, due + number / self.count - time.time()))
                self._put(number)
            due += 1.0

    def _put(self, number: int) -> None:
        now, name = time.time(), _name(number)
        age = now - self._began_s - 2 * WARMUP_S - CYCLE_S * number / self.count
        is_faulty = age > 0 and age % CYCLE_S < FAULT_S
        if is_faulty and number not in self._faulty:
            self.faults.append(Fault(name, now - 1))
        (self._faulty.add if is_faulty else self._faulty.discard)(number)
        message = self._nodes[number].slice(THROTTLED if is_faulty else {})
        start_ns = int((now - 1) * 1e9)
        message = replace(message, node=name, start_ns=start_ns)
        data = wire.encode(message, GAUGES)
        slice_ = EncodedSlice(name, BOOT, message.sequence, start_ns, TABLE, data)
        self._sinks[number].put(slice_)


def _name(number: int) -> str:
    return f"node-{number}"
