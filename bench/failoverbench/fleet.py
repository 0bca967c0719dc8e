"""Nodes with known faults that send made-up seconds through the collector's sink.

    python bench/failoverbench/fleet.py URL FIRST COUNT OF PHASE    until SIGTERM

As a program it sends for nodes FIRST to FIRST + COUNT - 1 of OF, with the faults of nodes that
began at PHASE (s since the epoch).  It prints the faults and counts as JSON when it ends.  It uses
the packages that Python finds, so that those of an earlier version can send.
"""

from __future__ import annotations

import argparse
import json
import logging
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

sys.path.append(str(Path(__file__).parents[2] / "tests"))

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
    """Nodes ``first`` and following, of all; a second of each, spread over the second."""

    url: str
    count: int
    first: int = 0
    all: int = 0  # 0 is ``count``
    began_s: float = 0.0  # of the faults; 0 is now
    boot: bytes = BOOT
    faults: list[Fault] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.all = self.all or self.count
        self.began_s = self.began_s or time.time()
        self._numbers = range(self.first, self.first + self.count)
        self._nodes = {number: Node(seed=number) for number in self._numbers}
        self._sinks = {
            number: RedisSink(CollectorSettings(_name(number), self.url))
            for number in self._numbers
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
    def sent(self) -> int:
        return sum(node.second for node in self._nodes.values())

    @property
    def delivered(self) -> int:
        return sum(sink.health().delivered for sink in self._sinks.values())

    @property
    def dropped(self) -> int:
        return sum(sink.health().dropped for sink in self._sinks.values())

    @property
    def buffered(self) -> int:
        return sum(sink.health().buffered for sink in self._sinks.values())

    def _send(self) -> None:
        due = time.time()
        while not self._stopping.is_set():
            for index, number in enumerate(self._numbers):
                self._stopping.wait(max(0.0, due + index / self.count - time.time()))
                self._put(number)
            due += 1.0

    def _put(self, number: int) -> None:
        now, name = time.time(), _name(number)
        age = now - self.began_s - 2 * WARMUP_S - CYCLE_S * number / self.all
        is_faulty = age > 0 and age % CYCLE_S < FAULT_S
        if is_faulty and number not in self._faulty:
            self.faults.append(Fault(name, now - 1))
        (self._faulty.add if is_faulty else self._faulty.discard)(number)
        message = self._nodes[number].slice(THROTTLED if is_faulty else {})
        start_ns = int((now - 1) * 1e9)
        message = replace(message, node=name, boot=self.boot, start_ns=start_ns)
        data = wire.encode(message, GAUGES)
        slice_ = EncodedSlice(name, self.boot, message.sequence, start_ns, TABLE, data)
        self._sinks[number].put(slice_)


def _name(number: int) -> str:
    return f"node-{number}"


def main() -> None:
    """Send until SIGTERM, then print what was sent."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("url")
    parser.add_argument("first", type=int)
    parser.add_argument("count", type=int)
    parser.add_argument("all", type=int, metavar="OF")
    parser.add_argument("phase", type=float)
    asked = parser.parse_args()
    logging.disable(logging.WARNING)
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    boot = time.time_ns().to_bytes(16, "big")  # as a collector that starts
    fleet = Fleet(asked.url, asked.count, asked.first, asked.all, asked.phase, boot)
    with fleet.sending():
        ended.wait()
    print(json.dumps({
        "faults": fleet.faults, "sent": fleet.sent, "delivered": fleet.delivered,
        "dropped": fleet.dropped, "buffered": fleet.buffered,
    }))  # fmt: skip


if __name__ == "__main__":
    main()
