"""Waits for a CPU: for threads of the subject itself, for others, and for a CPU that wakes up.

A thread often waits behind another one of its subject although there are CPUs enough for both:
other subjects run on them, so the scheduler has put the two on one CPU.  Such a wait is lost to the
others.  Only the threads above the number of CPUs that the subject may use, its surplus, wait for
each other whoever else is there.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class CpuWaits(NamedTuple):
    """Waits in ns: for itself, while the CPU was idle, and for others by index of who ran."""

    own: int
    idle: int
    others: Mapping[int, int]


class CpuTimes(NamedTuple):
    """Times of a subject in ns; ``occupied`` is the part of its other CPUs on which others ran."""

    ran: int
    waited: int
    surplus: int
    occupied: float

    @property
    def own_waits(self) -> int:
        """How long its threads wait for each other because of their number alone.

        Of R runnable threads, S of them surplus, R - S have a CPU where no other subject is.  Where
        others leave it K of these CPUs, S waits are spread over R - S threads of which K run, so
        that K S / (R - S) waits are its own, and the others take an equal part of all.
        """
        useful = self.ran + self.waited - self.surplus
        return round(self.ran * self.surplus / useful) if useful > 0 else 0


def split_waits(
    waited: Mapping[int, int], itself: int, idle_index: int, times: CpuTimes | None
) -> CpuWaits:
    """Return the waits of a subject by cause, from its waits by the index of who ran.

    Waits for itself that are not its own are those for the others, in proportion to its other waits
    for them, as far as others run on its CPUs; else for CPUs that wake up.  Without ``times`` all
    waits for itself are its own.
    """
    own, idle = (max(0, waited.get(index, 0)) for index in (itself, idle_index))
    others = {i: ns for i, ns in waited.items() if i not in (itself, idle_index) and ns > 0}
    excess = 0 if times is None else max(0, own - times.own_waits)
    if not excess or times is None:
        return CpuWaits(own, idle, others)
    direct = sum(others.values())
    taken = round(excess * times.occupied) if direct else 0
    scale = 1 + taken / direct if direct else 1.0
    increased = {index: round(ns * scale) for index, ns in others.items()}
    return CpuWaits(own - excess, idle + excess - taken, increased)
