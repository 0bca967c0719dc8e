"""Which levels of a minute are told: all that can hurt, and the activity that matters."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reveal_analyzer.arrays import Floats
from reveal_analyzer.derive.columns import LEVEL, Column, quanta
from reveal_analyzer.fleet.measures import Measure, measure
from reveal_analyzer.fleet.minute import Levels
from reveal_analyzer.fleet.summary import Summary
from reveal_analyzer.fleet.workload import jobs, workload
from reveal_contract.subjects import Identity

_LAYOUTS = 64  # remembered: nodes of one kind have one
MEMORY, CPUS = "memory.mem_total", "cpu.online"
USUAL_MEMORY = float(16 << 30)


class Setup(NamedTuple):
    """What the facts of a node say: its class and how it is set up."""

    kind: str
    facts: dict[str, str]


UNKNOWN = Setup("", {})


@dataclass(frozen=True)
class Quanta:
    """What begins to matter, as it grows with the memory and the CPUs of a node."""

    absolute: Floats
    of_memory: Floats
    of_cpus: Floats

    @classmethod
    def of(cls, measures: Iterable[Measure]) -> Quanta:
        columns = [Column(one.row, "", LEVEL) for one in measures]
        fixed = quanta(columns, 0.0, 0)
        return cls(fixed, quanta(columns, 1.0, 0) - fixed, quanta(columns, 0.0, 1) - fixed)

    def at(self, memory: float, cpus: float) -> Floats:
        """On a node with so many bytes and CPUs."""
        found: Floats = self.absolute + self.of_memory * memory + self.of_cpus * cpus
        return found


@dataclass(frozen=True)
class _Split:
    """Where in a minute's levels is what can hurt, and where activity."""

    hurting: tuple[str, ...]
    hurting_at: NDArray[np.intp]
    active: tuple[str, ...]
    active_at: NDArray[np.intp]
    quanta: Quanta


def summarise(node: str, levels: Levels, setup: Setup, who: Iterable[Identity]) -> Summary:
    """What is told of one minute; ``who`` are the node's subjects.

    Activity below its quantum is as good as none and left out.
    """
    split = _split(levels.names)
    found = jobs(levels.subjects, who, node)
    memory, cpus = _level(levels, MEMORY, USUAL_MEMORY), _level(levels, CPUS, 1.0)
    active = levels.levels[split.active_at]
    matters = np.abs(active) >= split.quanta.at(memory, cpus)
    return Summary(
        node=node,
        minute=levels.minute,
        seconds=levels.seconds,
        kind=setup.kind,
        names=split.hurting,
        levels=levels.levels[split.hurting_at],
        spreads=levels.spreads[split.hurting_at],
        activity={split.active[at]: float(active[at]) for at in np.flatnonzero(matters)},
        workload=workload(levels.subjects, found),
        jobs=found,
        facts=setup.facts,
    )


@lru_cache(maxsize=_LAYOUTS)
def _split(names: tuple[str, ...]) -> _Split:
    measures = [(at, name, made) for at, name in enumerate(names) if (made := measure(name))]
    hurting = [(at, name) for at, name, made in measures if made.sign]
    active = [(at, name, made) for at, name, made in measures if not made.sign]
    return _Split(
        tuple(name for _, name in hurting),
        np.array([at for at, _ in hurting], np.intp),
        tuple(name for _, name, _ in active),
        np.array([at for at, _, _ in active], np.intp),
        Quanta.of(made for _, _, made in active),
    )


def _level(levels: Levels, name: str, otherwise: float) -> float:
    found = float(levels.levels[levels.names.index(name)]) if name in levels.names else 0.0
    return found if found > 0 else otherwise
