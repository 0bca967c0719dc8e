"""Catalogue rows: swap devices, compressed memory disks, space on file systems."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from reveal_contract.metric import Harm, Kind, Lane, Metric, Role, Scope, Subsystem

_ZRAM = partial(
    Metric, unit="bytes", kind=Kind.GAUGE, subsystem=Subsystem.MEMORY, scope=Scope.DISK,
    source="zram", lane=Lane.SLOW, quantum=2**26,
)  # fmt: skip
_PAGES = partial(_ZRAM, unit="pages", quantum=1000)
_EVENTS = partial(_ZRAM, unit="events", kind=Kind.COUNTER, quantum=1)
_SWAP = partial(
    Metric, unit="bytes", kind=Kind.GAUGE, subsystem=Subsystem.MEMORY, scope=Scope.DISK,
    source="swaps", lane=Lane.RARE, quantum=2**26,
)  # fmt: skip
_SPACE = partial(
    Metric, unit="bytes", kind=Kind.GAUGE, subsystem=Subsystem.STORAGE, scope=Scope.DISK,
    source="filesystems", lane=Lane.RARE, quantum=2**30,
)  # fmt: skip
_INODES = partial(_SPACE, unit="inodes", quantum=1e5)
_SHARE = partial(
    Metric, unit="ppm", kind=Kind.RATIO, source="derived", lane=Lane.DERIVED, quantum=20_000,
)  # fmt: skip

ROWS: tuple[Metric, ...] = (
    _ZRAM("memory.zram.original", origin="mm_stat orig_data_size",
          meaning="Size of the stored data before compression"),
    _ZRAM("memory.zram.compressed", origin="mm_stat compr_data_size",
          meaning="Size of the stored data after compression"),
    _ZRAM("memory.zram.used", origin="mm_stat mem_used_total",
          meaning="Memory that the device uses, including overhead"),
    _ZRAM("memory.zram.limit", kind=Kind.STATE, origin="mm_stat mem_limit", role=Role.STATIC,
          meaning="Limit of the memory that the device can use; 0 means no limit"),
    _ZRAM("memory.zram.used_maximum", origin="mm_stat mem_used_max",
          meaning="Peak of the memory that the device used"),
    _PAGES("memory.zram.same_pages", origin="mm_stat same_pages",
           meaning="Pages filled with one value, which need no memory"),
    _PAGES("memory.zram.compacted_pages", kind=Kind.COUNTER, origin="mm_stat pages_compacted",
           meaning="Pages freed by compaction"),
    _PAGES("memory.zram.huge_pages", origin="mm_stat huge_pages",
           meaning="Incompressible pages, stored without compression"),
    _PAGES("memory.zram.huge_pages_total", kind=Kind.COUNTER, origin="mm_stat huge_pages_since",
           meaning="Incompressible pages since the device was created"),
    _EVENTS("memory.zram.failed_reads", harm=Harm.HIGHER, origin="io_stat failed_reads",
            meaning="Reads that failed"),
    _EVENTS("memory.zram.failed_writes", harm=Harm.HIGHER, origin="io_stat failed_writes",
            meaning="Writes that failed because of no memory or the limit"),
    _EVENTS("memory.zram.invalid_requests", origin="io_stat invalid_io",
            meaning="Requests that are not aligned to pages"),
    _EVENTS("memory.zram.notify_free", quantum=1000, origin="io_stat notify_free",
            meaning="Pages that swap freed"),
    _ZRAM("memory.zram.backing.used", origin="bd_stat bd_count",
          meaning="Bytes written out to the backing device"),
    _ZRAM("memory.zram.backing.read", kind=Kind.COUNTER, quantum=1e5, origin="bd_stat bd_reads",
          harm=Harm.HIGHER, meaning="Bytes read back from the backing device"),
    _ZRAM("memory.zram.backing.written", kind=Kind.COUNTER, quantum=1e5,
          origin="bd_stat bd_writes", meaning="Bytes written to the backing device"),
    _SWAP("memory.swap.size", kind=Kind.STATE, role=Role.STATIC, origin="swaps Size",
          meaning="Size of a swap device"),
    _SWAP("memory.swap.used", origin="swaps Used", meaning="Used part of a swap device"),
    _SWAP("memory.swap.priority", unit="priority", kind=Kind.STATE, quantum=1, role=Role.STATIC,
          origin="swaps Priority", meaning="Priority: the device with the highest one is used "
                                           "first"),
    _SPACE("storage.filesystem.size", kind=Kind.STATE, role=Role.STATIC, origin="df size",
          meaning="Size of a file system on a local disk"),
    _SPACE("storage.filesystem.free", origin="f_bfree",
          meaning="Free space of a file system, including the part reserved for root"),
    _SPACE("storage.filesystem.available", origin="df avail", family="storage.filesystem.free",
          meaning="Free space of a file system for ordinary users"),
    _INODES("storage.filesystem.inodes", kind=Kind.STATE, role=Role.STATIC,
            origin="df -i inodes", meaning="Number of files that a file system can hold"),
    _INODES("storage.filesystem.inodes_free", origin="df -i ifree",
            meaning="Number of files that can still be created"),
    _SPACE("storage.filesystem.read_only", unit="state", kind=Kind.STATE, quantum=1,
          harm=Harm.HIGHER, origin="mount option ro",
          meaning="Whether a file system is read-only, possibly because of an error"),
    _SHARE("memory.swap_used_share", subsystem=Subsystem.MEMORY, scope=Scope.NODE,
           origin="1 - SwapFree / SwapTotal", harm=Harm.HIGHER, weight=0.5,
           meaning="Share of the swap space in use, per million"),
    _SHARE("memory.zram.compressed_share", subsystem=Subsystem.MEMORY, scope=Scope.DISK,
           origin="compr_data_size / orig_data_size",
           meaning="Compressed size as a share of the original size, per million"),
    _SHARE("storage.filesystem.crowding", subsystem=Subsystem.STORAGE, scope=Scope.DISK,
           quantum=5000, harm=Harm.HIGHER, origin="df use% - 90 %",
           meaning="Used space of a file system above 90 %, per million"),
    _SHARE("storage.filesystem.inode_crowding", subsystem=Subsystem.STORAGE, scope=Scope.DISK,
           quantum=5000, harm=Harm.HIGHER, family="storage.filesystem.crowding",
           origin="df -i iuse% - 90 %",
           meaning="Used inodes of a file system above 90 %, per million"),
)  # fmt: skip
PATTERNS: tuple[Callable[[str], Metric | None], ...] = ()
