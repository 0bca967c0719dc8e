"""Counters that may carry a job's rhythm, and their increments within each second.

The CPU clock of a subject is read at 50 Hz or 10 Hz; its reads, page faults and received bytes
only once a second.  The host's counters of these are read at every tick.  If nearly all of a
host counter comes from one subject, it is used as that subject's counter.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from reveal_analyzer.arrays import Floats, Indices
from reveal_analyzer.derive.channel_index import indices_of
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.kube.names import is_analyzer_pod
from reveal_contract.wire import Message

FINE, USAGE = "cpu.subject.usage.fine", "cpu.subject.usage"
# metric of a subject, read once a second -> the host's metric, read at every tick
HOST_METRICS = {
    "storage.subject.read_bytes": "storage.disk.read_bytes",
    "memory.subject.page_faults": "memory.vm.pgfault",
    "network.subject.rx_bytes": "network.nic.rx_bytes",
}
# shares of a host counter from which it counts as a subject's, and with which it stays so
_ASSIGN_SHARE, _KEEP_SHARE = 0.8, 0.6
_DECAY = 59 / 60  # a second: sums and means over about a minute
_BUSY, _IDLE = 0.05, 0.02  # CPUs from which a subject is watched, and with which it stays so

Channels = Iterable[tuple[int, Channel]]


@dataclass(frozen=True)
class SeriesPlan:
    """Indices of a message's columns that may carry the rhythm of a subject.

    ``usage`` and ``scales`` (to CPU seconds) are in the order of ``subjects``; ``fine`` are the
    columns of a subject's CPU clock in order of time, ``own`` those of its slow metrics, ``host``
    the columns of a host metric, one per instance.
    """

    subjects: tuple[str, ...]
    usage: Indices
    scales: Floats
    fine: Mapping[str, Indices]
    own: Mapping[str, Mapping[str, int]]
    host: Mapping[str, Indices]

    @cached_property
    def known(self) -> frozenset[str]:
        """The subjects that the table has a CPU clock of."""
        return frozenset(self.subjects)


def plan(table: ChannelTable, leave_out: Callable[[Channel], bool] | None = None) -> SeriesPlan:
    """Return the plan of a channel table without the channels that ``leave_out`` selects.

    Reveal's own analyzers are no jobs: what they do each second follows the clocks of collectors.
    """

    def of(channels: tuple[Channel, ...], *metrics: str) -> list[tuple[int, Channel]]:
        indices = (index for metric in metrics for index in indices_of(channels, metric))
        found = ((index, channels[index]) for index in indices)
        return [each for each in found if not (leave_out and leave_out(each[1]))]

    clocks = [
        (i, channel)
        for i, channel in of(table.fast, USAGE)
        if channel.instance and not is_analyzer_pod(channel.instance)
    ]
    return SeriesPlan(
        subjects=tuple(channel.instance for _, channel in clocks),
        usage=np.array([i for i, _ in clocks], np.intp),
        scales=np.array([channel.scale / 1e9 for _, channel in clocks]),
        fine=_fine(of(table.fast, FINE)),
        own=_own(of(table.slow, *HOST_METRICS)),
        host=_host(of(table.fast, *HOST_METRICS.values())),
    )


def _fine(fast: Channels) -> dict[str, Indices]:
    """Return the columns of each fine CPU clock; their instances are SUBJECT#NUMBER."""
    found: dict[str, dict[int, int]] = {}
    for index, channel in fast:
        subject, _, number = channel.instance.rpartition("#")
        if number.isdigit():
            found.setdefault(subject, {})[int(number)] = index
    return {
        subject: np.array([columns[number] for number in sorted(columns)], np.intp)
        for subject, columns in found.items()
    }


def _own(slow: Channels) -> dict[str, dict[str, int]]:
    own: dict[str, dict[str, int]] = {}
    for index, channel in slow:
        own.setdefault(channel.instance, {})[channel.metric] = index
    return own


def _host(fast: Channels) -> dict[str, Indices]:
    found: dict[str, list[int]] = {}
    for index, channel in fast:
        found.setdefault(channel.metric, []).append(index)
    return {metric: np.array(columns, np.intp) for metric, columns in found.items()}


class CounterSeries:
    """Increments of every busy subject of a node, second by second.

    ``usages`` are the mean CPUs that subjects are known to use.
    """

    def __init__(self, usages: Mapping[str, float] | None = None) -> None:
        self._busy: dict[str, float] = dict(usages or {})  # subject -> mean CPUs used
        self._own_sums: dict[tuple[str, str], float] = {}  # subject and metric
        self._host_sums: dict[str, Floats] = {}  # host metric -> by instance
        self._assigned: set[tuple[str, str]] = set()

    def usage(self, subject: str) -> float:
        """Return the mean CPUs that a subject uses; 0 if it is not watched."""
        return self._busy.get(subject, 0.0)

    def second(self, message: Message, where: SeriesPlan) -> dict[str, dict[str, Floats]]:
        """Return by subject and metric the increments of a second; NaN where none was read."""
        watched = self._watched(message, where)
        if not watched:
            self._own_sums, self._host_sums, self._assigned = {}, {}, set()
            return {}
        self._add_host(message, where)
        series = {}
        for subject, usage in watched.items():
            fine = where.fine.get(subject)
            # a subject that became idle keeps its fine columns, which are not read then
            if fine is None or message.fast_missing[:, fine].all():
                series[subject] = {USAGE: _increments(message, np.array([usage])).ravel()}
            else:
                series[subject] = {FINE: _increments(message, fine).ravel()}
            series[subject] |= self._assigned_host(subject, message, where)
        return series

    def _watched(self, message: Message, where: SeriesPlan) -> dict[str, int]:
        """Return the busy subjects and the column of their CPU clock."""
        if not where.subjects:
            self._busy = {}
            return {}
        used = _cpus_used(message, where)
        means: dict[str, float] = {}
        watched: dict[str, int] = {}
        for subject, now, column in zip(
            where.subjects, used.tolist(), where.usage.tolist(), strict=True
        ):
            mean = _mean_use(self._busy.get(subject), now)
            if mean >= _IDLE:
                means[subject], watched[subject] = mean, column
        self._busy = means
        return watched

    def _add_host(self, message: Message, where: SeriesPlan) -> None:
        """Update the decaying sums of the host's counters; one that was not read keeps its sum."""
        sums = {}
        for metric, columns in where.host.items():
            increments = _increments(message, columns)
            now = np.nansum(increments, axis=0)
            before = self._host_sums.get(metric)
            # other instances, such as a new disk: the sum starts again
            if before is not None and before.shape == now.shape:
                unread = np.isnan(increments).all(axis=0)
                now = np.where(unread, before, now + _DECAY * before)
            sums[metric] = now
        self._host_sums = sums

    def _assigned_host(
        self, subject: str, message: Message, where: SeriesPlan
    ) -> dict[str, Floats]:
        """Return the host's counters that come almost entirely from this subject."""
        assigned = {}
        for metric, column in where.own.get(subject, {}).items():
            key, host = (subject, metric), HOST_METRICS[metric]
            used = self._own_sums.get(key, 0.0)
            if not message.slow_missing[column]:  # else as before, not 0
                used = float(message.slow[column]) + _DECAY * used
            self._own_sums[key] = used
            of_host = self._host_sums.get(host)
            if of_host is None or used <= 0:
                continue
            busiest = int(np.argmax(of_host))
            share = _KEEP_SHARE if key in self._assigned else _ASSIGN_SHARE
            if used < share * of_host[busiest]:
                self._assigned.discard(key)
                continue
            self._assigned.add(key)
            columns = where.host[host][busiest : busiest + 1]
            assigned[host] = _increments(message, columns).ravel()
        return assigned


def _mean_use(before: float | None, now: float) -> float:
    """Return the mean CPUs of a subject: 0 until it is busy, as before while it is not read."""
    if math.isnan(now):
        return before or 0.0
    if before is None:
        return now if now >= _BUSY else 0.0
    return before + (1 - _DECAY) * (now - before)


def _cpus_used(message: Message, where: SeriesPlan) -> Floats:
    """Return the mean CPUs of each subject over the ticks that were read; NaN where none was."""
    counted = message.fast.take(where.usage, axis=1)
    ticks: float | Floats = len(message.fast)
    if message.fast_missing.any():
        missing = message.fast_missing.take(where.usage, axis=1)
        counted[missing] = 0
        read = len(message.fast) - missing.sum(axis=0)
        ticks = np.where(read > 0, read, np.nan)
    used: Floats = np.add.reduce(counted, axis=0) * where.scales / (ticks * message.tick_us / 1e6)
    return used


def _increments(message: Message, columns: Indices) -> Floats:
    """Return the increments of each tick of a second; the ticks that a short slice has not: NaN."""
    ticks = round(1_000_000 / message.tick_us)
    values = np.full((ticks, columns.size), np.nan)
    count = min(ticks, len(message.fast))
    counted = message.fast[:count, columns].astype(np.float64)
    values[:count] = np.where(message.fast_missing[:count, columns], np.nan, counted)
    return values
