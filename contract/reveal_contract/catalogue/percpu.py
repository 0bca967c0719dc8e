"""Catalogue rows made on demand: metrics of CPUs on hosts of so many that each one's is too much.

``cpu.user`` of each CPU becomes ``cpu.numa.user`` of each NUMA node and ``cpu.percpu.user.max``,
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
    """The row of ``AREA.numa.REST`` or ``AREA.percpu.REST.HOW``, if ``AREA.REST`` is of CPUs."""
    match = _NAME.match(name)
    base = _OF_CPUS.get(f"{match[1]}.{match[2] or match[3]}") if match else None
    if match is None or base is None:
        return None
    row = replace(base, name=name, family=base.metric_group, kind=Kind.COUNTER, lane=_lane(base))
    if match[2]:
        return replace(row, scope=Scope.NUMA, meaning=f"{base.meaning}: over a NUMA node's CPUs")
    row = replace(row, scope=Scope.NODE)
    if match[4] == "max":
        return replace(row, meaning=f"{base.meaning}: the largest of any CPU, reading by reading")
    row = replace(row, family="", harm=Harm.NEITHER)
    if match[4] == "spread":
        return replace(row, meaning=f"{base.meaning}: how far CPUs are apart, 95th less 50th")
    return replace(
        row, kind=Kind.STATE, unit="cpu", quantum=1e6,  # which CPU it is moves all the time
        meaning=f"{base.meaning}: the number of the CPU that had most",
    )  # fmt: skip


def _lane(base: Metric) -> Lane:
    """The lane of the source, for the one row that is computed elsewhere too."""
    return Lane.FAST if base.lane is Lane.DERIVED else base.lane


ROWS: tuple[Metric, ...] = ()
PATTERNS: tuple[Callable[[str], Metric | None], ...] = (folded,)
