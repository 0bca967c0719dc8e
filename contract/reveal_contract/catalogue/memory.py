"""Catalogue rows: memory levels, pressure, NUMA, huge pages.  Events are in ``vmstat``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from reveal_contract.metric import Capacity, Harm, Kind, Lane, Metric, Role, Scope, Subsystem
from reveal_contract.names import snake

# a level matters from 1/512 of the node's memory on
_LEVEL = partial(
    Metric, unit="bytes", kind=Kind.GAUGE, subsystem=Subsystem.MEMORY, scope=Scope.NODE,
    source="meminfo", lane=Lane.SLOW, quantum=1 / 512, capacity=Capacity.MEMORY,
)  # fmt: skip
_HUGE = partial(_LEVEL, unit="pages", quantum=24, capacity=Capacity.ABSOLUTE)
_POOL = partial(_LEVEL, source="hugepages")
_PRESSURE = partial(
    Metric, unit="ns", kind=Kind.COUNTER, subsystem=Subsystem.MEMORY, scope=Scope.NODE,
    source="psi", lane=Lane.FAST, quantum=5e6, harm=Harm.HIGHER, family="memory.pressure",
)  # fmt: skip
_NUMA = partial(
    Metric, unit="pages", kind=Kind.COUNTER, subsystem=Subsystem.MEMORY, scope=Scope.NUMA,
    source="numa", lane=Lane.SLOW, quantum=100,
)  # fmt: skip
_RESERVED = "memory.huge_pages_total"  # the family of everything that says how much is reserved

_LEVELS = (
    _LEVEL("memory.mem_total", origin="MemTotal", role=Role.STATIC, meaning="Usable RAM"),
    _LEVEL("memory.mem_free", origin="MemFree", meaning="Memory used for nothing"),
    _LEVEL(
        "memory.mem_available", origin="MemAvailable", harm=Harm.LOWER,
        meaning="Memory programs can still get without swapping, as the kernel estimates it",
    ),
    _LEVEL("memory.buffers", origin="Buffers", meaning="Cache of raw block devices"),
    _LEVEL("memory.cached", origin="Cached", meaning="Page cache, shared memory included"),
    _LEVEL(
        "memory.swap_cached", origin="SwapCached", meaning="Pages read back that swap still holds",
    ),
    _LEVEL("memory.active", origin="Active", meaning="Memory used recently"),
    _LEVEL("memory.inactive", origin="Inactive", meaning="Memory to be reclaimed first"),
    _LEVEL("memory.active_anon", origin="Active(anon)", meaning="Programs' memory used recently"),
    _LEVEL(
        "memory.inactive_anon", origin="Inactive(anon)",
        meaning="Programs' memory not used for long: swapped out first",
    ),
    _LEVEL("memory.active_file", origin="Active(file)", meaning="Page cache used recently"),
    _LEVEL(
        "memory.inactive_file", origin="Inactive(file)", meaning="Page cache to be dropped first",
    ),
    _LEVEL(
        "memory.unevictable", origin="Unevictable", harm=Harm.HIGHER,
        meaning="Memory that can never be reclaimed, locked memory included",
    ),
    _LEVEL(
        "memory.mlocked", origin="Mlocked", harm=Harm.HIGHER,
        meaning="Memory that programs locked with mlock",
    ),
    _LEVEL("memory.swap_total", origin="SwapTotal", role=Role.STATIC, meaning="Swap space"),
    _LEVEL("memory.swap_free", origin="SwapFree", meaning="Swap space not used"),
    _LEVEL("memory.zswap", origin="Zswap", meaning="Memory the compressed swap cache takes"),
    _LEVEL(
        "memory.zswapped", origin="Zswapped",
        meaning="Memory held in the compressed swap cache",
    ),
    _LEVEL(
        "memory.dirty", origin="Dirty", subsystem=Subsystem.STORAGE,
        meaning="Changed page cache waiting to be written",
    ),
    _LEVEL(
        "memory.writeback", origin="Writeback", subsystem=Subsystem.STORAGE,
        meaning="Page cache being written at this moment",
    ),
    _LEVEL(
        "memory.writeback_tmp", origin="WritebackTmp", subsystem=Subsystem.STORAGE,
        meaning="Memory of FUSE for writing back",
    ),
    _LEVEL(
        "memory.anon_pages", origin="AnonPages",
        meaning="Memory of programs not backed by files",
    ),
    _LEVEL("memory.mapped", origin="Mapped", meaning="Files mapped into programs"),
    _LEVEL("memory.shmem", origin="Shmem", meaning="Shared memory and tmpfs"),
    _LEVEL(
        "memory.k_reclaimable", origin="KReclaimable",
        meaning="Kernel memory that can be reclaimed",
    ),
    _LEVEL("memory.slab", origin="Slab", meaning="Kernel objects"),
    _LEVEL(
        "memory.s_reclaimable", origin="SReclaimable",
        meaning="Kernel caches that can be reclaimed",
    ),
    _LEVEL(
        "memory.s_unreclaim", origin="SUnreclaim",
        meaning="Kernel objects that cannot be reclaimed",
    ),
    _LEVEL("memory.kernel_stack", origin="KernelStack", meaning="Kernel stacks of tasks"),
    _LEVEL("memory.page_tables", origin="PageTables", meaning="Page tables of programs"),
    _LEVEL(
        "memory.sec_page_tables", origin="SecPageTables",
        meaning="Page tables of KVM and IOMMU",
    ),
    _LEVEL(
        "memory.nfs_unstable", origin="NFS_Unstable",
        meaning="NFS pages sent but not committed",
    ),
    _LEVEL("memory.bounce", origin="Bounce", meaning="Bounce buffers of block devices"),
    _LEVEL(
        "memory.commit_limit", origin="CommitLimit", role=Role.STATIC,
        meaning="Memory that may be promised to programs under strict overcommit",
    ),
    _LEVEL("memory.committed_as", origin="Committed_AS", meaning="Memory promised to programs"),
    _LEVEL(
        "memory.vmalloc_used", origin="VmallocUsed",
        meaning="Kernel memory mapped page by page",
    ),
    _LEVEL("memory.percpu", origin="Percpu", meaning="Memory of per-CPU variables"),
    _LEVEL(
        "memory.hardware_corrupted", origin="HardwareCorrupted", harm=Harm.HIGHER, quantum=4096,
        capacity=Capacity.ABSOLUTE, meaning="Memory taken out of use because the hardware failed",
    ),
    _LEVEL(
        "memory.anon_huge_pages", origin="AnonHugePages",
        meaning="Memory of programs in transparent huge pages",
    ),
    _LEVEL("memory.balloon", origin="Balloon", meaning="Memory given back to the hypervisor"),
    _LEVEL(
        "memory.cma_total", origin="CmaTotal", role=Role.STATIC,
        meaning="Contiguous memory area",
    ),
    _LEVEL("memory.cma_free", origin="CmaFree", meaning="Free part of the contiguous memory area"),
)  # fmt: skip

_HUGE_PAGES = (
    _HUGE(
        "memory.huge_pages_total", origin="HugePages_Total", harm=Harm.HIGHER, family=_RESERVED,
        meaning="Huge pages of the default size set aside: nothing else can use that memory",
    ),
    _HUGE(
        "memory.huge_pages_free", origin="HugePages_Free",
        meaning="Huge pages set aside and idle",
    ),
    _HUGE(
        "memory.huge_pages_rsvd", origin="HugePages_Rsvd",
        meaning="Huge pages promised to programs that have not touched them",
    ),
    _HUGE(
        "memory.huge_pages_surp", origin="HugePages_Surp", harm=Harm.HIGHER,
        meaning="Huge pages beyond the configured pool",
    ),
    _LEVEL(
        "memory.hugepagesize", origin="Hugepagesize", role=Role.STATIC,
        meaning="Default huge page size",
    ),
    _LEVEL(
        "memory.hugetlb", origin="Hugetlb", harm=Harm.HIGHER, family=_RESERVED,
        meaning="Memory set aside as huge pages of all sizes",
    ),
    _POOL(
        "memory.hugepages.total", origin="nr_hugepages", harm=Harm.HIGHER, family=_RESERVED,
        meaning="Memory set aside as huge pages of one size",
    ),
    _POOL(
        "memory.hugepages.free", origin="free_hugepages", family="memory.huge_pages_free",
        meaning="Memory set aside as huge pages of one size and idle",
    ),
    _POOL(
        "memory.hugepages.reserved", origin="resv_hugepages", family="memory.huge_pages_rsvd",
        meaning="Huge pages of one size promised and not touched",
    ),
    _POOL(
        "memory.hugepages.surplus", origin="surplus_hugepages", harm=Harm.HIGHER,
        family="memory.huge_pages_surp", meaning="Huge pages of one size beyond the pool",
    ),
    _POOL(
        "memory.hugepages.numa.total", scope=Scope.NUMA, origin="node nr_hugepages",
        harm=Harm.HIGHER, family=_RESERVED,
        meaning="Memory of one NUMA node set aside as huge pages of one size",
    ),
    _POOL(
        "memory.hugepages.numa.free", scope=Scope.NUMA, origin="node free_hugepages",
        family="memory.huge_pages_free", meaning="Huge pages of one size idle on one NUMA node",
    ),
    _POOL(
        "memory.hugepages.numa.surplus", scope=Scope.NUMA, origin="node surplus_hugepages",
        harm=Harm.HIGHER, family="memory.huge_pages_surp",
        meaning="Huge pages of one size beyond the pool of one NUMA node",
    ),
)  # fmt: skip

_OTHERS = (
    _PRESSURE(
        "memory.pressure.some", origin="psi memory some",
        meaning="Time in which at least one task waited for memory",
    ),
    _PRESSURE(
        "memory.pressure.full", origin="psi memory full",
        meaning="Time in which all tasks that were not idle waited for memory",
    ),
    _NUMA(
        "memory.numa.hit", origin="numa_hit", meaning="Pages allocated on the node asked for",
    ),
    _NUMA(
        "memory.numa.miss", origin="numa_miss", harm=Harm.HIGHER,
        meaning="Pages allocated here though another node was asked for",
    ),
    _NUMA(
        "memory.numa.foreign", origin="numa_foreign", harm=Harm.HIGHER, family="memory.numa.miss",
        meaning="Pages asked for here and allocated on another node",
    ),
    _NUMA(
        "memory.numa.interleave_hit", origin="interleave_hit",
        meaning="Interleaved pages as planned",
    ),
    _NUMA(
        "memory.numa.local_node", origin="local_node", family="memory.numa.hit",
        meaning="Pages allocated here by tasks running here",
    ),
    _NUMA(
        "memory.numa.other_node", origin="other_node", harm=Harm.HIGHER,
        meaning="Pages allocated here by tasks running on another node",
    ),
    _LEVEL(
        "memory.buddy.free", scope=Scope.NUMA, source="buddyinfo", lane=Lane.RARE,
        origin="buddyinfo", family="memory.mem_free", meaning="Free memory of one zone",
    ),
    _LEVEL(
        "memory.buddy.free_large", scope=Scope.NUMA, source="buddyinfo", lane=Lane.RARE,
        origin="buddyinfo order >= 9",
        meaning="Free memory of one zone in blocks large enough for a huge page of 2 MiB",
    ),
)  # fmt: skip

ROWS: tuple[Metric, ...] = (*_LEVELS, *_HUGE_PAGES, *_OTHERS)
_BY_KEY = {row.name.removeprefix("memory."): row for row in (*_LEVELS, *_HUGE_PAGES)}
_NODE_ONLY = {snake(key): key for key in ("MemUsed", "FilePages")}


def _of_node(name: str) -> Metric | None:
    """``memory.numa.KEY``: the part of a meminfo level on one NUMA node; one vote with it."""
    key = name.removeprefix("memory.numa.")
    if key == name or not key:
        return None
    whole = _BY_KEY.get(key) or _unlisted(f"memory.{key}")
    if whole is None:
        return None
    origin = _NODE_ONLY.get(key, whole.origin)
    return replace(
        whole, name=name, scope=Scope.NUMA, source="numa", family=whole.metric_group,
        origin=f"node {origin}", meaning=f"{whole.meaning}, on one NUMA node",
    )  # fmt: skip


def _unlisted(name: str) -> Metric | None:
    """``memory.KEY``: a meminfo level of a kernel younger or older than the rows above."""
    key = name.removeprefix("memory.")
    if key == name or not key or "." in key:
        return None
    role = Role.STATIC if key.startswith("direct_map") else Role.DYNAMIC
    shown = key.replace("_", " ")
    return _LEVEL(
        name, origin=_NODE_ONLY.get(key, key), role=role, meaning=f"Memory counted as {shown}"
    )


PATTERNS: tuple[Callable[[str], Metric | None], ...] = (_of_node, _unlisted)
