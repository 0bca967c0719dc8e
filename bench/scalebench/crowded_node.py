"""Slices and subjects of a node with many pods, of which some are replaced again and again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

from reveal_contract import wire
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.metric import Kind, Lane
from reveal_contract.subjects import Identity, SubjectKind, to_rows
from support.synthetic_node import FAST, SLOW, Node

# of each pod; the first one is read ten times a second
_OF_PODS = {
    "cpu.subject.usage": 3e7, "cpu.subject.throttled_time": 0.0, "memory.subject.usage": 2e8,
    "storage.subject.read_bytes": 4e3, "storage.subject.write_bytes": 2e4,
    "network.subject.rx_bytes": 9e3, "network.subject.tx_bytes": 5e3, "cpu.subject.pids": 12.0,
}  # fmt: skip
_GAUGES = ("memory.subject.usage", "cpu.subject.pids")
_FAULT = 5e8  # of throttled time a second
LONGEST_NAME = "node-00000"


@dataclass(frozen=True)
class Generation:
    """A node with ``pods`` of which ``number`` were replaced since the begin."""

    number: int
    pods: int

    @property
    def names(self) -> list[str]:
        """Return the instances of its pods."""
        return [f"jobs/pod-{self.number + index}" for index in range(self.pods)]

    @cached_property
    def table(self) -> ChannelTable:
        fast, slow = list(FAST), list(SLOW)
        for pod in self.names:
            for position, metric in enumerate(_OF_PODS):
                kind = Kind.GAUGE if metric in _GAUGES else Kind.COUNTER
                lane = Lane.SLOW if position else Lane.FAST
                (slow if position else fast).append(Channel(metric, pod, kind, 1.0, lane))
        return ChannelTable(tuple(fast), tuple(slow))

    @cached_property
    def subjects(self) -> bytes:
        """Return the table of subjects as a collector writes it."""
        rows = (
            Identity(name, SubjectKind.POD, f"uid-{name}", "jobs", name.partition("/")[2])
            for name in self.names
        )
        return json.dumps(to_rows(rows), separators=(",", ":")).encode()

    def messages(self, seconds: int, *, faulty: bool) -> list[bytes]:
        """Return so many slices; in faulty ones a pod that stays is throttled."""
        values = {f"{metric}{{{pod}}}": value for pod in self.names
                  for metric, value in _OF_PODS.items()}  # fmt: skip
        if faulty:
            values[f"cpu.subject.throttled_time{{jobs/pod-{self.pods - 1}}}"] = _FAULT
        node, gauges = Node(self.table, self.number), wire.gauges(self.table)
        slices = (replace(node.slice(values), node=LONGEST_NAME) for _ in range(seconds))
        return [wire.encode(each, gauges) for each in slices]


def generations(pods: int, seconds: float, replace_s: float) -> Iterator[Generation]:
    """Yield all generations of nodes that send for so long, and replace a pod so often.

    Nodes differ in how soon they replace the first pod.
    """
    last = int(seconds / replace_s) + 2
    return (Generation(number, pods) for number in range(last + 1))
