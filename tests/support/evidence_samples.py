"""Slices of a node with a fault, and a store in memory, for the tests of evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from reveal_analyzer.evidence.piece import Slice
from reveal_analyzer.evidence.whole import WholeEvidence
from reveal_contract.channels import ChannelTable
from reveal_contract.finding import Evidence, Finding, State
from reveal_contract.subjects import Identity
from reveal_contract.time_units import NS_PER_SECOND
from support import finding_factory
from support.synthetic_node import TABLE, Node

FIRST_NS = 1_700_000_000 * NS_PER_SECOND
PRESSURE = Evidence("cpu.pressure.some", "mean", "", "9e8", "2e6", "ns/s", "up")


def slices(seconds: int, table: ChannelTable = TABLE, onset: int = 100) -> list[Slice]:
    """Return slices in which CPUs are short from second ``onset`` on."""
    node = Node(table)
    fault = {"cpu.pressure.some": 900_000.0, "cpu.procs_running": 30.0}
    return [(node.slice(fault if second >= onset else None), table) for second in range(seconds)]


def finding(onset: int = 100, end: int | None = None, **other: Any) -> Finding:
    """Return the finding of that fault; its times are seconds of the slices."""
    last = onset + 10 if end is None else end
    given: dict[str, Any] = {
        "evidence": (PRESSURE,),
        "first_observed_ns": FIRST_NS + onset * NS_PER_SECOND,
        "last_observed_ns": FIRST_NS + last * NS_PER_SECOND,
        "state": State.OPEN if end is None else State.RESOLVED,
        **other,
    }
    name = given.pop("id", "cpu-0123456789")
    return finding_factory.finding(name, **given)


@dataclass
class ListedSlices:
    """A source that has the last two minutes of some slices, until ``now``."""

    slices: Sequence[Slice]
    now: int = 0
    identities: Sequence[Identity] = ()

    def since(self, node: str, since_ns: int) -> list[Slice]:
        recent = self.slices[max(0, self.now - 120) : self.now]
        return [each for each in recent if each[0].start_ns > since_ns]

    def subjects(self, node: str) -> Sequence[Identity]:
        return self.identities

    def close(self) -> None:
        pass


@dataclass
class MemoryStore:
    """A store that forgets nothing."""

    kind: str = "Redis"
    kept: dict[str, bytes] = field(default_factory=dict)
    left: dict[str, Mapping[str, Any]] = field(default_factory=dict)

    def encoded(self, recording: bytes) -> bytes:
        return recording

    def put(self, name: str, data: bytes, unfinished: Mapping[str, Any] | None) -> None:
        self.kept[name] = data
        self.left.pop(name, None)
        if unfinished is not None:
            self.left[name] = unfinished

    def get(self, name: str) -> bytes | None:
        return self.kept.get(name)

    def unfinished(self) -> dict[str, Mapping[str, Any]]:
        return dict(self.left)

    def close(self) -> None:
        pass


@dataclass
class MemoryHistory:
    """A store of nodes in memory, which raises ``error`` if that is set."""

    hours: dict[tuple[str, int], bytes] = field(default_factory=dict)
    error: Exception | None = None
    closed: bool = False

    def append(self, node: str, hour: int, part: bytes) -> int:
        if self.error is not None:
            raise self.error
        before = self.read(node, hour)
        self.hours[node, hour] = before + part
        return len(before)

    def read(self, node: str, hour: int) -> bytes:
        return self.hours.get((node, hour), b"")

    def close(self) -> None:
        self.closed = True


def whole_recording(finding: Finding, seconds: int) -> bytes:
    """Return the samples of a finding from slices that are all there."""
    evidence = WholeEvidence(finding, [], 10**6)
    for each in slices(seconds):
        evidence.add(each)
    return evidence.recording()


class FixedNodes:
    """Nodes of a stream: one with a recording, others without anything."""

    def __init__(self, node: str = "", data: bytes = b"") -> None:
        self._node, self._data = node, data

    def recording(self, node: str, since_ns: int) -> bytes:
        if node != self._node:
            raise LookupError(f"{node} has sent nothing")
        return self._data + str(since_ns).encode()

    def names(self) -> list[str]:
        return [self._node] if self._node else []

    def announced(self, node: str) -> dict[str, str | None]:
        return {"status": "{}" if node == self._node else None}
