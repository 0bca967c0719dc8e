"""The BPF programs of the ledger, loaded and read through the native library (``ledger.c``)."""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import threading
from collections.abc import Mapping
from ctypes import (
    Structure,
    byref,
    c_char,
    c_char_p,
    c_int32,
    c_int64,
    c_uint32,
    c_uint64,
    c_void_p,
)
from enum import IntEnum
from typing import Any

SLOTS, BUSY, STATES, WAITS, DISKS = 256, 64, 16, 4, 8
SLOT_OTHER, SLOT_KERNEL, SLOT_IDLE, SLOT_FIRST = range(4)
KEY_BLKIO, KEY_GROUP, KEY_SESSION = 1 << 60, 2 << 60, 3 << 60
UNNAMED = 1024
WRAP, SECTOR_BYTES = 1 << 32, 512  # of the counts of requests


class State(IntEnum):
    """Columns of ``Totals.spent``, as in ``ledger.h``."""

    WAIT = 0
    THROTTLED = 1
    IO = 2
    MEMORY = 3
    LOCKED = 4
    KILLABLE = 5
    STOPPED = 6
    SLEEP = 7
    ALIVE = 8
    DISK = 9
    RUN = 10
    RECLAIM = 11
    IRQ = 12
    SURPLUS = 13  # beside the others: runnable threads above the CPUs that they may use


class Hierarchy(IntEnum):
    """The cgroup hierarchy whose cgroups are the subjects."""

    UNIFIED = 0
    CPUACCT = 1
    CPU = 2


class Extent(Structure):
    """The slots and the indices of the matrix that are in use; all below these are."""

    _fields_ = (("slots", c_int32), ("busy", c_int32))
    slots: int
    busy: int


class Totals(Structure):
    """Sums over all CPUs at one moment: times in ns, counts since the start."""

    _fields_ = (
        ("now", c_int64),
        ("switches", c_int64),
        ("wakeups", c_int64),
        ("missed", c_int64),
        ("cost", c_int64),
        ("spent", c_int64 * STATES * SLOTS),
        ("threads", c_int64 * SLOTS),
        ("waited", c_int64 * BUSY * BUSY),
        ("waits", c_int64 * WAITS * SLOTS),
        ("cpus", c_int64 * SLOTS),
        ("disks", c_int64 * DISKS * SLOTS),
        ("completed", c_int64 * DISKS * SLOTS),
        ("sectors", c_int64 * DISKS * SLOTS),
    )
    now: int
    switches: int
    wakeups: int
    missed: int
    cost: int
    spent: Any
    threads: Any
    waited: Any
    waits: Any
    cpus: Any  # that each subject may use; 0 if none of its threads ran
    disks: Any  # requests under way by slot and disk, in the order of the first request
    completed: Any  # requests by slot and disk, modulo ``WRAP``
    sectors: Any  # of these, modulo ``WRAP``


_SIGNATURES: Mapping[str, tuple[Any, ...]] = {
    "reveal_ledger_cpu_bytes": (c_int64,),
    "reveal_ledger_totals_bytes": (c_int64,),
    "reveal_ledger_open": (
        c_int32, c_void_p, c_int32, c_uint32, c_uint64, c_char_p, c_uint32,
    ),
    "reveal_ledger_attach": (c_int32, c_void_p),
    "reveal_ledger_close": (None, c_void_p),
    "reveal_ledger_name": (c_int32, c_void_p, c_uint64, c_uint32),
    "reveal_ledger_forget": (c_int32, c_void_p, c_uint64),
    "reveal_ledger_raise": (None, c_void_p),
    "reveal_ledger_walk_threads": (c_int32, c_void_p),
    "reveal_ledger_take_unnamed": (c_int32, c_void_p, c_void_p, c_void_p, c_uint32),
    "reveal_ledger_read": (c_int32, c_void_p, c_void_p, c_void_p, c_void_p),
    "reveal_ledger_sum": (c_int32, c_void_p, c_int32, c_void_p, c_void_p, c_int64, c_void_p),
}  # fmt: skip


def is_built(library: ctypes.CDLL) -> bool:
    """Return whether the library has the ledger, in the layout that this module expects."""
    try:
        functions = declared(library)
    except AttributeError:
        return False
    return int(functions["reveal_ledger_totals_bytes"]()) == ctypes.sizeof(Totals)


def declared(library: ctypes.CDLL) -> dict[str, Any]:
    """Return the functions of the ledger by name; raises ``AttributeError`` if one is missing."""
    functions: dict[str, Any] = {}
    for name, (result, *arguments) in _SIGNATURES.items():
        function = functions[name] = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return functions


class Programs:
    """The loaded programs, which count once they are attached.

    The kernel detaches and unloads them with their last descriptor: when this is closed, and when
    the process ends in any way.  All methods raise ``OSError`` where the kernel refuses.
    """

    def __init__(
        self, library: ctypes.CDLL, cpus: int, hierarchy: Hierarchy, root: int, log: bytes = b""
    ) -> None:
        self._call = declared(library)
        self._lock = threading.Lock()  # held by calls of the thread that gives names
        self._handle = c_void_p()
        # the kernel writes why it refused a program, where there is room for it
        buffer = ctypes.create_string_buffer(log) if log else None
        self._check(
            self._call["reveal_ledger_open"](
                byref(self._handle), cpus, hierarchy, root, buffer, len(log)
            )
        )
        size = cpus * int(self._call["reveal_ledger_cpu_bytes"]())
        # anonymous memory: only what the slots in use need becomes resident
        self._copies = (c_char * size).from_buffer(mmap.mmap(-1, size))
        self._keys, self._ns = (c_uint64 * UNNAMED)(), (c_uint64 * UNNAMED)()

    def attach(self) -> None:
        """Begin to count; threads that sleep are found by a walk over all threads."""
        self._check(self._call["reveal_ledger_attach"](self._handle))

    def name(self, key: int, slot: int, busy: int) -> None:
        """Let the threads of a key count for a slot; ``raise_generation`` makes them look."""
        self._locked("reveal_ledger_name", key, slot | busy << 16)

    def forget(self, key: int) -> None:
        """Let the threads of a key count for no slot of their own."""
        self._locked("reveal_ledger_forget", key)

    def raise_generation(self) -> None:
        """Make each thread look up its subject at its next switch."""
        self._locked("reveal_ledger_raise")

    def walk_threads(self) -> None:
        """Walk over all threads: sleeping ones move to their new subject (3 us a thread)."""
        self._locked("reveal_ledger_walk_threads")

    def take_unnamed(self) -> dict[int, int]:
        """Return the CPU time in ns of keys without a slot since the last call."""
        count = self._locked("reveal_ledger_take_unnamed", self._keys, self._ns, UNNAMED)
        return dict(zip(self._keys[:count], self._ns[:count], strict=True))

    def read(self, used: Extent) -> Totals:
        """Return the totals now; ``BlockingIOError`` if a CPU changed its part all the time."""
        totals = Totals()
        self._check(
            self._call["reveal_ledger_read"](self._handle, self._copies, byref(used), byref(totals))
        )
        return totals

    def close(self) -> None:
        """Detach and unload the programs; waits for a call of the other thread."""
        with self._lock:
            handle, self._handle = self._handle, c_void_p()
            self._call["reveal_ledger_close"](handle)

    def _locked(self, function: str, *arguments: Any) -> int:
        with self._lock:
            if not self._handle.value:
                raise OSError(errno.EBADF, "the programs of the ledger are closed")
            return self._check(self._call[function](self._handle, *arguments) or 0)

    def _check(self, result: int) -> int:
        if result < 0:
            raise OSError(-result, os.strerror(-result))
        return result
