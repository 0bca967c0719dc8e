"""Intel, Skylake to Granite Rapids and Sierra Forest: perf's pmu-events/arch/x86."""

from __future__ import annotations

from reveal_collector.sources.pmu.platform import CORE, Count, Platform

_VENDOR = "GenuineIntel"
_FIXED = frozenset(("cpu.pmu.cycles", "cpu.pmu.instructions"))
_MEMORY = {
    "memory.pmu.llc_references": Count("event=0x2e,umask=0x4f"),  # longest_lat_cache.reference
    "memory.pmu.llc_misses": Count("event=0x2e,umask=0x41"),  # longest_lat_cache.miss
    "memory.pmu.loads": Count("event=0xd0,umask=0x81"),  # mem_inst_retired.all_loads
    "memory.pmu.stores": Count("event=0xd0,umask=0x82"),  # mem_inst_retired.all_stores
}
# cycle_activity.stalls_l3_miss
_STALLS = {"memory.pmu.stalls": Count("event=0xa3,umask=0x06,cmask=0x06")}
_SOCKETS = {  # mem_load_l3_miss_retired.{local_dram,remote_dram}, servers only
    "memory.pmu.local_fills": Count("event=0xd3,umask=0x01"),
    "memory.pmu.remote_fills": Count("event=0xd3,umask=0x02"),
}
_BIG = {**CORE, **_STALLS, **_MEMORY}
_SERVER = {**_BIG, **_SOCKETS}
_SIX = frozenset((6,))


def _models(*models: int) -> frozenset[int]:
    return frozenset(models)


PLATFORMS = (
    # Two threads share eight counters.
    Platform("Skylake, Cascade Lake, Cooper Lake (servers)", _VENDOR, _SIX, _models(0x55),
             4, _SERVER, _FIXED),
    Platform("Skylake, Kaby Lake, Comet Lake", _VENDOR, _SIX,
             _models(0x4E, 0x5E, 0x8E, 0x9E, 0xA5, 0xA6), 4, _BIG, _FIXED),
    Platform("Ice Lake (servers)", _VENDOR, _SIX, _models(0x6A, 0x6C), 8, _SERVER, _FIXED),
    Platform("Sapphire Rapids, Emerald Rapids", _VENDOR, _SIX, _models(0x8F, 0xCF), 8, _SERVER,
             _FIXED),
    Platform("Granite Rapids", _VENDOR, _SIX, _models(0xAD, 0xAE), 8, _SERVER, _FIXED),
    Platform("Ice Lake, Tiger Lake, Rocket Lake", _VENDOR, _SIX,
             _models(0x7D, 0x7E, 0x8C, 0x8D, 0xA7), 8, _BIG, _FIXED),
    Platform("Sierra Forest, Grand Ridge", _VENDOR, _SIX, _models(0xAF, 0xB6),
             6, {**CORE, **_MEMORY}, _FIXED),
    # Hybrid CPUs with two kinds of cores: Alder Lake and later.
    Platform("performance cores", _VENDOR, _SIX, frozenset(), 8, _BIG, _FIXED, "cpu_core"),
    Platform("efficient cores", _VENDOR, _SIX, frozenset(), 6, {**CORE, **_MEMORY}, _FIXED,
             "cpu_atom"),
)  # fmt: skip
