"""Which job runs where and when: fixed, so that two runs can be compared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

CYCLE_S = 360.0


@dataclass(frozen=True)
class Job:
    """``kind`` as in ``workloads``; ``turn`` says on which node, the next one each cycle."""

    kind: str
    turn: int
    starts_s: float
    ends_s: float


@dataclass(frozen=True)
class Step:
    """At ``at_s`` after the beginning a job of that name starts on a node, or ends."""

    start_s: float
    starts: bool
    kind: str
    name: str
    node: str


_CYCLE = (
    Job("training", 0, 20, 260),
    Job("serving", 1, 40, 300),
    Job("asking", 2, 60, 290),  # over the network: from another node
    Job("loading", 2, 90, 335),
)
# from the first minute to the end: what is learned of it must bear what comes and goes beside it
_STEADY_S = 10.0


def steps(seconds: float, nodes: Sequence[str]) -> list[Step]:
    """In order of time; nothing starts that would not live for a minute."""
    planned = [Step(_STEADY_S, True, "training", "steady", nodes[0])]
    planned += [cycle for cycle in _cycles(seconds, nodes) if cycle.start_s < seconds]
    return sorted(planned, key=lambda item: item.start_s)


def _cycles(seconds: float, nodes: Sequence[str]) -> Iterator[Step]:
    for cycle in range(int(seconds // CYCLE_S) + 1):
        for job in _CYCLE:
            node = nodes[(job.turn + cycle) % len(nodes)]
            name = f"{job.kind}-{cycle + 1}"
            starts, ends = (cycle * CYCLE_S + moment for moment in (job.starts_s, job.ends_s))
            if starts <= seconds - 60:
                yield Step(starts, True, job.kind, name, node)
                yield Step(ends, False, job.kind, name, node)
