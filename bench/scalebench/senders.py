"""Processes that send the slices of many nodes to the primaries of a Redis Cluster."""

from __future__ import annotations

import multiprocessing
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection

import redis

from analysisbench.slice_load import SLOTS, first_tick_ns, restamped, slots
from failoverbench.fleet import FAULT_S, Fault
from reveal_contract import names
from scalebench.crowded_node import generations

CYCLE_S = 300  # from one fault of a node to its next one
_TEMPLATES = 8
_STREAM_S = 120
_PROFILE = names.DEFAULT_PROFILE


@dataclass(frozen=True)
class Load:
    """Nodes ``first`` to ``first + count`` of ``total``; ``ports`` are those of the shards.

    Each node replaces a pod every ``replace_s`` seconds.
    """

    first: int
    count: int
    total: int
    pods: int
    replace_s: float
    ports: Sequence[int]
    begin_s: float
    seconds: int
    warmup_s: int


@dataclass
class Sent:
    """What a process sent."""

    slices: int = 0
    bytes: int = 0
    latest_s: float = 0.0  # after its time
    tables: int = 0
    faults: list[Fault] = field(default_factory=list)


class Sender:
    """A process that sends a load and returns what it sent."""

    def __init__(self, load: Load) -> None:
        self._ours, theirs = multiprocessing.Pipe()
        self._process = multiprocessing.Process(target=_run, args=(load, theirs), daemon=True)
        self._process.start()

    def join(self) -> Sent:
        sent: Sent = self._ours.recv()
        self._process.join()
        return sent


def _run(load: Load, theirs: Connection) -> None:
    theirs.send(_Nodes(load).send())


class _Nodes:
    """The nodes of one process."""

    def __init__(self, load: Load) -> None:
        self._load, self._sent = load, Sent()
        self._clients = {port: redis.Redis(port=port) for port in set(load.ports)}
        self._generations = list(generations(load.pods, load.seconds, load.replace_s))
        self._healthy = [each.messages(_TEMPLATES, faulty=False) for each in self._generations]
        self._faulty = [each.messages(_TEMPLATES, faulty=True) for each in self._generations]
        self._known: dict[str, int] = {}  # the generation that was announced of each node
        self._due: list[list[int]] = [[] for _ in range(SLOTS)]
        for number in range(load.first, load.first + load.count):
            self._due[number % SLOTS].append(number)

    def send(self) -> Sent:
        for slot in slots(self._load.begin_s, self._load.seconds):
            self._sent.latest_s = max(self._sent.latest_s, slot.late_s)
            self._send(self._due[slot.number], slot.second, slot.closed_s)
        return self._sent

    def _send(self, numbers: Sequence[int], second: int, closed_s: float) -> None:
        by_port: Mapping[int, list[int]] = defaultdict(list)
        for number in numbers:
            by_port[self._load.ports[names.shard(name_of(number))]].append(number)
        for port, own in by_port.items():
            with self._clients[port].pipeline(transaction=False) as pipe:
                for number in own:
                    self._add(pipe, number, second, closed_s)
                pipe.execute()

    def _add(self, pipe: redis.client.Pipeline, number: int, second: int, closed_s: float) -> None:
        load, name = self._load, name_of(number)
        share = number / load.total
        generation = int(second / load.replace_s + share)
        if self._known.get(name) != generation:
            self._announce(pipe, name, generation)
        age = second - load.warmup_s - CYCLE_S * share
        is_faulty = age >= 0 and age % CYCLE_S < FAULT_S
        if is_faulty and age % CYCLE_S < 1:
            self._sent.faults.append(Fault(name, closed_s - 1))
        templates = (self._faulty if is_faulty else self._healthy)[generation]
        start_ns = first_tick_ns(int(closed_s * 1e9))
        data = restamped(templates[second % _TEMPLATES], name, second, start_ns)
        fields = {
            names.FIELD_NODE: name, names.FIELD_SEQUENCE: second, names.FIELD_TIME: start_ns,
            names.FIELD_DATA: data,
        }  # fmt: skip
        oldest_ms = int((closed_s - _STREAM_S) * 1000)
        pipe.xadd(names.samples_key(_PROFILE, names.shard(name)), fields, minid=oldest_ms)
        self._sent.slices += 1
        self._sent.bytes += len(data)

    def _announce(self, pipe: redis.client.Pipeline, name: str, generation: int) -> None:
        """Write the subjects of a node, as a collector does when a pod was replaced."""
        self._known[name] = generation
        key = names.node_key(_PROFILE, name)
        pipe.hset(key, names.SUBJECTS, self._generations[generation].subjects)
        pipe.expire(key, names.KEPT_SECONDS)
        self._sent.tables += 1


def name_of(number: int) -> str:
    """Return the name of a node: all have the same length, so that templates fit."""
    return f"node-{number:05d}"
