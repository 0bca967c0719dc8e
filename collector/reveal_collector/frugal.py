"""Memory given back: a collector shares its node with what the node is there for.

glibc's allocator keeps an arena a thread and never returns what start-up needed; both are
tunable (mallopt(3), malloc_trim(3)).  Other C libraries lack the calls and are left alone.
"""

from __future__ import annotations

import ctypes
import gc

from reveal_contract.memory import give_back

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8  # malloc.h
_KEPT_FREE = 64 << 10  # bytes at the heap's end; more goes back to the kernel
_OWN_PAGES = 64 << 10  # blocks from this size on are mapped, and unmapped when freed
# The buffer of one read: of _OWN_PAGES, each read would map it, fault, shrink and unmap it.
READ_SIZE = _OWN_PAGES // 2


def before_threads() -> None:
    """To be called first: the threads started later share one arena."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_ARENA_MAX, 1)
        mallopt(_M_TRIM_THRESHOLD, _KEPT_FREE)
        mallopt(_M_MMAP_THRESHOLD, _OWN_PAGES)


def after_start() -> None:
    """Once all is running: start-up's garbage goes, what is left is never walked again."""
    gc.collect()
    gc.freeze()
    give_back()
