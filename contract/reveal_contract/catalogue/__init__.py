"""The catalogue: every metric once.  One module a group of sources; this one looks them up.

Kernels differ in the long tail of their counters (vmstat, netstat): such files have a
*pattern* that makes a row for a field the explicit rows do not name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache

from reveal_contract.catalogue import (
    cpu,
    derived,
    memory,
    network,
    own,
    perf,
    protocols,
    storage,
    subject,
    vmstat,
)
from reveal_contract.metric import Metric

Pattern = Callable[[str], Metric | None]

_MODULES = (cpu, memory, vmstat, storage, network, protocols, perf, subject, own, derived)


class UnknownMetricError(KeyError):
    """No row and no pattern of the catalogue fits this name."""


_PATTERNS: tuple[Pattern, ...] = tuple(made for module in _MODULES for made in module.PATTERNS)


def rows() -> tuple[Metric, ...]:
    """All explicit rows."""
    return tuple(_by_name().values())


@cache
def find(name: str) -> Metric:
    """The row of a metric; raises ``UnknownMetricError`` for a name no pattern fits."""
    row = _by_name().get(name)
    if row is not None:
        return row
    for pattern in _PATTERNS:
        if (made := pattern(name)) is not None:
            return made
    raise UnknownMetricError(name)


@cache
def _by_name() -> dict[str, Metric]:
    return _unique(row for module in _MODULES for row in module.ROWS)


def _unique(rows: Iterable[Metric]) -> dict[str, Metric]:
    by_name: dict[str, Metric] = {}
    for row in rows:
        if row.name in by_name:
            raise ValueError(f"catalogue: {row.name} stands twice")
        by_name[row.name] = row
    return by_name
