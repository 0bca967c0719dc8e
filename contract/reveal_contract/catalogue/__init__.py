"""The catalogue: every metric once.  One module a group of sources; this one looks them up.

Kernels differ in the long tail of their counters (vmstat, netstat): such files have a
*pattern* that makes a row for a field the explicit rows do not name.  A site adds rows of its
own by a plugin (``plugins``).
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
    gpu,
    devices,
    infiniband,
    space,
    own,
    derived,
)


class UnknownMetricError(KeyError):
    """No row and no pattern of the catalogue fits this name."""


def rows() -> tuple[Metric, ...]:
    """All explicit rows."""
    return tuple(_by_name().values())


@cache
def find(name: str) -> Metric:
    """The row of a metric; raises ``UnknownMetricError`` for a name no pattern fits."""
    row = _by_name().get(name)
    if row is not None:
        return row
    for pattern in _patterns():
        if (made := pattern(name)) is not None:
            return made
    raise UnknownMetricError(name)


@cache
def _by_name() -> dict[str, Metric]:
    ours = [module.ROWS for module in _MODULES]
    return _unique(row for rows in (*ours, *plugins.parts("ROWS")) for row in rows)


@cache
def _patterns() -> tuple[Pattern, ...]:
    ours = [module.PATTERNS for module in _MODULES]
    return tuple(made for some in (*ours, *plugins.parts("PATTERNS")) for made in some)


def _unique(rows: Iterable[Metric]) -> dict[str, Metric]:
    by_name: dict[str, Metric] = {}
    for row in rows:
        if row.name in by_name:
            raise ValueError(f"catalogue: {row.name} stands twice")
        by_name[row.name] = row
    return by_name
