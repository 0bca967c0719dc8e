"""One pass over a recording: seconds, ledger, step times, changes; bounded for long recordings."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from reveal_analyzer.derive.deriver import Second
from reveal_analyzer.heartbeat.watch import StepWatch
from reveal_analyzer.ledger.accounts import AccountReader, Accounts
from reveal_analyzer.offline.recording_table import RecordingTable
from reveal_analyzer.stream.sequence import NodeSequence
from reveal_cli.page_data.model import Tick
from reveal_cli.recordings import Slices
from reveal_contract.channels import ChannelTable
from reveal_contract.facts import Facts
from reveal_contract.time_units import NS_PER_SECOND
from reveal_contract.wire import Message

MOST_SECONDS = 3600  # of all nodes whose columns are kept; of more, every second or third
MOST_TICKS = 200
_SETTLED_S = 15  # after the start: subjects that come later have started
_MOST_CHANGES = 6  # named in one tick
_CPU_USAGE = "cpu.subject.usage"


@dataclass
class NodeHistory:
    """What a recording has of one node; times in ns."""

    name: str
    step: int = 1
    table: RecordingTable = field(default_factory=RecordingTable)
    starts_ns: list[int] = field(default_factory=list)
    accounts: list[tuple[int, Accounts]] = field(default_factory=list)
    usage: list[tuple[int, dict[str, float]]] = field(default_factory=list)
    step_times: list[tuple[int, dict[str, float]]] = field(default_factory=list)
    arrivals: list[tuple[int, str]] = field(default_factory=list)
    lost: int = 0
    _watch: StepWatch = field(default_factory=StepWatch)
    _reader: AccountReader = field(default_factory=AccountReader)
    _known: set[str] = field(default_factory=set)
    _sequence: NodeSequence = field(default_factory=NodeSequence)

    def push(self, message: Message, table: ChannelTable) -> None:
        """Add one slice."""
        self.lost += self._sequence.accept(message).gap
        steps = self._watch.update(message, table)
        self.step_times.append(
            (message.start_ns, {name: step.period for name, step in steps.items()})
        )
        self.starts_ns.append(message.start_ns)
        if (len(self.starts_ns) - 1) % self.step:
            return
        second = self.table.push(message, table)
        accounts = self._reader.read(second)
        if accounts is not None:
            self.accounts.append((second.start_ns, accounts))
        self._add_usage(second)

    @property
    def gaps_ns(self) -> list[tuple[int, int]]:
        """Return the times without slices."""
        return [
            (first + NS_PER_SECOND, second)
            for first, second in pairwise(self.starts_ns)
            if second - first > 2 * NS_PER_SECOND
        ]

    @property
    def without_steps(self) -> list[str]:
        """Return a line for each busy subject whose step time is not known, with the reason."""
        return [line for line in self._watch.lines() if "no heartbeat" in line]

    def _add_usage(self, second: Second) -> None:
        usage = {
            channel.instance: float(second.channels[index]) / 1e9
            for index, channel in enumerate(second.plan.channels)
            if channel.metric == _CPU_USAGE
        }
        self.usage.append((second.start_ns, usage))
        new = usage.keys() - self._known
        if self._known and second.start_ns - self.starts_ns[0] > _SETTLED_S * NS_PER_SECOND:
            self.arrivals += [(second.start_ns, name) for name in sorted(new)]
        self._known |= new


@dataclass(frozen=True)
class History:
    """The nodes of a recording, the facts that were read, and the notes of the collector."""

    nodes: Mapping[str, NodeHistory]
    facts: list[tuple[Facts, int]]
    collector: Mapping[str, Any]
    truncated: bool

    @property
    def start_ns(self) -> int:
        # not the first one: a clock may have been set back
        return min(min(node.starts_ns) for node in self.nodes.values())

    @property
    def end_ns(self) -> int:
        return max(max(node.starts_ns) for node in self.nodes.values()) + NS_PER_SECOND


def read_history(slices: Slices, count: int) -> History:
    """Return the history of a recording that has about so many slices, of all nodes together."""
    nodes: dict[str, NodeHistory] = {}
    step = max(1, -(-count // MOST_SECONDS))
    for message, table in slices:
        nodes.setdefault(message.node, NodeHistory(message.node, step)).push(message, table)
    collector: Mapping[str, Any] = next(
        (n["collector"] for n in slices.notes if _has_collector(n)), {}
    )
    return History(nodes, slices.facts.copy(), collector, slices.truncated)


def _has_collector(note: Mapping[str, Any]) -> bool:
    return isinstance(note.get("collector"), dict)


def ticks(history: History) -> tuple[list[Tick], int]:
    """Return changes of the configuration and subjects that came, in their order.

    At most ``MOST_TICKS`` are returned, changes first, and the number of those left out.
    """
    start, several = history.start_ns, len(history.nodes) > 1
    found = [
        Tick((time_ns - start) / 1e9, "subject", f"{_where(node.name, several)}{name} began")
        for node in history.nodes.values()
        for time_ns, name in node.arrivals
    ]
    for node in history.nodes:
        own = [(facts, time_ns) for facts, time_ns in history.facts if facts.node == node]
        for (before, _), (after, time_ns) in pairwise(own):
            if changed := _changed(before, after):
                text = f"{_where(node, several)}{changed}"
                found.append(Tick(max(0.0, (time_ns - start) / 1e9), "configuration", text))
    found.sort(key=lambda tick: (tick.kind != "configuration", tick.time))
    chosen = sorted(found[:MOST_TICKS], key=lambda tick: tick.time)
    return chosen, len(found) - len(chosen)


def _where(node: str, several: bool) -> str:
    return f"{node}: " if several else ""


def _changed(before: Facts, after: Facts) -> str:
    """Return the settings that differ: ``kernel.thp: always, was madvise``."""
    old, new = (dict(_flat(json.loads(facts.to_json()))) for facts in (before, after))
    keys = sorted(key for key in old.keys() | new.keys() if old.get(key) != new.get(key))
    parts = [f"{key}: {new.get(key, 'gone')}, was {old.get(key, 'not there')}" for key in keys]
    more = [f"and {len(parts) - _MOST_CHANGES} more"] if len(parts) > _MOST_CHANGES else []
    return "; ".join([*parts[:_MOST_CHANGES], *more])


def _flat(value: Any, path: str = "") -> Iterable[tuple[str, str]]:
    """Yield the leaves of JSON with their paths."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield from _flat(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _flat(item, f"{path}[{index}]")
    else:
        yield path, str(value)
