"""Catalogue rows: events of memory management and page counts (``/proc/vmstat``).

The file has some 190 keys and other kernels have others, so most rows are made from the key:
the kernel's own name is the key itself.
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

# events named like levels: mm/vmstat.c keeps both among the node's items
_EVENT_LEVELS = re.compile(r"nr_(dirtied|written|vmscan_|throttled_|foll_pin_)")
_LEVELS = re.compile(r"nr_|workingset_nodes\Z")
# transparent huge pages are counted whole in this file
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
# busy counters matter from 100 a second, pages reclaimed or read again from 200 (under 1 MB: any
# program that starts does that), the rest from 10
_RECLAIM = re.compile(r"pgscan|pgsteal|workingset_(refault|activate|restore)")
_BUSY = re.compile(r"pgfault|pgalloc|pgfree|numa|pgactiv|pgreuse|nr_|pgpg|pglazyfree")
# pages of vmstat under the name meminfo has for them
_SAME_LEVEL = {
    "free_pages": "mem_free", "mlock": "mlocked", "slab_reclaimable": "s_reclaimable",
    "slab_unreclaimable": "s_unreclaim", "page_table_pages": "page_tables",
    "sec_page_table_pages": "sec_page_tables", "swapcached": "swap_cached",
    "file_pages": "cached", "hugetlb": "huge_pages_total", "balloon_pages": "balloon",
    "anon_transparent_hugepages": "anon_huge_pages",
}  # fmt: skip
_MEANINGS = {
    "pgpgin": "Bytes read from block devices, swap included",
    "pgpgout": "Bytes written to block devices, swap included",
    "pswpin": "Pages read back from swap",
    "pswpout": "Pages written to swap",
    "pgfault": "Page faults, minor and major",
    "pgmajfault": "Page faults that had to wait for I/O",
    "pgfree": "Pages freed",
    "pgactivate": "Pages moved to the list of recently used",
    "pgdeactivate": "Pages moved to the list of those to reclaim",
    "pgrefill": "Pages looked at to refill the list of those to reclaim",
    "pgreuse": "Pages reused on write instead of copied",
    "pgscan_kswapd": "Pages the background reclaimer looked at",
    "pgscan_direct": "Pages that tasks themselves had to look at to get memory",
    "pgscan_khugepaged": "Pages looked at to make room for huge pages",
    "pgscan_proactive": "Pages looked at by reclaim that user space asked for",
    "pgscan_direct_throttle": "Times a task was stopped because reserves ran low",
    "pgscan_anon": "Programs' pages looked at for reclaim",
    "pgscan_file": "Cache pages looked at for reclaim",
    "pgsteal_kswapd": "Pages the background reclaimer took back",
    "pgsteal_direct": "Pages that tasks themselves had to take back to get memory",
    "pgsteal_anon": "Programs' pages taken back",
    "pgsteal_file": "Cache pages taken back",
    "oom_kill": "Processes killed because memory ran out",
    "workingset_refault_file": "Cache pages read again soon after they were dropped: thrashing",
    "workingset_refault_anon": "Programs' pages swapped in again soon after they went out",
    "workingset_nodes": "Remembered places of dropped pages",
    "compact_stall": "Times a task itself had to move pages to get contiguous memory",
    "compact_fail": "Attempts to make contiguous memory that failed",
    "compact_success": "Attempts to make contiguous memory that succeeded",
    "thp_fault_alloc": "Huge pages given at a page fault",
    "thp_fault_fallback": "Page faults that got small pages because no huge one was free",
    "thp_collapse_alloc": "Huge pages made to replace small ones",
    "thp_split_page": "Huge pages broken up",
    "numa_hit": "Pages allocated on the node asked for",
    "numa_miss": "Pages allocated on another node than the one asked for",
    "numa_foreign": "Pages asked for on a node and allocated on another",
    "numa_pages_migrated": "Pages moved towards the task that uses them",
    "numa_hint_faults": "Page faults provoked to see which node uses a page",
    "nr_throttled_written": "Pages written while reclaim waited for writeback",
    "nr_vmscan_write": "Pages written by reclaim",
    "nr_dirtied": "Pages made dirty",
    "nr_written": "Pages written back",
    "drop_pagecache": "Times user space dropped the page cache",
    "drop_slab": "Times user space dropped kernel caches",
    "unevictable_pgs_mlocked": "Pages locked with mlock",
    "htlb_buddy_alloc_fail": "Huge pages asked for that could not be had",
    "kswapd_low_wmark_hit_quickly": "Times free memory fell again right after reclaim",
    "pageoutrun": "Runs of the background reclaimer",
    "swap_ra": "Pages read ahead from swap",
}  # fmt: skip


def _quantum(key: str) -> float:
    """Events a second that begin to matter."""
    if _RECLAIM.match(key):
        return 200.0
    return 100.0 if _BUSY.match(key) else 50.0 if key == "pgmajfault" else 10.0


def row(name: str) -> Metric | None:
    """``memory.vm.KEY``, whatever the key."""
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
    whole = bool(_HUGE_UNITS.match(key))
    plain = key.removeprefix("nr_").removeprefix("zone_")
    family = "memory." + _SAME_LEVEL.get(plain, plain)
    meaning = _MEANINGS.get(key, f"Memory counted as {plain.replace('_', ' ')}")
    if whole:
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
    made for key in _MEANINGS if (made := row(PREFIX + key)) is not None
)
PATTERNS: tuple[Callable[[str], Metric | None], ...] = (row,)
