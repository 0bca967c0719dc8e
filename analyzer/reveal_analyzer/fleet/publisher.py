"""Publisher of this analyzer's nodes: a summary of each minute, written to Redis.

A summary holds the levels of all metrics that can do harm, and the activity above its quantum.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from reveal_analyzer.arrays import Indices
from reveal_analyzer.derive.columns import DEFAULT_MEMORY
from reveal_analyzer.fleet.exchange import Exchange
from reveal_analyzer.fleet.inventory import comparable, node_class
from reveal_analyzer.fleet.measures import CPUS, MEMORY, Quanta, measure
from reveal_analyzer.fleet.minute import MinuteData, MinuteLevels
from reveal_analyzer.fleet.summary import Summary
from reveal_analyzer.fleet.workload import jobs, workload
from reveal_contract.facts import Facts
from reveal_contract.subjects import Identity

BATCH = 20  # summaries per call, about a millisecond each: slices must not wait
_LAYOUTS = 64  # cached: nodes of one kind share a layout


class NodeSetup(NamedTuple):
    """The class of a node and its settings, from its facts."""

    kind: str
    facts: dict[str, str]


UNKNOWN = NodeSetup("", {})


class SummaryPublisher:
    """Summarizes minutes that ended and publishes them, a batch per call.

    Methods raise what redis-py raises when Redis is unavailable.  The batch is lost then, and the
    next minute is published.
    """

    def __init__(self, exchange: Exchange) -> None:
        self._exchange = exchange
        self._setups: dict[str, NodeSetup] = {}
        self._ended: dict[str, MinuteData] = {}

    def set_facts(self, facts: Facts) -> None:
        """Use the current facts of a node for its next summaries."""
        self._setups[facts.node] = NodeSetup(node_class(facts), comparable(facts))

    def drop(self, node: str) -> None:
        """Forget a node that this analyzer no longer owns."""
        self._setups.pop(node, None)
        self._ended.pop(node, None)

    def submit(self, node: str, minute: MinuteData) -> None:
        """Queue a minute that ended; it replaces an earlier one that is still queued."""
        self._ended[node] = minute

    def publish(self) -> None:
        """Publish a batch of the queued minutes."""
        batch = {node: self._ended.pop(node) for node in list(self._ended)[:BATCH]}
        subjects = self._exchange.subjects(list(batch))
        self._exchange.put(
            summarize(node, ended.levels(), self._setups.get(node, UNKNOWN), subjects[node])
            for node, ended in batch.items()
        )


@dataclass(frozen=True)
class _MetricSplit:
    """Names and indices of a minute's metrics: those that can do harm, and activity."""

    harmful: tuple[str, ...]
    harmful_indices: Indices
    active: tuple[str, ...]
    active_indices: Indices
    quanta: Quanta


def summarize(
    node: str, levels: MinuteLevels, setup: NodeSetup, subjects: Iterable[Identity]
) -> Summary:
    """Return the summary of one minute; activity below its quantum is left out.

    Activity that was not read is NaN: it is not below its quantum.
    """
    split = _split(levels.names)
    found = jobs(levels.subjects, subjects, node)
    memory, cpus = _level(levels, MEMORY, DEFAULT_MEMORY), _level(levels, CPUS, 1.0)
    active = levels.levels[split.active_indices]
    significant = ~(np.abs(active) < split.quanta.scaled(memory, cpus))
    return Summary(
        node=node,
        minute=levels.minute,
        seconds=levels.seconds,
        kind=setup.kind,
        names=split.harmful,
        levels=levels.levels[split.harmful_indices],
        spreads=levels.spreads[split.harmful_indices],
        activity={split.active[i]: float(active[i]) for i in np.flatnonzero(significant)},
        workload=workload(levels.subjects, found),
        jobs=found,
        facts=setup.facts,
    )


@lru_cache(maxsize=_LAYOUTS)
def _split(names: tuple[str, ...]) -> _MetricSplit:
    measures = [(i, name, known) for i, name in enumerate(names) if (known := measure(name))]
    harmful = [(i, name) for i, name, known in measures if known.sign]
    active = [(i, name, known) for i, name, known in measures if not known.sign]
    return _MetricSplit(
        tuple(name for _, name in harmful),
        np.array([i for i, _ in harmful], np.intp),
        tuple(name for _, name, _ in active),
        np.array([i for i, _, _ in active], np.intp),
        Quanta.of(known for _, _, known in active),
    )


def _level(levels: MinuteLevels, name: str, default: float) -> float:
    found = float(levels.levels[levels.names.index(name)]) if name in levels.names else 0.0
    return found if found > 0 else default
