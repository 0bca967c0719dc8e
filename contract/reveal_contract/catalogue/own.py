"""Catalogue rows: the collector about itself."""

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
         "CPU time of the process that collects; in `reveal scan` of the collector alone."),
    _own("read_time", "ns", Kind.GAUGE, 1e6, "",
         "How long the last read of one source took, by the clock on the wall."),
    _own("late_ticks", "ticks", Kind.COUNTER, 1, "",
         "Ticks that came more than a tenth of the period late."),
    _own("missed_ticks", "ticks", Kind.COUNTER, 1, "",
         "Ticks a whole period late or more: recorded as missing."),
    _own("dropped_slices", "slices", Kind.COUNTER, 1, "",
         "Slices thrown away because Redis stayed away longer than the buffer lasts."),
    _own("buffered_slices", "slices", Kind.GAUGE, 5, "",
         "Slices that wait for Redis."),
    _own("fallbacks", "fallbacks", Kind.GAUGE, 1, "",
         "Lesser ways in use: no real-time priority, a source in a slower lane, a broken source."),
)  # fmt: skip
PATTERNS: tuple[Callable[[str], Metric | None], ...] = ()
