"""From the totals of the programs to the counters of subjects and pairs."""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import Array
from operator import sub
from typing import Any

from reveal_collector.ledger.cpu_waits import CpuTimes, CpuWaits, split_waits
from reveal_collector.ledger.disk_latency import AloneLatencies, Requests
from reveal_collector.ledger.disk_waits import DiskUse
from reveal_collector.ledger.programs import (
    BUSY,
    DISKS,
    SECTOR_BYTES,
    SLOT_FIRST,
    SLOT_IDLE,
    SLOT_KERNEL,
    SLOT_OTHER,
    STATES,
    WAITS,
    WRAP,
    State,
    Totals,
)
from reveal_collector.ledger.slots import Slot
from reveal_contract import ledger
from reveal_contract.time_units import NS_PER_SECOND

WAIT_METRICS = (ledger.WAITS, *ledger.LONG_WAITS.values())
METRICS = (*ledger.PARTS, ledger.THREAD_TIME, ledger.DISK, *WAIT_METRICS)
KERNEL_METRICS = (ledger.RUN, ledger.DISK)
FIXED = (
    Slot(ledger.OTHER, SLOT_OTHER, SLOT_OTHER, frozenset()),
    Slot(ledger.KERNEL, SLOT_KERNEL, SLOT_KERNEL, frozenset()),
)
_DESIRED = (
    State.RUN, State.RECLAIM, State.IRQ, State.WAIT, State.THROTTLED, State.IO, State.MEMORY,
    State.LOCKED, State.STOPPED,
)  # fmt: skip
_LEEWAY = 64  # threads that may have come and gone between two readings

Names = tuple[str, str]


class Interval:
    """What happened between two readings.

    ``requests`` are those of each subject by disk.  ``alone`` says how long they take without those
    of others.
    """

    def __init__(
        self, before: Totals, now: Totals, slots: Sequence[Slot], alone: AloneLatencies
    ) -> None:
        self.elapsed_ns = now.now - before.now
        self._waits: dict[int, CpuWaits] = {}  # by slot number
        self._everybody = everybody = (*FIXED, *slots)
        self._culprits = {
            slot.busy: slot.name for slot in everybody if slot.has_index or slot in FIXED
        }
        # by slot number, as each access to the totals would cost a conversion
        count = 1 + max(slot.number for slot in everybody)
        self._spent = _steps(before.spent, now.spent, count, STATES)
        self._wait_counts = _steps(before.waits, now.waits, count, WAITS)
        self._cpus = now.cpus[:count]
        self._threads = before.threads[:count], now.threads[:count]
        disks = _steps(before.disks, now.disks, count, DISKS)
        width = max(1 + max(self._culprits), SLOT_FIRST)
        self._waited = [row[:width] for row in _steps(before.waited, now.waited, width, BUSY)]
        self._all_ran = sum(self._ran(slot) for slot in everybody)
        counts = _steps(before.completed, now.completed, count, DISKS)
        sectors = _steps(before.sectors, now.sectors, count, DISKS)
        self.requests = {
            slot.name: _requests(disks[n := slot.number], counts[n], sectors[n])
            for slot in everybody
            if self._spent[slot.number][State.DISK] > 0
        }
        self._disks = DiskUse(
            {name: [each.time_ns for each in row] for name, row in self.requests.items()},
            lambda name, disk: alone.own_part(name, disk, self.requests[name][disk]),
            {slot.name: self._spent[slot.number][State.IO] for slot in everybody},
        )

    @property
    def is_plausible(self) -> bool:
        """Whether no state lasted longer than all threads could have been in it.

        A count that was read without its base is off by the time since the boot.
        """
        elapsed = max(self.elapsed_ns, NS_PER_SECOND)
        threads_before, threads = self._threads
        for slot in self._everybody:
            number = slot.number
            most = abs(threads_before[number]) + abs(threads[number]) + _LEEWAY
            limit, steps = 2 * most * elapsed, self._spent[number]
            if max(steps) > limit or min(steps) < -limit:
                return False
        return True

    def desired_cpus(self, slot: Slot) -> float:
        """Return the mean number of CPUs that a subject used, or would have used."""
        spent = self._spent[slot.number]
        return max(0, sum(spent[state] for state in _DESIRED)) / max(self.elapsed_ns, 1)

    def counters(self, slot: Slot) -> list[int]:
        """Return the increments of a subject in the order of ``METRICS``."""
        spent = self._spent[slot.number]
        cpu = self._cpu_waits(slot)
        io = spent[State.IO]
        io_others = round(io * (1 - self._disks.shares(slot.name).get(slot.name, 0.0))) if io else 0
        return [
            spent[State.RUN],
            spent[State.WAIT] - cpu.own - cpu.idle,
            cpu.own,
            cpu.idle,
            spent[State.THROTTLED],
            io_others,
            io - io_others,
            spent[State.MEMORY] + spent[State.RECLAIM],
            spent[State.IRQ],
            spent[State.LOCKED],
            spent[State.STOPPED],
            spent[State.KILLABLE],
            spent[State.SLEEP],
            spent[State.ALIVE],
            spent[State.DISK],
            *self._wait_counts[slot.number],
        ]

    def pairs(self, victim: Slot) -> dict[Names, tuple[int, int]]:
        """Return what a subject lost to each other one: waiting for a CPU, and for storage.

        The keys are names of victim and culprit; a ``Pair`` of each would cost more than the rest.
        """
        cpu = {
            self._culprits[index]: step
            for index, step in self._cpu_waits(victim).others.items()
            if index in self._culprits
        }
        io = self._spent[victim.number][State.IO]
        shares = self._disks.shares(victim.name) if io > 0 else {}
        disk = {name: round(share * io) for name, share in shares.items()}
        return {
            (victim.name, name): (cpu.get(name, 0), disk.get(name, 0))
            for name in cpu.keys() | disk.keys()
            if name != victim.name
        }

    def _cpu_waits(self, slot: Slot) -> CpuWaits:
        known = self._waits.get(slot.number)
        if known is None:
            times = self._cpu_times(slot)
            if slot.has_index:
                known = split_waits(self._waits_for(slot), slot.busy, SLOT_IDLE, times)
            else:  # only how many of its waits are its own can be known
                own = 0 if times is None else max(0, min(times.waited, times.own_waits))
                known = CpuWaits(own, 0, {})
            self._waits[slot.number] = known
        return known

    def _waits_for(self, slot: Slot) -> dict[int, int]:
        """Return the waits by the index of who ran, without those of none."""
        return {index: step for index, step in enumerate(self._waited[slot.busy]) if step}

    def _cpu_times(self, slot: Slot) -> CpuTimes | None:
        """Return what its waits for itself are judged by; None where its CPUs are not known."""
        cpus = self._cpus[slot.number]
        if not cpus:
            return None
        spent, ran = self._spent[slot.number], self._ran(slot)
        free, others = cpus * self.elapsed_ns - ran, self._all_ran - ran
        occupied = min(1.0, others / free) if free > 0 else 1.0
        return CpuTimes(ran, spent[State.WAIT], spent[State.SURPLUS], occupied)

    def _ran(self, slot: Slot) -> int:
        spent = self._spent[slot.number]
        return spent[State.RUN] + spent[State.RECLAIM] + spent[State.IRQ]


def _requests(
    times: Sequence[int], counts: Sequence[int], sectors: Sequence[int]
) -> list[Requests]:
    """Return the requests of a subject by disk."""
    columns = zip(times, counts, sectors, strict=True)
    return [
        Requests(max(0, time), count % WRAP, number % WRAP * SECTOR_BYTES)
        for time, count, number in columns
    ]


def _steps(before: Array[Any], now: Array[Any], rows: int, width: int) -> list[list[int]]:
    """Return the increments of the first rows of a table of totals."""
    first, last = (
        memoryview(each).cast("B").cast("q")[: rows * width].tolist() for each in (before, now)
    )
    steps = list(map(sub, last, first))
    return [steps[begin : begin + width] for begin in range(0, rows * width, width)]
