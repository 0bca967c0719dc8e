"""Catalogue rows: memory levels, pressure, NUMA, huge pages; ``vmstat`` has the events."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from reveal_contract.metric import Capacity, Harm, Kind, Lane, Metric, Role, Scope, Subsystem
from reveal_contract.names import snake

# A level matters from 1/512 of the memory of the node on.
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
_RESERVED = "memory.huge_pages_total"  # the family of all metrics of reserved memory

_LEVELS = (
    _LEVEL("memory.mem_total", origin="MemTotal", role=Role.STATIC, meaning="Usable RAM"),
    _LEVEL("memory.mem_free", origin="MemFree", meaning="Unused memory"),
    _LEVEL(
        "memory.mem_available", origin="MemAvailable", harm=Harm.LOWER,
        meaning="Kernel's estimate of the memory that programs can get without swapping",
    ),
    _LEVEL("memory.buffers", origin="Buffers", meaning="Cache of raw block devices"),
    _LEVEL("memory.cached", origin="Cached", meaning="Page cache, including shared memory"),
    _LEVEL(
        "memory.swap_cached", origin="SwapCached",
        meaning="Memory read back from swap whose copy in swap is still valid",
    ),
    _LEVEL("memory.active", origin="Active", meaning="Memory used recently"),
    _LEVEL("memory.inactive", origin="Inactive", meaning="Memory that is reclaimed first"),
    _LEVEL("memory.active_anon", origin="Active(anon)", meaning="Anonymous memory used recently"),
    _LEVEL(
        "memory.inactive_anon", origin="Inactive(anon)",
        meaning="Anonymous memory not used recently: it is swapped out first",
    ),
    _LEVEL("memory.active_file", origin="Active(file)", meaning="Page cache used recently"),
    _LEVEL(
        "memory.inactive_file", origin="Inactive(file)", meaning="Page cache that is dropped first",
    ),
    _LEVEL(
        "memory.unevictable", origin="Unevictable", harm=Harm.HIGHER,
        meaning="Memory that cannot be reclaimed, including locked memory",
    ),
    _LEVEL(
        "memory.mlocked", origin="Mlocked", harm=Harm.HIGHER,
        meaning="Memory that programs locked with mlock",
    ),
    _LEVEL("memory.swap_total", origin="SwapTotal", role=Role.STATIC, meaning="Swap space"),
    _LEVEL("memory.swap_free", origin="SwapFree", meaning="Unused swap space"),
    _LEVEL("memory.zswap", origin="Zswap", meaning="Memory that the compressed swap cache uses"),
    _LEVEL(
        "memory.zswapped", origin="Zswapped",
        meaning="Uncompressed size of the memory in the compressed swap cache",
    ),
    _LEVEL(
        "memory.dirty", origin="Dirty", subsystem=Subsystem.STORAGE,
        meaning="Modified page cache that waits to be written",
    ),
    _LEVEL(
        "memory.writeback", origin="Writeback", subsystem=Subsystem.STORAGE,
        meaning="Page cache that is being written now",
    ),
    _LEVEL(
        "memory.writeback_tmp", origin="WritebackTmp", subsystem=Subsystem.STORAGE,
        meaning="Memory that FUSE uses for writeback",
    ),
    _LEVEL(
        "memory.anon_pages", origin="AnonPages",
        meaning="Memory of programs that is not backed by files",
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
        meaning="Kernel memory allocated by vmalloc",
    ),
    _LEVEL("memory.percpu", origin="Percpu", meaning="Memory of per-CPU variables"),
    _LEVEL(
        "memory.hardware_corrupted", origin="HardwareCorrupted", harm=Harm.HIGHER, quantum=4096,
        capacity=Capacity.ABSOLUTE, meaning="Memory removed from use because the hardware failed",
    ),
    _LEVEL(
        "memory.anon_huge_pages", origin="AnonHugePages",
        meaning="Memory of programs in transparent huge pages",
    ),
    _LEVEL("memory.balloon", origin="Balloon", meaning="Memory given back to the hypervisor"),
    _LEVEL(
        "memory.cma_total", origin="CmaTotal", role=Role.STATIC,
        meaning="Contiguous memory area (CMA)",
    ),
    _LEVEL("memory.cma_free", origin="CmaFree",
           meaning="Free part of the contiguous memory area (CMA)"),
)  # fmt: skip

_HUGE_PAGES = (
    _HUGE(
        "memory.huge_pages_total", origin="HugePages_Total", harm=Harm.HIGHER, family=_RESERVED,
        meaning="Reserved huge pages of the default size: nothing else can use this memory",
    ),
    _HUGE(
        "memory.huge_pages_free", origin="HugePages_Free",
        meaning="Reserved huge pages that are not in use",
    ),
    _HUGE(
        "memory.huge_pages_rsvd", origin="HugePages_Rsvd",
        meaning="Huge pages promised to programs that have not used them yet",
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
        meaning="Memory reserved for huge pages of all sizes",
    ),
    _POOL(
        "memory.hugepages.total", origin="nr_hugepages", harm=Harm.HIGHER, family=_RESERVED,
        meaning="Memory reserved for huge pages of one size",
    ),
    _POOL(
        "memory.hugepages.free", origin="free_hugepages", family="memory.huge_pages_free",
        meaning="Reserved memory of huge pages of one size that is not in use",
    ),
    _POOL(
        "memory.hugepages.reserved", origin="resv_hugepages", family="memory.huge_pages_rsvd",
        meaning="Huge pages of one size promised to programs that have not used them yet",
    ),
    _POOL(
        "memory.hugepages.surplus", origin="surplus_hugepages", harm=Harm.HIGHER,
        family="memory.huge_pages_surp",
        meaning="Huge pages of one size beyond the configured pool",
    ),
    _POOL(
        "memory.hugepages.numa.total", scope=Scope.NUMA, origin="node nr_hugepages",
        harm=Harm.HIGHER, family=_RESERVED,
        meaning="Memory of one NUMA node reserved for huge pages of one size",
    ),
    _POOL(
        "memory.hugepages.numa.free", scope=Scope.NUMA, origin="node free_hugepages",
        family="memory.huge_pages_free",
        meaning="Reserved huge pages of one size on one NUMA node that are not in use",
    ),
    _POOL(
        "memory.hugepages.numa.surplus", scope=Scope.NUMA, origin="node surplus_hugepages",
        harm=Harm.HIGHER, family="memory.huge_pages_surp",
        meaning="Huge pages of one size beyond the configured pool of one NUMA node",
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
        "memory.numa.hit", origin="numa_hit", meaning="Pages allocated on the requested node",
    ),
    _NUMA(
        "memory.numa.miss", origin="numa_miss", harm=Harm.HIGHER,
        meaning="Pages allocated on this node although another node was requested",
    ),
    _NUMA(
        "memory.numa.foreign", origin="numa_foreign", harm=Harm.HIGHER, family="memory.numa.miss",
        meaning="Pages requested on this node and allocated on another",
    ),
    _NUMA(
        "memory.numa.interleave_hit", origin="interleave_hit",
        meaning="Interleaved pages allocated on the intended node",
    ),
    _NUMA(
        "memory.numa.local_node", origin="local_node", family="memory.numa.hit",
        meaning="Pages allocated on this node by tasks that run on it",
    ),
    _NUMA(
        "memory.numa.other_node", origin="other_node", harm=Harm.HIGHER,
        meaning="Pages allocated on this node by tasks that run on another",
    ),
    _LEVEL(
        "memory.buddy.free", scope=Scope.NUMA, source="buddyinfo", lane=Lane.RARE,
        origin="buddyinfo", family="memory.mem_free", meaning="Free memory of one zone",
    ),
    _LEVEL(
        "memory.buddy.free_large", scope=Scope.NUMA, source="buddyinfo", lane=Lane.RARE,
        origin="buddyinfo blocks of huge pages",
        meaning="Free memory of one zone in blocks large enough for a huge page of the default "
                "size",
    ),
)  # fmt: skip

ROWS: tuple[Metric, ...] = (*_LEVELS, *_HUGE_PAGES, *_OTHERS)
_BY_KEY = {row.name.removeprefix("memory."): row for row in (*_LEVELS, *_HUGE_PAGES)}
_NODE_ONLY = {snake(key): key for key in ("MemUsed", "FilePages")}


def _of_node(name: str) -> Metric | None:
    """Return the row of ``memory.numa.KEY``, in the group of the host's level."""
    key = name.removeprefix("memory.numa.")
    if key == name or not key:
        return None
    host = _BY_KEY.get(key) or _unlisted(f"memory.{key}")
    if host is None:
        return None
    origin = _NODE_ONLY.get(key, host.origin)
    return replace(
        host, name=name, scope=Scope.NUMA, source="numa", family=host.metric_group,
        origin=f"node {origin}", meaning=f"{host.meaning}, on one NUMA node",
    )  # fmt: skip


def _unlisted(name: str) -> Metric | None:
    """Return the row of ``memory.KEY``, a level of meminfo that other kernels have."""
    key = name.removeprefix("memory.")
    if key == name or not key or "." in key:
        return None
    role = Role.STATIC if key.startswith("direct_map") else Role.DYNAMIC
    text = key.replace("_", " ")
    return _LEVEL(
        name, origin=_NODE_ONLY.get(key, key), role=role, meaning=f"Memory counted as {text}"
    )


PATTERNS: tuple[Callable[[str], Metric | None], ...] = (_of_node, _unlisted)
