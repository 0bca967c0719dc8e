"""An analyzer's worker on a real stream, with stubs for the analyses of its nodes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from reveal_analyzer.sinks.metrics import Metrics
from reveal_analyzer.state.tree import StateTree, flag, integer
from reveal_analyzer.worker import Worker
from reveal_contract import names
from reveal_contract.channels import ChannelTable
from reveal_contract.finding import (
    Finding,
    FindingChange,
    FindingUpdate,
    Severity,
    State,
    finding_id,
)
from reveal_contract.metric import Subsystem
from reveal_contract.wire import Message
from support.redis_streams import QUICK, Stream

OPENING = 3
# a test that waits for the machine loses no lease; what died loses its leases by ``expire``
_LONG_LEASE = replace(QUICK, lease=60.0)


class NodeStub:
    """An analysis that remembers what it got, and has a finding open from slice 3 on."""

    minutes = ranks = None  # without a fleet nobody reads them
    learning = False

    def __init__(self, node: str) -> None:
        self.node = node
        self.analyzed: list[tuple[int, bool]] = []
        self.restored: int | None = None
        self.last = -1
        self.is_open = False
        self.failing = -1

    def analyze(
        self, message: Message, table: ChannelTable, *, data: bytes = b"", silent: bool = False
    ) -> Sequence[FindingUpdate]:
        if message.sequence == self.failing:
            raise ZeroDivisionError(f"slice {message.sequence}")
        self.analyzed.append((message.sequence, silent))
        self.last = message.sequence
        if message.sequence != OPENING:
            return ()
        self.is_open = True
        return () if silent else [FindingUpdate(FindingChange.OPENED, self._finding())]

    def finish(self) -> Sequence[FindingUpdate]:
        return [FindingUpdate(FindingChange.CHANGED, self._finding())] if self.is_open else ()

    def save(self) -> StateTree:
        return {"last": self.last, "open": self.is_open}

    def restore(self, tree: StateTree) -> None:
        self.restored = self.last = integer(tree, "last")
        self.is_open = flag(tree, "open")

    def _finding(self) -> Finding:
        return Finding(
            finding_id(self.node, Subsystem.CPU, OPENING), self.node, Subsystem.CPU,
            Severity.HIGH, State.OPEN, OPENING, OPENING + 1, "it is slow",
        )  # fmt: skip


@dataclass
class Updates:
    """A sink that keeps what it gets."""

    rows: list[tuple[FindingChange, str]] = field(default_factory=list)

    def write(self, update: FindingUpdate) -> None:
        self.rows.append((update.change, update.finding.node_name))

    def close(self) -> None:
        pass


class Analyzer:
    """One worker with its metrics, the updates it wrote and the analyses it made."""

    def __init__(self, stream: Stream, owner: str, failing: int = -1, **options: object) -> None:
        self.stubs: list[NodeStub] = []
        self.updates, self.metrics = Updates(), Metrics()
        self._failing = failing
        self.reader = stream.reader(owner, timing=_LONG_LEASE, **options)
        self._client, self._owner = stream.client, owner
        self.worker = Worker(self.reader, self._make, [self.updates], self.metrics)

    def _make(self, node: str) -> NodeStub:
        self.stubs.append(NodeStub(node))
        self.stubs[-1].failing = self._failing
        return self.stubs[-1]

    def turn_until(self, done: Callable[[], bool], others: Sequence[Analyzer] = ()) -> None:
        deadline = time.monotonic() + 45  # only ends a test that hangs
        while not done():
            analyzed = {stub.node: stub.analyzed for stub in self.stubs}
            assert time.monotonic() < deadline, (analyzed, self.reader.status())
            for each in (self, *others):
                each.worker.turn()

    def until_slice(self, sequence: int, others: Sequence[Analyzer] = ()) -> NodeStub:
        """Go on until the last analysis has seen this slice."""
        self.turn_until(
            lambda: bool(self.stubs) and self.stubs[-1].last == sequence
            and self.stubs[-1].analyzed[-1:] == [(sequence, False)],
            others,
        )  # fmt: skip
        return self.stubs[-1]

    def expire(self) -> None:
        """End its leases, as time does after it died."""
        for number in self.reader.shards:
            self._client.delete(names.owner_key("default", number))
        self._client.zrem(names.analyzers_key("default"), self._owner)

    def states(self, result: str) -> float:
        value = self.metrics.registry.get_sample_value(
            "reveal_node_states_total", {"result": result}
        )
        assert value is not None
        return value
