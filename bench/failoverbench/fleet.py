"""Nodes with known faults that send made-up seconds through the collector's sink."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from reveal_collector.shipping.redis_sink import RedisSink
from reveal_collector.shipping.sinks import EncodedSlice
from reveal_contract import wire
from reveal_contract.settings import CollectorSettings
from support.synthetic_node import BOOT, TABLE, WORK, Node

CYCLE_S, FAULT_S = 60, 15
_BEGINS_S = 1.5
WARMUP_S = 30  # of the analyzer
THROTTLED = {f"cpu.subject.throttled_time{{{WORK}}}": 5e8}
GAUGES = wire.gauges(TABLE)


class Fault(NamedTuple):
    """A node and when its fault began (s since the epoch)."""

    node: str
    onset_s: float


@dataclass
class Fleet:
    """Nodes that send a second each second, spread over it; their faults are noted.

    They are the nodes from number ``first`` on, of ``total`` (0: of these).  ``began_s`` is when
    the first collectors began, and ``seconds`` how many each node has sent since then.
    """

    url: str
    count: int
    first: int = 0
    total: int = 0
    began_s: float = field(default_factory=time.time)
    seconds: Mapping[str, int] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)

    def __post_init__(self) -> None:
        numbers = range(self.first, self.first + self.count)
        self._nodes = {number: Node(seed=number) for number in numbers}
        for number, node in self._nodes.items():
            node.second = self.seconds.get(_name(number), 0)
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
    def sent(self) -> dict[str, int]:
        """How many seconds each node has sent, with those of collectors before."""
        return {_name(number): node.second for number, node in self._nodes.items()}

    @property
    def dropped(self) -> int:
        return sum(sink.health().dropped for sink in self._sinks.values())

    @property
    def buffered(self) -> int:
        return sum(sink.health().buffered for sink in self._sinks.values())

    def _send(self) -> None:
        due = time.time()
        while not self._stopping.is_set():
            for index, number in enumerate(self._nodes):
                self._stopping.wait(max(0.0, due + index / self.count - time.time()))
                self._put(number)
            due += 1.0

    def _put(self, number: int) -> None:
        now, name = time.time(), _name(number)
        age = now - self.began_s - 2 * WARMUP_S - CYCLE_S * number / (self.total or self.count)
        is_faulty = age > 0 and age % CYCLE_S < FAULT_S
        # a fault that is under way when a collector begins was noted by the one before
        if is_faulty and number not in self._faulty and age % CYCLE_S < _BEGINS_S:
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
