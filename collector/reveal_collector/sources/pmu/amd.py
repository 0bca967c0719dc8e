"""AMD Zen 2 to Zen 5: perf's pmu-events/arch/x86/amdzen*.

They have six counters and no fixed one.  ``cache-misses`` would count misses of the L2 cache
here.  The fills of the data cache show the accesses to memory instead.
"""

from __future__ import annotations

from reveal_collector.sources.pmu.platform import CORE, Count, Platform

_VENDOR = "AuthenticAMD"
_DISPATCHED = {
    "memory.pmu.loads": Count("event=0x29,umask=0x01"),  # ls_dispatch.ld_dispatch
    "memory.pmu.stores": Count("event=0x29,umask=0x02"),  # ls_dispatch.store_dispatch
}
_ACCESSES = {"memory.pmu.accesses": Count("event=0x40")}  # ls_dc_accesses
_FILLS = {  # ls_any_fills_from_sys.{dram_io_near,dram_io_far}: mem_io_local, mem_io_remote
    "memory.pmu.local_fills": Count("event=0x44,umask=0x08"),
    "memory.pmu.remote_fills": Count("event=0x44,umask=0x40"),
}
_DEMAND_FILLS = {  # ls_refills_from_sys.{ls_mabresp_lcl_dram,ls_mabresp_rmt_dram}
    "memory.pmu.local_fills": Count("event=0x43,umask=0x08"),
    "memory.pmu.remote_fills": Count("event=0x43,umask=0x40"),
}


def _stalls(width: int) -> dict[str, Count]:
    """Count backend stalls: de_no_dispatch_per_slot counts slots, ``width`` of them per cycle."""
    return {"cpu.pmu.backend_stalls": Count("event=0x1a0,umask=0x1e", 1 / width)}


_ZEN2 = {**CORE, **_DISPATCHED, **_ACCESSES, **_DEMAND_FILLS}
_ZEN3 = {**CORE, **_DISPATCHED, **_ACCESSES, **_FILLS}
_ZEN4 = {**CORE, **_stalls(6), **_DISPATCHED, **_FILLS}
_ZEN5 = {**CORE, **_stalls(8), **_DISPATCHED, **_FILLS}


def _models(*ranges: tuple[int, int]) -> frozenset[int]:
    return frozenset(model for first, last in ranges for model in range(first, last + 1))


PLATFORMS = (
    Platform("Zen 2", _VENDOR, frozenset((0x17,)), _models((0x30, 0xFF)), 6, _ZEN2),
    Platform("Zen 4", _VENDOR, frozenset((0x19,)), _models((0x10, 0x1F), (0x60, 0xAF)), 6, _ZEN4),
    Platform("Zen 3", _VENDOR, frozenset((0x19,)), frozenset(), 6, _ZEN3),
    Platform("Zen 5", _VENDOR, frozenset((0x1A,)), frozenset(), 6, _ZEN5),
)
