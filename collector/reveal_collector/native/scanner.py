"""The scanner in C as Python sees it: a table of files to read, and the thread that ticks."""

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

from reveal_collector.kernel.scheduling import no_real_time
from reveal_collector.native import load
from reveal_collector.native.packing import CFile, CShape, Packer
from reveal_collector.readers.plan import BACK_OFF, QUIET, FileScan

EVERY_TICK = -1
MISMATCH, FAILED, GROWN = 1, 2, 4  # flags of an owner's files in a slice


@dataclass(frozen=True)
class ScanEntry:
    """The files of one source, its owner: where their columns begin, and when they are read."""

    owner: int
    scans: Sequence[FileScan]
    column: int
    slot: int = EVERY_TICK
    room: int = 1


@dataclass(frozen=True)
class RowLayout:
    """How wide the rows are, and when files behind a gate rest."""

    fast: int
    slow: int
    owners: int
    quiet: int = QUIET
    back_off: int = BACK_OFF


class Punctuality(NamedTuple):
    """Counted since the thread began."""

    late_ticks: int
    missed_ticks: int
    skipped_slices: int
    overruns: int


class NativeSlice(NamedTuple):
    """One slice as read: ``fast`` ticks x columns (int64), ``spent`` (int32, ns) ticks x owners.

    Both, ``slow`` and ``flags`` are the memory that the thread wrote to: they hold until the next
    slice is waited for, and may be written to.  ``longest`` is the most of ``spent`` of owners
    that are read every tick, ``longest_slow`` of the others; ``flagged`` owners have flags.
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


_PLACES = 8  # of a ring, in the name of a slice
_SAID = 10  # numbers before the lateness of each tick


class _Slice(Structure):
    """Up to what Python needs of it (``ticker.h``)."""

    _fields_ = [(name, c_void_p) for name in ("said", "fast", "slow", "spent", "flags")]


class NativePlan:
    """A plan in C.  ``entries``: fast ones first, then slow ones by their slots."""

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
            raise MemoryError("no memory for the scanner's plan")

    def close(self) -> None:
        """Free what the plan holds in C; nobody may use it any more."""
        _library().reveal_plan_free(self.handle)
        self.handle = None
        self._packer.close()

    def _files(self, entry: ScanEntry) -> list[CFile]:
        made, column = [], entry.column
        for scan in entry.scans:
            file = self._packer.file(scan, entry.room)
            file.owner, file.slot, file.column = entry.owner, entry.slot, column
            if scan.gate is not None and scan.gate.key in self._gates:
                file.gate = self._gates[scan.gate.key]
                file.leads = scan.gate.leads
            column += file.width
            made.append(file)
        return made


class PlanRunner:
    """Drives a plan tick by tick in the calling thread; on leaving, the plan is closed."""

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
        _library().reveal_begin(self._scan.handle, self._slow)

    def tick(self, number: int) -> list[int]:
        """The fast row of this tick."""
        ctypes.memset(self._spent, 0, ctypes.sizeof(self._spent))
        _library().reveal_pass(self._scan.handle, number, self._fast, self._slow, self._spent)
        return list(self._fast)[: self._scan.layout.fast]

    @property
    def spent_ns(self) -> int:
        """What the last tick took, all files together."""
        return sum(self._spent)

    @property
    def slow(self) -> list[int]:
        """The slow row, as far as it was read in this slice."""
        return list(self._slow)[: self._scan.layout.slow]

    @property
    def flags(self) -> bytes:
        """Of every owner, in this slice so far."""
        return ctypes.string_at(
            _library().reveal_flags(self._scan.handle), self._scan.layout.owners
        )


class _Ring:
    """Memory for some seconds of a plan's rows; who still looks at it keeps it mapped."""

    def __init__(self, scan: NativePlan, number: int, ticks: int) -> None:
        library = _library()
        self._scan, self._ticks = scan, ticks
        self._memory = mmap(-1, max(1, library.reveal_ring_bytes(scan.handle, ticks)))
        self._begin = ctypes.addressof(c_uint8.from_buffer(self._memory))
        self.handle = library.reveal_ring_new(scan.handle, number, ticks, self._begin)
        if not self.handle:
            raise MemoryError("no memory for the scanner's rows")
        self._rows: dict[int, _Rows] = {}

    def rows(self, place: int) -> _Rows:
        """Where the slice at this place of the ring keeps what was read."""
        known = self._rows.get(place)
        if known is None:
            known = self._rows[place] = self._find(place)
        return known

    def close(self) -> None:
        _library().reveal_ring_free(self.handle)
        self._scan.close()

    def _find(self, place: int) -> _Rows:
        made = _Slice.from_address(_library().reveal_ring_slice(self.handle, place))
        layout, ticks = self._scan.layout, self._ticks
        return _Rows(
            self._view(made.said, _SAID + ticks, "q"),
            self._view(made.fast, ticks * layout.fast, "q"),
            self._view(made.slow, layout.slow, "q"),
            self._view(made.spent, ticks * layout.owners, "i"),
            self._view(made.flags, layout.owners, "B"),
        )

    def _view(self, address: int, count: int, kind: Literal["q", "i", "B"]) -> memoryview[int]:
        at, empty = address - self._begin, memoryview(array(kind))
        if not count:  # nothing cannot be cast
            return empty
        return memoryview(self._memory)[at : at + count * empty.itemsize].cast(kind)


class _Rows(NamedTuple):
    """The parts of one slice in its ring, of as many ticks as it can have."""

    said: memoryview[int]
    fast: memoryview[int]
    slow: memoryview[int]
    spent: memoryview[int]
    flags: memoryview[int]


class Ticker:
    """The thread in C.  One thread of Python starts it, waits for slices and swaps plans."""

    def __init__(self, scan: NativePlan, phase_ns: int, period_ns: int) -> None:
        self._ticks = 1_000_000_000 // period_ns
        self._rings: dict[int, _Ring] = {}
        self._number = 0
        self._closing = threading.Lock()
        self._handle = _library().reveal_ticker_start(self._ring(scan), phase_ns, period_ns)
        if not self._handle:
            self._drop_older_than(self._number + 1)
            raise OSError(ctypes.get_errno(), "no thread for the scanner")

    @property
    def not_real_time(self) -> str:
        """Why the thread does not run under SCHED_FIFO; empty where it does."""
        refused = _library().reveal_ticker_refused(self._handle)
        if not refused:
            return ""
        return no_real_time(os.strerror(abs(refused)), niced=refused < 0)

    def swap(self, scan: NativePlan) -> int:
        """Use another plan from the next slice on; gives its number."""
        unused = _library().reveal_ticker_swap(self._handle, self._ring(scan))
        for number in [known for known, ring in self._rings.items() if ring.handle == unused]:
            self._rings.pop(number).close()
        return self._number

    def wait(self, timeout_ns: int) -> NativeSlice | None:
        """The next finished slice; none within the time, or after the last one of all.

        What the last one showed is the thread's again.
        """
        name = _library().reveal_ticker_wait(self._handle, timeout_ns)
        if name < 0:
            return None
        plan, place = divmod(name, _PLACES)
        rows = self._rings[plan].rows(place)
        if next(iter(self._rings)) < plan:
            self._drop_older_than(plan)
        said = rows.said.tolist()
        due, start_ns, ticks, longest, longest_slow, flagged = said[:6]
        fast, spent = rows.fast, rows.spent
        if ticks < self._ticks:
            fast = fast[: len(fast) // self._ticks * ticks]
            spent = spent[: len(spent) // self._ticks * ticks]
        return NativeSlice(
            due, start_ns, plan, fast, rows.slow, said[_SAID : _SAID + ticks], spent,
            longest, longest_slow, flagged, rows.flags, Punctuality(*said[6:_SAID]),
        )  # fmt: skip

    def wake(self) -> None:
        """Let the thread that waits return now, without a slice; from any thread, at any time."""
        with self._closing:
            if self._handle:
                _library().reveal_ticker_wake(self._handle)

    def stop(self) -> None:
        """End within a tick; what was sampled so far can still be waited for."""
        _library().reveal_ticker_stop(self._handle)

    def close(self) -> None:
        """After ``stop``: free all plans."""
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
    """The type of an array with room for them: few such types are made, for the same reason."""
    return CFile * (1 << count.bit_length())


@cache
def _library() -> ctypes.CDLL:
    """The library with its functions' types; only where ``load`` found one."""
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
        ("ticker_stop", None, [c_void_p]),
        ("ticker_free", None, [c_void_p]),
    )
    for name, result, arguments in functions:
        function = library[f"reveal_{name}"]
        function.restype, function.argtypes = result, arguments
        setattr(library, f"reveal_{name}", function)
    return library
