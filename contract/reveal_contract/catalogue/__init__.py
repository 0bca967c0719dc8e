"""The catalogue: every metric exactly once.

Each module has the rows of a group of sources; this one looks rows up.  Kernels differ in many
rare counters (vmstat, netstat).  Such files have a *pattern*, which creates a row for a field
without an explicit row.  A site adds its own rows with a plugin (``plugins``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache

from reveal_contract import plugins
from reveal_contract.catalogue import (
    cpu,
    derived,
    devices,
    gpu,
    infiniband,
    ledger,
    memory,
    network,
    own,
    percpu,
    perf,
    power,
    protocols,
    space,
    storage,
    subject,
    vmstat,
)
from reveal_contract.metric import Metric

Pattern = Callable[[str], Metric | None]

_MODULES = (
    cpu,
    percpu,
    memory,
    vmstat,
    storage,
    network,
    protocols,
    perf,
    power,
    subject,
    ledger,
    gpu,
    devices,
    infiniband,
    space,
    own,
    derived,
)


class UnknownMetricError(KeyError):
    """No row and no pattern of the catalogue matches this name."""


def rows() -> tuple[Metric, ...]:
    """Return all explicit rows."""
    return tuple(_by_name().values())


@cache
def find(name: str) -> Metric:
    """Return the row of a metric; raises ``UnknownMetricError`` if no pattern matches its name."""
    row = _by_name().get(name)
    if row is not None:
        return row
    for pattern in _patterns():
        if (row := pattern(name)) is not None:
            return row
    raise UnknownMetricError(name)


@cache
def _by_name() -> dict[str, Metric]:
    built_in = [module.ROWS for module in _MODULES]
    return _unique(row for rows in (*built_in, *plugins.parts("ROWS")) for row in rows)


@cache
def _patterns() -> tuple[Pattern, ...]:
    built_in = [module.PATTERNS for module in _MODULES]
    return tuple(row for group in (*built_in, *plugins.parts("PATTERNS")) for row in group)


def _unique(rows: Iterable[Metric]) -> dict[str, Metric]:
    by_name: dict[str, Metric] = {}
    for row in rows:
        if row.name in by_name:
            raise ValueError(f"catalogue: {row.name} is defined twice")
        by_name[row.name] = row
    return by_name
