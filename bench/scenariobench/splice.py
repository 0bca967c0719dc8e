"""Splicing: seconds of clips in a new order, made to fit, and the differences of one on another."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reveal_contract.catalogue import find
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.metric import Kind
from scenariobench.clip import Clip, Frame, table_of
from scenariobench.cpu_time import CpuTime

_SETTLED_S = 2  # seconds of a fault until its programs run as they go on running
_RUN_S = (4, 12)  # seconds played in one direction before the order turns
_CALM_S, _CALM_BYTES = 8, 1 << 20
_BURST, _BURST_BYTES = 8.0, 4 << 20  # times the median of the fault, and at least
Floats = NDArray[np.float64]
Indices = NDArray[np.intp]


def bouncing(
    rng: random.Random, low: int, high: int, start: int | None = None,
    may_turn: Sequence[bool] | None = None,
) -> Iterator[int]:  # fmt: skip
    """Yield seconds of ``[low, high)`` for ever, forth and back, turning at random.

    Neighbors stay neighbors: a gauge that drifts in the recording does not jump.  ``may_turn`` (by
    second) restricts where the order turns, except at both ends.
    """
    second, step, left = low if start is None else start, 1, rng.randint(*_RUN_S) * 2
    while True:
        yield second
        left -= 1
        turns = left <= 0 and (may_turn is None or may_turn[second])
        if turns or not low <= second + step < high:
            step, left = -step, rng.randint(*_RUN_S)
        if low <= second + step < high:
            second += step


def calm_seconds(clip: Clip) -> list[bool]:
    """Return in which seconds of a healthy clip its order may turn.

    Not where the job writes a checkpoint or something is read: played forth and back within
    seconds, a short burst would be a long one.
    """
    moved = _disk_bytes(clip)
    return [
        bool(moved[max(0, second - _CALM_S) : second + _CALM_S + 1].max() <= _CALM_BYTES)
        for second in range(len(clip))
    ]


def _disk_bytes(clip: Clip) -> Floats:
    """Return the bytes that disks moved, by second."""
    metrics = ("storage.disk.read_bytes", "storage.disk.write_bytes")
    indices = [i for i, channel in enumerate(clip.channels.fast) if channel.metric in metrics]
    scales = np.array([clip.channels.fast[index].scale for index in indices], np.float64)
    return np.asarray(clip.fast[:, :, indices].sum(axis=1) @ scales)


def _steady(clip: Clip, low: int, high: int) -> tuple[int, int]:
    """Return the longest part of some active seconds without a checkpoint of the workload.

    The checkpoint is played once: the job does not write one every few seconds.
    """
    moved = _disk_bytes(clip)[low:high]
    burst = moved > max(_BURST_BYTES, _BURST * float(np.median(moved)))
    if not burst.any():
        return low, high
    edges = [-1, *np.flatnonzero(burst).tolist(), len(burst)]
    start, stop = max(pairwise(edges), key=lambda pair: pair[1] - pair[0])
    return (low + start + 1, low + stop) if stop - start > 1 else (low, high)


def fault_seconds(clip: Clip, seconds: int, rng: random.Random) -> list[int]:
    """Return the seconds of the clip for a fault that lasts so long, its rest included.

    They begin with the second in which it starts.  The active seconds come first as recorded,
    then again in a varying order.
    """
    fault = clip.fault
    assert fault is not None
    active = list(range(fault.first + 1, fault.last))
    chosen = active[: max(seconds - 1, 0)]
    low, high = _steady(clip, min(fault.first + 1 + _SETTLED_S, fault.last - 1), fault.last)
    order = bouncing(rng, low, high, high - 1)
    next(order)
    while len(chosen) < seconds - 1:
        chosen.append(next(order))
    return [fault.first, *chosen, *range(fault.last, len(clip))]


class Levels(NamedTuple):
    """Mean of each channel over quiet seconds: counts a tick for counters, levels for gauges."""

    fast: dict[Channel, float]
    slow: dict[Channel, float]


def quiet_levels(clip: Clip) -> Levels:
    """Return the means over the seconds before the fault, or over all where there is none."""
    return levels_of(clip, 0, clip.fault.first if clip.fault else len(clip))


def levels_of(clip: Clip, start: int, stop: int) -> Levels:
    """Return the means over some seconds of a clip."""
    window = slice(start, stop)
    fast = _mean(clip.fast[window], clip.fast_missing[window], (0, 1))
    slow = _mean(clip.slow[window], clip.slow_missing[window], (0,))
    width = len(clip.channels.fast)
    known = clip.present[window].any(axis=0)
    return Levels(
        {c: fast[i] for i, c in enumerate(clip.channels.fast) if known[i]},
        {c: slow[i] for i, c in enumerate(clip.channels.slow) if known[width + i]},
    )


def _mean(values: NDArray[np.int64], missing: NDArray[np.bool_], axes: tuple[int, ...]) -> Floats:
    counts = (~missing).sum(axis=axes)
    sums = np.where(missing, 0, values).sum(axis=axes)
    return np.asarray(sums / np.maximum(counts, 1), np.float64)


class Shift:
    """Moves the gauges of a clip to the level that they have in another one.

    Two recordings of a host differ in what its memory holds.  A jump where they meet would be a
    change that nobody made.
    """

    def __init__(self, own: Levels, target: Levels) -> None:
        self._own, self._target = own, target
        self._known: dict[bytes, tuple[NDArray[np.int64], NDArray[np.int64]]] = {}

    def apply(self, frame: Frame) -> Frame:
        key = frame.table.key
        if key not in self._known:
            self._known[key] = (
                _shifts(frame.table.fast, self._own.fast, self._target.fast),
                _shifts(frame.table.slow, self._own.slow, self._target.slow),
            )
        fast, slow = self._known[key]
        return frame._replace(
            fast=np.maximum(frame.fast + fast, np.minimum(frame.fast, 0)),
            slow=np.maximum(frame.slow + slow, np.minimum(frame.slow, 0)),
        )


def _shifts(
    channels: Sequence[Channel], own: dict[Channel, float], target: dict[Channel, float]
) -> NDArray[np.int64]:
    return np.array(
        [
            round(target[channel] - own[channel])
            if channel.kind is Kind.GAUGE and channel in own and channel in target
            else 0
            for channel in channels
        ],
        np.int64,
    )


class Layer:
    """Adds what a clip differs by from its own quiet level to the seconds of another.

    A channel that the other does not have comes with it as recorded: the cgroup of a fault.
    That a fault slowed the workload of its own recording, so that CPUs idled, is left out: beside
    another fault they do not idle.
    """

    def __init__(self, clip: Clip) -> None:
        self.clip = clip
        self._quiet = quiet_levels(clip)
        self._left_out = _relieved(clip, self._quiet)
        self._ticks = 0
        self._plans: dict[tuple[bytes, bytes], _Plan] = {}
        self._owed: dict[Channel, float] = {}

    def add(self, base: Frame, second: int) -> Frame:
        """Return the second ``base`` with this layer's second on top of it."""
        top = self.clip.frame(second)
        key = base.table.key, top.table.key
        if key not in self._plans:
            self._plans[key] = _plan(base.table, top.table, self._quiet, self._left_out)
        plan, tick, ticks = self._plans[key], self._ticks, len(base.fast)
        self._ticks += ticks
        fast, slow = base.fast.copy(), base.slow.copy()
        levels = _dithered(plan.quiet_fast, plan.gauge_fast, tick, ticks)
        read = ~top.fast_missing[:, plan.fast_from]
        fast[:, plan.fast_to] += read * (top.fast[:, plan.fast_from] - levels)
        level = _dithered(plan.quiet_slow, plan.gauge_slow, tick // ticks, 1)[0]
        read_slow = ~top.slow_missing[plan.slow_from]
        slow[plan.slow_to] += read_slow * (top.slow[plan.slow_from] - level)
        self._settle(base.table.fast, fast, plan.most_owed_fast)
        self._settle(base.table.slow, slow[None, :], plan.most_owed_slow)
        np.minimum(fast, plan.cap(base.fast, self.clip.tick_us), out=fast)
        plan.cpu_time.fit(base.fast, fast, base.fast_missing, self.clip.tick_us)
        return Frame(
            plan.table,
            np.concatenate([fast, top.fast[:, plan.fast_new]], axis=1),
            np.concatenate([slow, top.slow[plan.slow_new]]),
            np.concatenate([base.fast_missing, top.fast_missing[:, plan.fast_new]], axis=1),
            np.concatenate([base.slow_missing, top.slow_missing[plan.slow_new]]),
        )

    def _settle(self, channels: Sequence[Channel], values: NDArray[np.int64], most: Floats) -> None:
        """Raise negative values to 0, and take the difference from the next ones.

        Otherwise the mean of a counter that counts rarely would be too high.
        """
        owed = np.array([self._owed.get(channel, 0.0) for channel in channels])
        if not (values.min(initial=0) < 0 or owed.any()):
            return
        for index in range(len(values)):
            sums = values[index] + np.rint(owed).astype(np.int64)
            owed = np.maximum(np.minimum(sums, 0), most)
            values[index] = np.maximum(sums, 0)
        self._owed.update(zip(channels, owed.tolist(), strict=True))


class _Plan(NamedTuple):
    """Which channels of a layer go where."""

    table: ChannelTable
    fast_from: Indices
    fast_to: Indices
    fast_new: Indices
    slow_from: Indices
    slow_to: Indices
    slow_new: Indices
    quiet_fast: Floats
    quiet_slow: Floats
    gauge_fast: NDArray[np.bool_]
    gauge_slow: NDArray[np.bool_]
    most_owed_fast: Floats  # by channel of the base: a quiet second of it, below 0
    most_owed_slow: Floats
    pressure_ns: Floats  # scale of pressures, 0 for all other channels of the base
    cpu_time: CpuTime

    def cap(self, base: NDArray[np.int64], tick_us: int) -> NDArray[np.int64]:
        """Return the most that a tick can count: nothing waits for longer than the tick lasts."""
        most = np.full(base.shape[1], np.iinfo(np.int64).max)
        capped = self.pressure_ns > 0
        most[capped] = tick_us * 1000 / self.pressure_ns[capped]
        return np.maximum(most, base)


def _relieved(clip: Clip, quiet: Levels) -> frozenset[Channel]:
    """Return the channels of CPU time and waiting that the fault of a clip relieves."""
    fault = clip.fault
    if fault is None:
        return frozenset()
    active = levels_of(clip, fault.first + 1, fault.last)
    return frozenset(
        channel
        for own, known in ((active.fast, quiet.fast), (active.slow, quiet.slow))
        for channel, level in own.items()
        if channel in known and _is_relief(channel, level - known[channel])
    )


def _is_relief(channel: Channel, change: float) -> bool:
    metric = channel.metric
    if metric.startswith("cpu.idle"):
        return change > 0
    loads = metric.startswith("cpu.") and find(metric).unit == "ns"
    return change < 0 and (loads or ".pressure." in metric or metric == "cpu.procs_running")


def _plan(
    base: ChannelTable, top: ChannelTable, quiet: Levels, left_out: frozenset[Channel]
) -> _Plan:
    fast_from, fast_to, fast_new = _paired(base.fast, top.fast, left_out)
    slow_from, slow_to, slow_new = _paired(base.slow, top.slow, left_out)
    new_fast = tuple(top.fast[index] for index in fast_new)
    new_slow = tuple(top.slow[index] for index in slow_new)
    both_fast = [top.fast[index] for index in fast_from]
    both_slow = [top.slow[index] for index in slow_from]
    return _Plan(
        table_of(base.fast + new_fast, base.slow + new_slow),
        fast_from, fast_to, fast_new, slow_from, slow_to, slow_new,
        np.array([quiet.fast.get(channel, 0.0) for channel in both_fast]),
        np.array([quiet.slow.get(channel, 0.0) for channel in both_slow]),
        _gauges(both_fast), _gauges(both_slow),
        np.array([_most_owed(c, quiet.fast.get(c, 0.0) * 10) for c in base.fast]),
        np.array([_most_owed(c, quiet.slow.get(c, 0.0)) for c in base.slow]),
        np.array([c.scale if _is_pressure(c) else 0.0 for c in base.fast]),
        CpuTime(base.fast),
    )  # fmt: skip


def _paired(
    base: tuple[Channel, ...], top: tuple[Channel, ...], left_out: frozenset[Channel]
) -> tuple[Indices, Indices, Indices]:
    """Return indices in ``top`` and ``base`` of what both have, and in ``top`` of the rest."""
    index = {c: position for position, c in enumerate(base) if c not in left_out}
    both = [(position, index[c]) for position, c in enumerate(top) if c in index]
    names = {(channel.metric, channel.instance) for channel in base}
    new = [p for p, channel in enumerate(top) if (channel.metric, channel.instance) not in names]
    return (
        np.array([pair[0] for pair in both], np.intp),
        np.array([pair[1] for pair in both], np.intp),
        np.array(new, np.intp),
    )


def _most_owed(channel: Channel, quiet_second: float) -> float:
    return -max(1.0, quiet_second) if channel.kind is Kind.COUNTER else 0.0


@lru_cache(maxsize=1 << 14)
def _is_pressure(channel: Channel) -> bool:
    return ".pressure." in channel.metric and channel.kind is Kind.COUNTER


def _gauges(channels: Sequence[Channel]) -> NDArray[np.bool_]:
    return np.array([channel.kind is not Kind.COUNTER for channel in channels], np.bool_)


def _dithered(
    levels: Floats, gauges: NDArray[np.bool_], start: int, count: int
) -> NDArray[np.int64]:
    """Return whole numbers, (count, channels), whose mean over time is ``levels``."""
    ticks = np.arange(start, start + count + 1)[:, None]
    steps = np.diff(np.floor(ticks * levels[None, :]), axis=0)
    return np.where(gauges, np.round(levels), steps).astype(np.int64)
