"""Ratios of hardware counters: work per cycle, where cycles were lost, and clock speed.

Both sides are sums over the host (or means of a CPU), so a ratio describes all work done.  Below a
floor of the denominator the value is missing, as the few instructions of an idle host have neither
the mix nor the clock of its work.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from reveal_analyzer.kernels.formulas import Formula, guarded, maximum_known, read
from reveal_contract import catalogue
from reveal_contract.metric import Metric

ChannelIndices = Mapping[tuple[str, str], int]
RatioFormula = tuple[Metric, str, Formula]

_PPM = 1e6
_SOME_CYCLES = 2e8  # per second, a tenth of a CPU
_SOME_EVENTS = 1e5
_IDLE_TICKS = 2e7  # of the TSC: a hundredth of a second


@dataclass(frozen=True)
class CounterRatio:
    """``factor`` * ``over`` / sum of ``under``, times ``rate`` if there is one."""

    metric: str
    over: str
    under: Sequence[str]
    factor: float = 1.0
    floor: float = _SOME_CYCLES
    rate: str = ""


_PMU = "cpu.pmu."
_MEMORY = "memory.pmu."
COUNTER_RATIOS = (
    CounterRatio("cpu.ipc", _PMU + "instructions", (_PMU + "cycles",)),
    CounterRatio("cpu.branch_miss_share", _PMU + "branch_misses", (_PMU + "branches",), _PPM,
             _SOME_EVENTS),
    CounterRatio("cpu.backend_stall_share", _PMU + "backend_stalls", (_PMU + "cycles",), _PPM),
    CounterRatio("memory.stall_share", _MEMORY + "stalls", (_PMU + "cycles",), _PPM),
    CounterRatio("memory.llc_miss_share", _MEMORY + "llc_misses", (_MEMORY + "llc_references",),
             _PPM, _SOME_EVENTS),
    CounterRatio("memory.loads_per_instruction", _MEMORY + "loads", (_PMU + "instructions",)),
    CounterRatio("memory.remote_fill_share", _MEMORY + "remote_fills",
             (_MEMORY + "remote_fills", _MEMORY + "local_fills"), _PPM, _SOME_EVENTS),
    CounterRatio("cpu.busy_share", "cpu.mperf", ("cpu.tsc",), _PPM, _IDLE_TICKS),
    CounterRatio("cpu.busy_frequency", "cpu.aperf", ("cpu.mperf",), floor=_IDLE_TICKS,
             rate="cpu.tsc"),
)  # fmt: skip


def cpu_ratios(indices: ChannelIndices) -> Iterator[RatioFormula]:
    """Yield metric, instance and formula of every ratio that these channels allow."""
    for ratio in COUNTER_RATIOS:
        channels = [indices.get((name, ""), -1) for name in (ratio.over, *ratio.under)]
        rate = indices.get((ratio.rate, ""), -1)
        if min(channels) >= 0 and (rate >= 0 or not ratio.rate):
            yield catalogue.find(ratio.metric), "", _formula(ratio, channels, rate)
    if (clock := indices.get(("cpu.tsc", ""))) is not None:
        for (metric, state), channel in indices.items():
            if metric == "cpu.residency.core":
                yield catalogue.find("cpu.residency_share"), state, _share(channel, clock)


def _formula(ratio: CounterRatio, channels: Sequence[int], rate: int) -> Formula:
    first, *others = (read(channel) for channel in channels[1:])
    whole = sum(others, first)
    value = ratio.factor * read(channels[0]) / whole
    return guarded(value * read(rate) if ratio.rate else value, whole, ratio.floor)


def _share(channel: int, clock: int) -> Formula:
    return _PPM * read(channel) / maximum_known(read(clock), 1.0)
