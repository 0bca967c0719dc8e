"""Quotients of hardware counters: what a cycle achieved, where it was lost, how fast it was.

Both sides are sums over the host (or means of a CPU), so a quotient is that of all the work
done.  Below a floor of the denominator nothing ran that could be judged: the value is missing
then, for the few instructions of an idle host have neither the mix nor the clock of its work.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from reveal_analyzer.kernels.formulas import Formula, guarded, maximum_known, read
from reveal_contract import catalogue
from reveal_contract.metric import Metric

Places = Mapping[tuple[str, str], int]
Computed = tuple[Metric, str, Formula]

_PPM = 1e6
_SOME_CYCLES = 2e8  # a second: a tenth of a CPU
_SOME_EVENTS = 1e5
_IDLE_TICKS = 2e7  # of the TSC: a hundredth of a second


@dataclass(frozen=True)
class Quotient:
    """``factor`` * ``over`` / sum of ``under``, times ``rate`` where there is one."""

    metric: str
    over: str
    under: Sequence[str]
    factor: float = 1.0
    floor: float = _SOME_CYCLES
    rate: str = ""


_PMU = "cpu.pmu."
_MEMORY = "memory.pmu."
QUOTIENTS = (
    Quotient("cpu.ipc", _PMU + "instructions", (_PMU + "cycles",)),
    Quotient("cpu.branch_miss_share", _PMU + "branch_misses", (_PMU + "branches",), _PPM,
             _SOME_EVENTS),
    Quotient("cpu.backend_stall_share", _PMU + "backend_stalls", (_PMU + "cycles",), _PPM),
    Quotient("memory.stall_share", _MEMORY + "stalls", (_PMU + "cycles",), _PPM),
    Quotient("memory.llc_miss_share", _MEMORY + "llc_misses", (_MEMORY + "llc_references",),
             _PPM, _SOME_EVENTS),
    Quotient("memory.loads_per_instruction", _MEMORY + "loads", (_PMU + "instructions",)),
    Quotient("memory.remote_fill_share", _MEMORY + "remote_fills",
             (_MEMORY + "remote_fills", _MEMORY + "local_fills"), _PPM, _SOME_EVENTS),
    Quotient("cpu.busy_share", "cpu.mperf", ("cpu.tsc",), _PPM, _IDLE_TICKS),
    Quotient("cpu.busy_frequency", "cpu.aperf", ("cpu.mperf",), floor=_IDLE_TICKS,
             rate="cpu.tsc"),
)  # fmt: skip


def quotients(at: Places) -> Iterator[Computed]:
    """Metric, instance and formula of every quotient these channels allow."""
    for each in QUOTIENTS:
        places = [at.get((name, ""), -1) for name in (each.over, *each.under)]
        rate = at.get((each.rate, ""), -1)
        if min(places) >= 0 and (rate >= 0 or not each.rate):
            yield catalogue.find(each.metric), "", _computing(each, places, rate)
    if (clock := at.get(("cpu.tsc", ""))) is not None:
        for (metric, state), place in at.items():
            if metric == "cpu.residency.core":
                yield catalogue.find("cpu.residency_share"), state, _share(place, clock)


def _computing(each: Quotient, places: Sequence[int], rate: int) -> Formula:
    first, *others = (read(place) for place in places[1:])
    whole = sum(others, first)
    value = each.factor * read(places[0]) / whole
    return guarded(value * read(rate) if each.rate else value, whole, each.floor)


def _share(place: int, clock: int) -> Formula:
    return _PPM * read(place) / maximum_known(read(clock), 1.0)
