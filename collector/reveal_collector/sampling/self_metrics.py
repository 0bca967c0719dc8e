"""The collector about itself, as channels like any other."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from reveal_contract.channels import Channel
from reveal_contract.metric import Kind, Lane

NAME = "own"


@dataclass(frozen=True)
class SelfMetrics:
    """What the collector knows of itself at one moment; times in ns, counts since its start."""

    read_ns: Sequence[int]  # one a source, in the order given to ``OwnSource``
    late_ticks: int
    missed_ticks: int
    dropped_slices: int
    buffered_slices: int
    fallbacks: int


class SelfMetricsSource:
    """Own CPU time, cost of each source, punctuality, what was dropped.

    CPU time is CLOCK_PROCESS_CPUTIME_ID: exact where utime and stime, sampled by tick, miss
    most of a process that sleeps between ticks.  It is the whole process's.
    """

    name = NAME
    lane = Lane.SLOW

    def __init__(self, names: Sequence[str], figures: Callable[[], SelfMetrics]) -> None:
        self._figures = figures
        self.channels: tuple[Channel, ...] = (
            Channel("own.cpu_time", "", Kind.COUNTER, 1.0, Lane.SLOW),
            Channel("own.late_ticks", "", Kind.COUNTER, 1.0, Lane.SLOW),
            Channel("own.missed_ticks", "", Kind.COUNTER, 1.0, Lane.SLOW),
            Channel("own.dropped_slices", "", Kind.COUNTER, 1.0, Lane.SLOW),
            Channel("own.buffered_slices", "", Kind.GAUGE, 1.0, Lane.SLOW),
            Channel("own.fallbacks", "", Kind.GAUGE, 1.0, Lane.SLOW),
            *(Channel("own.read_time", name, Kind.GAUGE, 1.0, Lane.SLOW) for name in names),
        )

    def open(self) -> None:
        """Nothing to open: a process can always ask about itself."""

    def read(self) -> Sequence[int | None]:
        now = self._figures()
        return [
            time.process_time_ns(),
            now.late_ticks,
            now.missed_ticks,
            now.dropped_slices,
            now.buffered_slices,
            now.fallbacks,
            *now.read_ns,
        ]

    def close(self) -> None:
        """Nothing to close."""
