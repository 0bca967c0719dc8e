"""The native scanner in Python: plans of files to read, and the C thread that ticks."""

from __future__ import annotations

import ctypes
import errno
import os
import threading
from array import array
from collections.abc import Sequence
from ctypes import POINTER, Structure, byref, c_int32, c_int64, c_uint8, c_void_p
from dataclasses import dataclass
from functools import cache
from mmap import mmap
from typing import Any, Literal, NamedTuple, Self

from reveal_collector.kernel_interfaces.scheduling import no_real_time
from reveal_collector.native import load
from reveal_collector.native.packing import CFile, CShape, Packer
from reveal_collector.readers.plan import BACK_OFF, QUIET, FileScan

EVERY_TICK = -1
MISMATCH, FAILED, GROWN = 1, 2, 4  # flags of an owner in a slice, from its files


@dataclass(frozen=True)
class ScanEntry:
    """The files of one source, the owner: their first column, and the tick they are read at."""

    owner: int
    scans: Sequence[FileScan]
    column: int
    slot: int = EVERY_TICK
    room: int = 1


@dataclass(frozen=True)
class RowLayout:
    """The widths of the rows, and when files behind a gate rest."""

    fast: int
    slow: int
    owners: int
    quiet: int = QUIET
    back_off: int = BACK_OFF


class Punctuality(NamedTuple):
    """Counts since the thread started."""

    late_ticks: int
    missed_ticks: int
    skipped_slices: int
    overruns: int


class NativeSlice(NamedTuple):
    """One slice: ``fast`` is ticks x columns (int64), ``spent`` ticks x owners (int32, ns).

    ``fast``, ``slow``, ``spent`` and ``flags`` are the memory that the thread wrote to.  They are
    valid until the next call of ``wait``, and may be changed.  ``longest`` is the maximum of
    ``spent`` of owners that are read every tick, ``longest_slow`` that of the others.  ``flagged``
    is the number of owners with flags.
    """

    due: int
    start_ns: int
    plan: int
    fast: memoryview[int]
    slow: memoryview[int]
    lateness: list[int]
    spent: memoryview[int]
    longest: int
    longest_slow: int
    flagged: int
    flags: memoryview[int]
    counts: Punctuality


_RING_POSITIONS = 8  # slices of a ring, in the number of a slice
_RING_OWNERS = 1 << 20  # owners of a plan, in the number of a read
_HEADER = 10  # numbers before the lateness of the ticks


class _Slice(Structure):
    """The first fields of ``struct slice`` (``ticker.h``)."""

    _fields_ = [(name, c_void_p) for name in ("header", "fast", "slow", "spent", "flags")]


class NativePlan:
    """A plan in C.  ``entries``: fast ones first, then slow ones in the order of their ticks."""

    def __init__(self, entries: Sequence[ScanEntry], layout: RowLayout) -> None:
        self.layout = layout
        self._packer = Packer()
        led = (
            scan.gate.key for entry in entries if entry.slot == EVERY_TICK
            for scan in entry.scans if scan.gate is not None and scan.gate.leads
        )  # fmt: skip
        self._gates = {key: number for number, key in enumerate(dict.fromkeys(led))}
        files = [file for entry in entries for file in self._files(entry)]
        self._array = _of_files(len(files))(*files)
        fast = 1 + max((entry.owner for entry in entries if entry.slot == EVERY_TICK), default=-1)
        self._shape = CShape(
            layout.fast, layout.slow, layout.owners, fast, len(self._gates), layout.quiet,
            layout.back_off,
        )  # fmt: skip
        self.handle = _library().reveal_plan_new(self._array, len(files), byref(self._shape))
        if not self.handle:
            raise MemoryError("not enough memory for the scanner's plan")

    def close(self) -> None:
        """Free the plan in C; it must not be in use any more."""
        _library().reveal_plan_free(self.handle)
        self.handle = None
        self._packer.close()

    def _files(self, entry: ScanEntry) -> list[CFile]:
        files, column = [], entry.column
        for scan in entry.scans:
            file = self._packer.file(scan, entry.room)
            file.owner, file.slot, file.column = entry.owner, entry.slot, column
            if scan.gate is not None and scan.gate.key in self._gates:
                file.gate = self._gates[scan.gate.key]
                file.leads = scan.gate.leads
            column += file.width
            files.append(file)
        return files


class PlanRunner:
    """Runs a plan tick by tick in the calling thread, for tests; on exit the plan is closed."""

    def __init__(self, scan: NativePlan) -> None:
        layout = scan.layout
        self._scan = scan
        self._fast = (c_int64 * max(layout.fast, 1))()
        self._slow = (c_int64 * max(layout.slow, 1))()
        self._spent = (c_int32 * max(layout.owners, 1))()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._scan.close()

    def begin(self) -> None:
        """Start a slice."""
        _library().reveal_begin(self._scan.handle, self._slow)

    def tick(self, number: int) -> list[int]:
        """Run a tick and return its fast row."""
        ctypes.memset(self._spent, 0, ctypes.sizeof(self._spent))
        _library().reveal_pass(self._scan.handle, number, self._fast, self._slow, self._spent)
        return list(self._fast)[: self._scan.layout.fast]

    @property
    def spent_ns(self) -> int:
        """The duration of the last tick, all files together."""
        return sum(self._spent)

    @property
    def slow(self) -> list[int]:
        """The slow row, as far as it was read in this slice."""
        return list(self._slow)[: self._scan.layout.slow]

    @property
    def flags(self) -> bytes:
        """The flags of every owner in this slice so far."""
        return ctypes.string_at(
            _library().reveal_flags(self._scan.handle), self._scan.layout.owners
        )


class _Ring:
    """Memory for some seconds of a plan's rows; it stays mapped while a view of it exists."""

    def __init__(self, scan: NativePlan, number: int, ticks: int) -> None:
        library = _library()
        self._scan, self._ticks = scan, ticks
        self._memory = mmap(-1, max(1, library.reveal_ring_bytes(scan.handle, ticks)))
        self._begin = ctypes.addressof(c_uint8.from_buffer(self._memory))
        self.handle = library.reveal_ring_new(scan.handle, number, ticks, self._begin)
        if not self.handle:
            raise MemoryError("not enough memory for the scanner's rows")
        self._rows: dict[int, _Rows] = {}

    def rows(self, position: int) -> _Rows:
        """Return the memory of the slice at this position of the ring."""
        known = self._rows.get(position)
        if known is None:
            known = self._rows[position] = self._find(position)
        return known

    def close(self) -> None:
        """Free the ring and its plan."""
        _library().reveal_ring_free(self.handle)
        self._scan.close()

    def _find(self, position: int) -> _Rows:
        parts = _Slice.from_address(_library().reveal_ring_slice(self.handle, position))
        layout, ticks = self._scan.layout, self._ticks
        return _Rows(
            self._view(parts.header, _HEADER + ticks, "q"),
            self._view(parts.fast, ticks * layout.fast, "q"),
            self._view(parts.slow, layout.slow, "q"),
            self._view(parts.spent, ticks * layout.owners, "i"),
            self._view(parts.flags, layout.owners, "B"),
        )

    def _view(self, address: int, count: int, kind: Literal["q", "i", "B"]) -> memoryview[int]:
        offset, empty = address - self._begin, memoryview(array(kind))
        if not count:  # an empty memoryview cannot be cast
            return empty
        return memoryview(self._memory)[offset : offset + count * empty.itemsize].cast(kind)


class _Rows(NamedTuple):
    """The arrays of one slice in its ring, for the full number of ticks."""

    header: memoryview[int]
    fast: memoryview[int]
    slow: memoryview[int]
    spent: memoryview[int]
    flags: memoryview[int]


class Ticker:
    """The C thread.  One Python thread starts it, waits for slices and swaps plans."""

    def __init__(self, scan: NativePlan, phase_ns: int, period_ns: int) -> None:
        self._ticks = 1_000_000_000 // period_ns
        self._rings: dict[int, _Ring] = {}
        self._number = 0
        self._closing = threading.Lock()
        self._handle = _library().reveal_ticker_start(self._ring(scan), phase_ns, period_ns)
        if not self._handle:
            self._drop_older_than(self._number + 1)
            raise OSError(ctypes.get_errno(), "the scanner's thread cannot be started")

    @property
    def not_real_time(self) -> str:
        """Why the thread does not run under SCHED_FIFO; empty where it does."""
        refused = _library().reveal_ticker_refused(self._handle)
        if not refused:
            return ""
        return no_real_time(os.strerror(abs(refused)), niced=refused < 0)

    def swap(self, scan: NativePlan) -> int:
        """Use another plan from the next slice on; return its number."""
        unused = _library().reveal_ticker_swap(self._handle, self._ring(scan))
        for number in [known for known, ring in self._rings.items() if ring.handle == unused]:
            self._rings.pop(number).close()
        return self._number

    def wait(self, timeout_ns: int) -> NativeSlice | None:
        """Return the next finished slice; None after the timeout, a wake-up, or the last slice.

        The memory of the slice before belongs to the thread again.
        """
        name = _library().reveal_ticker_wait(self._handle, timeout_ns)
        if name < 0:
            return None
        plan, position = divmod(name, _RING_POSITIONS)
        rows = self._rings[plan].rows(position)
        if next(iter(self._rings)) < plan:
            self._drop_older_than(plan)
        header = rows.header.tolist()
        due, start_ns, ticks, longest, longest_slow, flagged = header[:6]
        fast, spent = rows.fast, rows.spent
        if ticks < self._ticks:
            fast = fast[: len(fast) // self._ticks * ticks]
            spent = spent[: len(spent) // self._ticks * ticks]
        return NativeSlice(
            due, start_ns, plan, fast, rows.slow, header[_HEADER : _HEADER + ticks], spent,
            longest, longest_slow, flagged, rows.flags, Punctuality(*header[6:_HEADER]),
        )  # fmt: skip

    def wake(self) -> None:
        """End the wait of another thread without a slice; any thread may call this at any time."""
        with self._closing:
            if self._handle:
                _library().reveal_ticker_wake(self._handle)

    def reading(self) -> tuple[int, int] | None:
        """Return the plan and the owner whose file the thread reads now; None between two reads."""
        found = _library().reveal_ticker_reading(self._handle)
        return None if found < 0 else divmod(found, _RING_OWNERS)

    def end(self) -> None:
        """Let the thread end after its current read, which may hang, without waiting for it."""
        _library().reveal_ticker_end(self._handle)

    def collect(self) -> bool:
        """Free all plans after ``end``; return False while the thread has not ended."""
        if not _library().reveal_ticker_ended(self._handle):
            return False
        self.stop()
        self.close()
        return True

    def stop(self) -> None:
        """Stop within a tick; ``wait`` still returns what was sampled so far."""
        _library().reveal_ticker_stop(self._handle)

    def close(self) -> None:
        """Free all plans, after ``stop``."""
        with self._closing:
            _library().reveal_ticker_free(self._handle)
            self._handle = None
        self._drop_older_than(self._number + 1)

    def _ring(self, scan: NativePlan) -> int:
        self._number += 1
        ring = _Ring(scan, self._number, self._ticks)
        self._rings[self._number] = ring
        return int(ring.handle)

    def _drop_older_than(self, number: int) -> None:
        for old in [known for known in self._rings if known < number]:
            self._rings.pop(old).close()


def _of_files(count: int) -> type[ctypes.Array[CFile]]:
    """Return an array type with room for ``count`` files.

    The size is rounded up to a power of two: ctypes keeps every array type forever.
    """
    return CFile * (1 << count.bit_length())


@cache
def _library() -> ctypes.CDLL:
    """Return the library with the types of its functions.

    Raises ``OSError`` where it is unavailable.
    """
    library = load().library
    if library is None:
        raise OSError(errno.ENOSYS, load().unavailable)
    int64s, int32s = POINTER(c_int64), POINTER(c_int32)
    functions: tuple[tuple[str, Any, list[Any]], ...] = (
        ("plan_new", c_void_p, [POINTER(CFile), c_int32, POINTER(CShape)]),
        ("plan_free", None, [c_void_p]),
        ("begin", None, [c_void_p, int64s]),
        ("pass", None, [c_void_p, c_int32, int64s, int64s, int32s]),
        ("flags", POINTER(c_uint8), [c_void_p]),
        ("ring_bytes", c_int64, [c_void_p, c_int32]),
        ("ring_new", c_void_p, [c_void_p, c_int64, c_int32, c_void_p]),
        ("ring_slice", c_void_p, [c_void_p, c_int32]),
        ("ring_free", None, [c_void_p]),
        ("ticker_start", c_void_p, [c_void_p, c_int64, c_int64]),
        ("ticker_refused", c_int32, [c_void_p]),
        ("ticker_swap", c_void_p, [c_void_p, c_void_p]),
        ("ticker_wait", c_int64, [c_void_p, c_int64]),
        ("ticker_wake", None, [c_void_p]),
        ("ticker_reading", c_int64, [c_void_p]),
        ("ticker_end", None, [c_void_p]),
        ("ticker_ended", c_int32, [c_void_p]),
        ("ticker_stop", None, [c_void_p]),
        ("ticker_free", None, [c_void_p]),
    )
    for name, result, arguments in functions:
        function = library[f"reveal_{name}"]
        function.restype, function.argtypes = result, arguments
        setattr(library, f"reveal_{name}", function)
    return library
