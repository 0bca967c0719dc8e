"""Catalogue rows: metrics of the collector itself."""

from __future__ import annotations

from collections.abc import Callable

from reveal_contract.metric import Kind, Lane, Metric, Scope, Subsystem


def _own(name: str, unit: str, kind: Kind, quantum: float, origin: str, meaning: str) -> Metric:
    return Metric(
        f"own.{name}", unit, kind, Subsystem.CPU, Scope.NODE, "own", Lane.SLOW, origin, meaning,
        quantum, family=f"own.{name}",
    )  # fmt: skip


ROWS: tuple[Metric, ...] = (
    _own("cpu_time", "ns", Kind.COUNTER, 1e7, "CLOCK_PROCESS_CPUTIME_ID",
         "CPU time of the process that collects; in `reveal scan` only that of the collector."),
    _own("read_time", "ns", Kind.GAUGE, 1e6, "",
         "Wall-clock time of the last read of one source."),
    _own("late_ticks", "ticks", Kind.COUNTER, 1, "",
         "Ticks that were late by more than a tenth of the period."),
    _own("missed_ticks", "ticks", Kind.COUNTER, 1, "",
         "Ticks that were late by a whole period or more: recorded as missing."),
    _own("dropped_slices", "slices", Kind.COUNTER, 1, "",
         "Slices dropped because Redis was away for longer than the buffer covers."),
    _own("buffered_slices", "slices", Kind.GAUGE, 5, "",
         "Slices that wait for Redis."),
    _own("fallbacks", "fallbacks", Kind.GAUGE, 1, "",
         "Fallbacks in use: no real-time priority, a source in a slower lane, a failed source."),
)  # fmt: skip
PATTERNS: tuple[Callable[[str], Metric | None], ...] = ()
