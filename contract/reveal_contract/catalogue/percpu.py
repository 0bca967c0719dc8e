"""Catalogue rows created on demand: metrics of CPUs on hosts with too many for one channel each.

``cpu.user`` of each CPU becomes ``cpu.numa.user`` of each NUMA node, and ``cpu.percpu.user.max``,
``.argmax`` and ``.spread`` of the host.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from reveal_contract.catalogue import cpu, derived, network, storage
from reveal_contract.metric import Harm, Kind, Lane, Metric, Scope

_NAME = re.compile(r"([a-z]+)\.(?:numa\.(.+)|percpu\.(.+)\.(max|argmax|spread))\Z")
_OF_CPUS: dict[str, Metric] = {
    row.name.removesuffix(".percpu"): row
    for module in (cpu, network, storage)
    for row in module.ROWS
    if row.scope is Scope.CPU
} | {row.name: row for row in derived.ROWS if row.name == "cpu.busy"}


def folded(name: str) -> Metric | None:
    """Return the row of ``AREA.numa.REST`` or ``AREA.percpu.REST.HOW`` if its base is per CPU."""
    match = _NAME.match(name)
    base = _OF_CPUS.get(f"{match[1]}.{match[2] or match[3]}") if match else None
    if match is None or base is None:
        return None
    row = replace(base, name=name, family=base.metric_group, kind=Kind.COUNTER, lane=_lane(base))
    if match[2]:
        return replace(
            row, scope=Scope.NUMA, meaning=f"{base.meaning}: sum over the CPUs of a NUMA node"
        )
    row = replace(row, scope=Scope.NODE)
    if match[4] == "max":
        return replace(row, meaning=f"{base.meaning}: largest of all CPUs at each reading")
    row = replace(row, family="", harm=Harm.NEITHER)
    if match[4] == "spread":
        return replace(row, meaning=f"{base.meaning}: spread over CPUs, 95th minus 50th percentile")
    return replace(
        row, kind=Kind.STATE, unit="cpu", quantum=1e6,  # the CPU changes all the time
        meaning=f"{base.meaning}: number of the CPU with the largest value",
    )  # fmt: skip


def _lane(base: Metric) -> Lane:
    """Return the lane of the source; one row is also computed from other channels."""
    return Lane.FAST if base.lane is Lane.DERIVED else base.lane


ROWS: tuple[Metric, ...] = ()
PATTERNS: tuple[Callable[[str], Metric | None], ...] = (folded,)
