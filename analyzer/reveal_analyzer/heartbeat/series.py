"""Which channels of a table carry a job's rhythm, and their increments of one second.

A subject's CPU clock is read at 50 Hz or 10 Hz; what it read, faulted and received once a second
only.  The host's counters of those are read every tick: where nearly all of one is a single
subject's, it is that subject's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reveal_analyzer.heartbeat.comb import Floats
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.wire import Message

FINE, USAGE = "cpu.subject.usage.fine", "cpu.subject.usage"
# of the subject, once a second; of the host, every tick
LENT = {
    "storage.subject.read_bytes": "storage.disk.read_bytes",
    "memory.subject.page_faults": "memory.vm.pgfault",
    "network.subject.rx_bytes": "network.nic.rx_bytes",
}
_LENT_FROM, _LENT_TO = 0.8, 0.6  # of the host's counter: to be lent, and to stay so
_FADING = 59 / 60  # a second: sums over about a minute
_LEAST_BUSY, _LEAST_IDLE = 0.05, 0.02  # of a CPU: to be watched, and to stay so

Places = NDArray[np.intp]


@dataclass(frozen=True)
class Plan:
    """Where in a message stand the CPU clocks of subjects and what may be lent to them.

    ``clocks`` maps a subject to its metric and columns in the order of time; ``own`` a subject's
    metric to its slow column; ``host`` the host's metric to the columns of its instances.
    """

    clocks: Mapping[str, tuple[str, Places]]
    scales: Mapping[str, float]
    own: Mapping[str, Mapping[str, int]]
    host: Mapping[str, Places]


def plan(table: ChannelTable, leave_out: Callable[[Channel], bool] | None = None) -> Plan:
    """The plan of a table, without the channels ``leave_out`` names."""
    kept = [
        (at, channel) for at, channel in enumerate(table.fast)
        if not (leave_out and leave_out(channel))
    ]  # fmt: skip
    clocks: dict[str, tuple[str, Places]] = {}
    scales: dict[str, float] = {}
    fine: dict[str, dict[int, int]] = {}
    for at, channel in kept:
        if channel.metric == USAGE and channel.instance:
            clocks[channel.instance] = USAGE, np.array([at], np.intp)
            scales[channel.instance] = channel.scale
        elif channel.metric == FINE:
            subject, _, place = channel.instance.rpartition("#")
            fine.setdefault(subject, {})[int(place) if place.isdigit() else 0] = at
            scales.setdefault(subject, channel.scale)
    for subject, places in fine.items():
        clocks[subject] = FINE, np.array([places[one] for one in sorted(places)], np.intp)
        scales[subject] = table.fast[int(clocks[subject][1][0])].scale
    return Plan(clocks, scales, _own(table, leave_out), _host(kept))


def _own(
    table: ChannelTable, leave_out: Callable[[Channel], bool] | None
) -> dict[str, dict[str, int]]:
    own: dict[str, dict[str, int]] = {}
    for at, channel in enumerate(table.slow):
        if channel.metric in LENT and not (leave_out and leave_out(channel)):
            own.setdefault(channel.instance, {})[channel.metric] = at
    return own


def _host(kept: Sequence[tuple[int, Channel]]) -> dict[str, Places]:
    return {
        metric: np.array([at for at, channel in kept if channel.metric == metric], np.intp)
        for metric in LENT.values()
        if any(channel.metric == metric for _, channel in kept)
    }


class Series:
    """The increments of every busy subject of a node, second by second."""

    def __init__(self) -> None:
        self._busy: dict[str, float] = {}  # mean use of a CPU, while it is watched
        self._lent: set[tuple[str, str]] = set()
        self._used: dict[tuple[str, str], float] = {}
        self._there: dict[str, Floats] = {}

    def second(self, message: Message, where: Plan) -> dict[str, dict[str, Floats]]:
        """By subject and metric what was counted, evenly over the second; NaN where it was not."""
        self._follow_shares(message, where)
        made: dict[str, dict[str, Floats]] = {}
        for subject, (metric, places) in where.clocks.items():
            clock = _taken(message, places).ravel() * (where.scales[subject] / 1e9)
            if self._is_busy(subject, clock, message):
                made[subject] = {metric: clock} | self._borrowed(subject, message, where)
        self._busy = {subject: self._busy[subject] for subject in made}
        return made

    def _is_busy(self, subject: str, clock: Floats, message: Message) -> bool:
        length = len(message.fast) * message.tick_us / 1e6
        used = float(np.nansum(clock)) / length
        if subject not in self._busy:
            self._busy[subject] = used
            return used >= _LEAST_BUSY
        self._busy[subject] += (1 - _FADING) * (used - self._busy[subject])
        return self._busy[subject] >= _LEAST_IDLE

    def _follow_shares(self, message: Message, where: Plan) -> None:
        for metric, places in where.host.items():
            now = np.nansum(_taken(message, places), axis=0)
            before = self._there.get(metric)
            same = before is not None and before.shape == now.shape
            self._there[metric] = now + (_FADING * before if before is not None and same else 0.0)
        used: dict[tuple[str, str], float] = {}
        for subject, metrics in where.own.items():
            for metric, at in metrics.items():
                now = 0.0 if message.slow_missing[at] else float(message.slow[at])
                used[subject, metric] = now + _FADING * self._used.get((subject, metric), 0.0)
        self._used = used

    def _borrowed(self, subject: str, message: Message, where: Plan) -> dict[str, Floats]:
        made = {}
        for own, host in LENT.items():
            used, there = self._used.get((subject, own), 0.0), self._there.get(host)
            if there is None or not there.size or used <= 0:
                continue
            busiest = int(np.argmax(there))
            key = subject, host
            if used < (_LENT_TO if key in self._lent else _LENT_FROM) * there[busiest]:
                self._lent.discard(key)
                continue
            self._lent.add(key)
            made[host] = _taken(message, where.host[host][busiest : busiest + 1]).ravel()
        return made


def _taken(message: Message, places: Places) -> Floats:
    values = message.fast[:, places].astype(np.float64)
    values[message.fast_missing[:, places]] = np.nan
    return values
