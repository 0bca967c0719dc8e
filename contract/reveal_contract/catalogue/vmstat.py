"""Catalogue rows: events of memory management and page counts (``/proc/vmstat``).

The file has about 190 keys, which differ by kernel, so most rows are created from the key.  The
origin of a row is the key itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

from reveal_contract.metric import Capacity, Harm, Kind, Lane, Metric, Scope, Subsystem

PREFIX = "memory.vm."
_EVENTS = partial(
    Metric, kind=Kind.COUNTER, scope=Scope.NODE, source="vmstat", lane=Lane.FAST,
)  # fmt: skip
_LEVEL = partial(
    Metric, kind=Kind.GAUGE, scope=Scope.NODE, source="vmstat", lane=Lane.FAST,
)  # fmt: skip

# Events with names like levels: mm/vmstat.c keeps both in the items of a node.
_EVENT_LEVELS = re.compile(r"nr_(dirtied|written|vmscan_|throttled_|foll_pin_)")
_LEVELS = re.compile(r"nr_|workingset_nodes\Z")
# This file counts transparent huge pages in units of huge pages.
_HUGE_UNITS = re.compile(
    r"nr_((anon_transparent|shmem|file)_(hugepages|pmdmapped)|unstable)\Z|workingset_nodes\Z"
)
_STORAGE = re.compile(
    r"pgpg(in|out)\Z|nr_(zone_write_pending|dirt|writeback|written|vmscan|throttled)"
)
_HARM = re.compile(
    r"pgscan|pgsteal|allocstall|oom|pswp|compact_|thp_\w*fallback|workingset_refault|pgmajfault"
    r"|htlb|nr_(mlock|unevictable|zone_unevictable|hugetlb)\Z|nr_throttled_written"
    r"|zone_reclaim_failed|swap_ra|swpin_zero|zswpin"
)
# Frequent events matter from 100 a second, reclaimed and refaulted pages from 200 (below 1 MB,
# which every starting program reaches), all others from 10.
_RECLAIM = re.compile(r"pgscan|pgsteal|workingset_(refault|activate|restore)")
_FREQUENT = re.compile(r"pgfault|pgalloc|pgfree|numa|pgactiv|pgreuse|nr_|pgpg|pglazyfree")
# name in vmstat -> name of the same level in meminfo
_MEMINFO_NAMES = {
    "free_pages": "mem_free", "mlock": "mlocked", "slab_reclaimable": "s_reclaimable",
    "slab_unreclaimable": "s_unreclaim", "page_table_pages": "page_tables",
    "sec_page_table_pages": "sec_page_tables", "swapcached": "swap_cached",
    "file_pages": "cached", "hugetlb": "huge_pages_total", "balloon_pages": "balloon",
    "anon_transparent_hugepages": "anon_huge_pages",
}  # fmt: skip
_MEANINGS = {
    "pgpgin": "Bytes read from block devices, including swap",
    "pgpgout": "Bytes written to block devices, including swap",
    "pswpin": "Pages read back from swap",
    "pswpout": "Pages written to swap",
    "pgfault": "Page faults, minor and major",
    "pgmajfault": "Page faults that had to wait for I/O",
    "pgfree": "Pages freed",
    "pgactivate": "Pages moved to the active list",
    "pgdeactivate": "Pages moved to the inactive list",
    "pgrefill": "Pages scanned to refill the inactive list",
    "pgreuse": "Pages reused on write instead of copied",
    "pgscan_kswapd": "Pages scanned by the background reclaimer (kswapd)",
    "pgscan_direct": "Pages scanned by tasks that needed memory (direct reclaim)",
    "pgscan_khugepaged": "Pages scanned to make room for huge pages",
    "pgscan_proactive": "Pages scanned by reclaim that user space requested",
    "pgscan_direct_throttle": "Times that a task was throttled because memory reserves were low",
    "pgscan_anon": "Anonymous pages scanned for reclaim",
    "pgscan_file": "Page cache scanned for reclaim",
    "pgsteal_kswapd": "Pages reclaimed by the background reclaimer (kswapd)",
    "pgsteal_direct": "Pages reclaimed by tasks that needed memory (direct reclaim)",
    "pgsteal_anon": "Anonymous pages reclaimed",
    "pgsteal_file": "Page cache reclaimed",
    "oom_kill": "Processes killed by the OOM killer",
    "workingset_refault_file": "Page cache read again soon after it was dropped (thrashing)",
    "workingset_refault_anon": "Anonymous pages swapped in soon after they were swapped out",
    "workingset_nodes": "Nodes that hold shadow entries of dropped pages",
    "compact_stall": "Times that a task had to compact memory itself (direct compaction)",
    "compact_migrate_scanned": "Pages scanned by compaction to find some that can be moved",
    "compact_free_scanned": "Pages scanned by compaction to find free ones",
    "compact_isolated": "Pages that compaction took to move them",
    "compact_fail": "Failed compactions",
    "compact_success": "Successful compactions",
    "thp_fault_alloc": "Huge pages allocated at a page fault",
    "thp_fault_fallback": "Page faults that got small pages because no huge page was free",
    "thp_collapse_alloc": "Huge pages allocated to replace small ones",
    "thp_split_page": "Huge pages split",
    "numa_hit": "Pages allocated on the requested node",
    "numa_miss": "Pages allocated on another node than the requested one",
    "numa_foreign": "Pages requested on a node and allocated on another",
    "numa_pages_migrated": "Pages migrated to the node of the task that uses them",
    "numa_hint_faults": "Page faults provoked to find the node that uses a page",
    "nr_throttled_written": "Pages written while reclaim waited for writeback",
    "nr_vmscan_write": "Pages written by reclaim",
    "nr_dirtied": "Pages made dirty",
    "nr_written": "Pages written back",
    "drop_pagecache": "Times that user space dropped the page cache",
    "drop_slab": "Times that user space dropped kernel caches",
    "unevictable_pgs_mlocked": "Pages locked with mlock",
    "htlb_buddy_alloc_fail": "Failed allocations of huge pages",
    "kswapd_low_wmark_hit_quickly": "Times that free memory fell again right after reclaim",
    "pageoutrun": "Runs of the background reclaimer (kswapd)",
    "swap_ra": "Pages read ahead from swap",
}  # fmt: skip


def _quantum(key: str) -> float:
    """Return the number of events per second that begin to matter."""
    if _RECLAIM.match(key):
        return 200.0
    return 100.0 if _FREQUENT.match(key) else 50.0 if key == "pgmajfault" else 10.0


def row(name: str) -> Metric | None:
    """Return the row of ``memory.vm.KEY`` for any key."""
    key = name.removeprefix(PREFIX)
    if key == name or not key or "." in key:
        return None
    if _LEVELS.match(key) and not _EVENT_LEVELS.match(key):
        return _level(name, key)
    quantum, unit = _quantum(key), "events"
    if key.startswith("pgpg"):
        quantum, unit = 102_400.0, "bytes"
    if key == "oom_kill":
        quantum = 1.0
    return _EVENTS(
        name, unit=unit, subsystem=_subsystem(key), origin=key, quantum=quantum,
        meaning=_MEANINGS.get(key, f"Kernel event {key} of memory management"), harm=_harm(key),
    )  # fmt: skip


def _level(name: str, key: str) -> Metric:
    is_huge = bool(_HUGE_UNITS.match(key))
    plain = key.removeprefix("nr_").removeprefix("zone_")
    family = "memory." + _MEMINFO_NAMES.get(plain, plain)
    meaning = _MEANINGS.get(key, f"Memory counted as {plain.replace('_', ' ')}")
    if is_huge:
        return _LEVEL(
            name, unit="count", subsystem=_subsystem(key), origin=key, meaning=meaning,
            quantum=24, family=family, harm=_harm(key),
        )  # fmt: skip
    return _LEVEL(
        name, unit="bytes", subsystem=_subsystem(key), origin=key, meaning=meaning,
        quantum=1 / 512, capacity=Capacity.MEMORY, family=family, harm=_harm(key),
    )  # fmt: skip


def _subsystem(key: str) -> Subsystem:
    return Subsystem.STORAGE if _STORAGE.match(key) else Subsystem.MEMORY


def _harm(key: str) -> Harm:
    return Harm.HIGHER if _HARM.match(key) else Harm.NEITHER


ROWS: tuple[Metric, ...] = tuple(
    metric for key in _MEANINGS if (metric := row(PREFIX + key)) is not None
)
PATTERNS: tuple[Callable[[str], Metric | None], ...] = (row,)
