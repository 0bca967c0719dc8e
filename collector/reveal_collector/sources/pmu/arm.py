"""Arm Neoverse: the architecture's common events (Arm ARM, D13.12; pmu-events/arch/arm64)."""

from __future__ import annotations

from reveal_collector.sources.pmu.platform import Count, Platform

_VENDOR = "0x41"
_FIXED = frozenset(("cpu.pmu.cycles",))
_NEOVERSE = {
    "cpu.pmu.cycles": Count("cpu-cycles"),
    "cpu.pmu.instructions": Count("instructions"),
    "cpu.pmu.branches": Count("event=0x21"),  # br_retired
    "cpu.pmu.branch_misses": Count("event=0x22"),  # br_mis_pred_retired
    "cpu.pmu.backend_stalls": Count("event=0x24"),  # stall_backend
    "memory.pmu.accesses": Count("event=0x13"),  # mem_access
    "memory.pmu.llc_references": Count("event=0x36"),  # ll_cache_rd
    "memory.pmu.llc_misses": Count("event=0x37"),  # ll_cache_miss_rd
}
_SPECULATED = {
    "memory.pmu.loads": Count("event=0x70"),  # ld_spec
    "memory.pmu.stores": Count("event=0x71"),  # st_spec
}
_WAITING = {"memory.pmu.stalls": Count("event=0x4005")}  # stall_backend_mem, from Armv8.4
_ANY = frozenset((0,))

PLATFORMS = (
    Platform("Neoverse N1", _VENDOR, _ANY, frozenset((0xD0C,)), 6,
             {**_NEOVERSE, **_SPECULATED}, _FIXED),
    Platform("Neoverse V1, N2, V2, N3, V3", _VENDOR, _ANY,
             frozenset((0xD40, 0xD49, 0xD4F, 0xD8E, 0xD84)), 6,
             {**_NEOVERSE, **_WAITING, **_SPECULATED}, _FIXED),
)  # fmt: skip
