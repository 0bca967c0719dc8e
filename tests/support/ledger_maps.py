"""Hand-made totals and map contents of the lost-time ledger."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from ctypes import Structure, byref, c_int32, c_int64, c_uint32, c_uint64
from typing import Any

from reveal_collector import native
from reveal_collector.ledger.programs import (
    BUSY,
    DISKS,
    SLOTS,
    STATES,
    WAITS,
    Extent,
    State,
    Totals,
    declared,
)
from reveal_collector.ledger.slots import Slot

SECOND = 1_000_000_000


class Cpu(Structure):
    """The part of one CPU, ``struct ledger_cpu`` of ledger.h."""

    _fields_ = (
        ("begun", c_uint64),
        ("ended", c_uint64),
        ("last", c_uint64),
        ("waiting", c_uint64),
        ("irq_since", c_uint64),
        ("slot", c_uint32),
        ("busy", c_uint32),
        ("stalled", c_uint32),
        ("pid", c_uint32),
        ("switches", c_uint64),
        ("wakeups", c_uint64),
        ("missed", c_uint64),
        ("cost", c_uint64),
        ("nwait", c_int32 * BUSY),
        ("waited", c_int64 * BUSY * BUSY),
        ("n", c_int32 * STATES * SLOTS),
        ("base", c_int64 * STATES * SLOTS),
        ("waits", c_uint32 * WAITS * SLOTS),
        ("requests", c_int32 * DISKS * SLOTS),
        ("requests_base", c_int64 * DISKS * SLOTS),
        ("completed", c_uint32 * DISKS * SLOTS),
        ("sectors", c_uint32 * DISKS * SLOTS),
    )
    begun: int
    ended: int
    last: int
    slot: int
    busy: int
    stalled: int
    nwait: Any
    waited: Any
    n: Any
    base: Any
    waits: Any

    def enter(self, slot: int, state: State, time: int) -> None:
        """A thread enters a state, as the programs count it."""
        self.n[slot][state] += 1
        self.base[slot][state] -= time

    def leave(self, slot: int, state: State, time: int) -> None:
        """A thread leaves a state."""
        self.n[slot][state] -= 1
        self.base[slot][state] += time


def summed(cpus: Sequence[Cpu], now: int, extent: tuple[int, int] = (8, 8)) -> Totals:
    """Return the totals of these CPUs at a time; ``BlockingIOError`` if one is never at rest."""
    library = native.load().library
    assert library is not None
    calls = declared(library)
    array = (Cpu * len(cpus))(*cpus)
    copies, totals = (Cpu * len(cpus))(), Totals()
    result = calls["reveal_ledger_sum"](
        byref(array), len(cpus), byref(copies), byref(Extent(*extent)), now, byref(totals)
    )
    if result < 0:
        raise OSError(-result, "reveal_ledger_sum")
    return totals


def totals(
    now: int = 0,
    spent: Mapping[tuple[int, State], int] | None = None,
    waited: Mapping[tuple[int, int], int] | None = None,
    threads: Mapping[int, int] | None = None,
    cpus: Mapping[int, int] | None = None,
    disks: Mapping[tuple[int, int], int] | None = None,
    ended: Mapping[tuple[int, int], tuple[int, int]] | None = None,
) -> Totals:
    """Return totals with these times in ns: by slot and state, by victim and culprit, by disk.

    Without ``disks`` all requests are on one.  ``ended`` are the number and sectors of requests.
    """
    result = Totals(now=now)
    for (slot, state), time in (spent or {}).items():
        result.spent[slot][state] = time
        if state is State.DISK and disks is None:
            result.disks[slot][0] = time
    for (slot, disk), time in (disks or {}).items():
        result.disks[slot][disk] = time
        result.spent[slot][State.DISK] += time
    for (slot, disk), (count, sectors) in (ended or {}).items():
        result.completed[slot][disk], result.sectors[slot][disk] = count, sectors
    for (victim, culprit), time in (waited or {}).items():
        result.waited[victim][culprit] = time
    for slot, count in (threads or {}).items():
        result.threads[slot] = count
    for slot, count in (cpus or {}).items():
        result.cpus[slot] = count
    return result


def slot(name: str, slot: int, busy: int | None = None) -> Slot:
    """Return a slot whose index of the matrix is, by default, the number of its slot."""
    return Slot(name, slot, slot if busy is None else busy, frozenset({slot}))
