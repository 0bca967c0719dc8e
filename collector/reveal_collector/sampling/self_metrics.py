"""Metrics of the collector itself, as channels like any other."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from reveal_contract.channels import Channel
from reveal_contract.metric import Kind, Lane

NAME = "own"


@dataclass(frozen=True)
class SelfMetrics:
    """Values at one moment: times in ns, counts since the start."""

    # one for each source, in the order of ``SelfMetricsSource``; None where it is not read
    read_ns: Sequence[int | None]
    late_ticks: int
    missed_ticks: int
    dropped_slices: int
    buffered_slices: int
    fallbacks: int


class SelfMetricsSource:
    """CPU time of the process, cost of each source, late ticks, and lost slices.

    CPU time is CLOCK_PROCESS_CPUTIME_ID of the whole process.  It is exact where utime and stime,
    which the kernel samples by tick, miss most of a process that sleeps between ticks.
    """

    name = NAME
    lane = Lane.SLOW

    def __init__(self, names: Sequence[str], current: Callable[[], SelfMetrics]) -> None:
        self._current = current
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
        """Do nothing: a process can always read its own values."""

    def read(self) -> Sequence[int | None]:
        """Return the current values."""
        metrics = self._current()
        return [
            time.process_time_ns(),
            metrics.late_ticks,
            metrics.missed_ticks,
            metrics.dropped_slices,
            metrics.buffered_slices,
            metrics.fallbacks,
            *metrics.read_ns,
        ]

    def close(self) -> None:
        """Do nothing: no file is open."""
