"""Which channels of a table carry a job's rhythm, and their increments of one second.

A subject's CPU clock is read at 50 Hz or 10 Hz; what it read, faulted and received once a second
only.  The host's counters of those are read every tick: where nearly all of one is a single
subject's, it is that subject's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from reveal_analyzer.arrays import Floats, Indices
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
_FADING = 59 / 60  # a second: sums and means over about a minute
_BUSY, _IDLE = 0.05, 0.02  # of a CPU: to be watched, and to stay so

Channels = Iterable[tuple[int, Channel]]


@dataclass(frozen=True)
class Plan:
    """Where in a message stand the CPU clocks of subjects and what may be lent to them.

    ``usage`` and ``scales`` (to CPU seconds) follow ``subjects``; ``fine`` are the columns of a
    subject's clock in the order of time, ``own`` those of its slow metrics, ``host`` the columns
    of a host's metric, one an instance.
    """

    subjects: tuple[str, ...]
    usage: Indices
    scales: Floats
    fine: Mapping[str, Indices]
    own: Mapping[str, Mapping[str, int]]
    host: Mapping[str, Indices]


def plan(table: ChannelTable, leave_out: Callable[[Channel], bool] | None = None) -> Plan:
    """The plan of a table, without the channels ``leave_out`` names."""
    fast, slow = (
        [one for one in enumerate(channels) if not (leave_out and leave_out(one[1]))]
        for channels in (table.fast, table.slow)
    )
    clocks = [(at, one) for at, one in fast if one.metric == USAGE and one.instance]
    return Plan(
        subjects=tuple(one.instance for _, one in clocks),
        usage=np.array([at for at, _ in clocks], np.intp),
        scales=np.array([one.scale / 1e9 for _, one in clocks]),
        fine=_fine(fast),
        own=_own(slow),
        host=_host(fast),
    )


def _fine(fast: Channels) -> dict[str, Indices]:
    found: dict[str, dict[int, int]] = {}
    for at, channel in fast:
        subject, _, place = channel.instance.rpartition("#")
        if channel.metric == FINE and place.isdigit():
            found.setdefault(subject, {})[int(place)] = at
    return {
        subject: np.array([places[one] for one in sorted(places)], np.intp)
        for subject, places in found.items()
    }


def _own(slow: Channels) -> dict[str, dict[str, int]]:
    own: dict[str, dict[str, int]] = {}
    for at, channel in slow:
        if channel.metric in LENT:
            own.setdefault(channel.instance, {})[channel.metric] = at
    return own


def _host(fast: Channels) -> dict[str, Indices]:
    found: dict[str, list[int]] = {}
    for at, channel in fast:
        if channel.metric in LENT.values():
            found.setdefault(channel.metric, []).append(at)
    return {metric: np.array(places, np.intp) for metric, places in found.items()}


class Series:
    """The increments of every busy subject of a node, second by second."""

    def __init__(self) -> None:
        self._busy: dict[str, float] = {}  # mean use of a CPU
        self._used: dict[tuple[str, str], float] = {}
        self._there: dict[str, Floats] = {}
        self._lent: set[tuple[str, str]] = set()

    def second(self, message: Message, where: Plan) -> dict[str, dict[str, Floats]]:
        """By subject and metric what was counted, evenly over the second; NaN where it was not."""
        watched = self._watched(message, where)
        if not watched:
            self._used, self._there, self._lent = {}, {}, set()
            return {}
        self._follow_host(message, where)
        made = {}
        for subject, usage in watched.items():
            fine = where.fine.get(subject)
            name, places = (USAGE, np.array([usage])) if fine is None else (FINE, fine)
            made[subject] = {name: _taken(message, places).ravel()}
            made[subject] |= self._borrowed(subject, message, where)
        return made

    def _watched(self, message: Message, where: Plan) -> dict[str, int]:
        """The busy subjects and the column of their CPU clock."""
        if not where.subjects:
            self._busy = {}
            return {}
        counted = message.fast.take(where.usage, axis=1)
        if message.fast_missing.any():
            counted[message.fast_missing.take(where.usage, axis=1)] = 0
        length = len(message.fast) * message.tick_us / 1e6
        used = np.add.reduce(counted, axis=0) * where.scales / length
        means: dict[str, float] = {}
        watched: dict[str, int] = {}
        for subject, now, column in zip(
            where.subjects, used.tolist(), where.usage.tolist(), strict=True
        ):
            before = self._busy.get(subject)
            if before is None and now < _BUSY:
                continue
            mean = now if before is None else before + (1 - _FADING) * (now - before)
            if mean >= _IDLE:
                means[subject], watched[subject] = mean, column
        self._busy = means
        return watched

    def _follow_host(self, message: Message, where: Plan) -> None:
        there = {}
        for metric, places in where.host.items():
            now = np.nansum(_taken(message, places), axis=0)
            before = self._there.get(metric)
            if before is not None and before.shape == now.shape:
                now += _FADING * before
            there[metric] = now
        self._there = there

    def _borrowed(self, subject: str, message: Message, where: Plan) -> dict[str, Floats]:
        """The host's counters that are nearly all this subject's."""
        made = {}
        for metric, at in where.own.get(subject, {}).items():
            now = 0.0 if message.slow_missing[at] else float(message.slow[at])
            key, host = (subject, metric), LENT[metric]
            used = self._used[key] = now + _FADING * self._used.get(key, 0.0)
            there = self._there.get(host)
            if there is None or used <= 0:
                continue
            busiest = int(np.argmax(there))
            if used < (_LENT_TO if key in self._lent else _LENT_FROM) * there[busiest]:
                self._lent.discard(key)
                continue
            self._lent.add(key)
            made[host] = _taken(message, where.host[host][busiest : busiest + 1]).ravel()
        return made


def _taken(message: Message, places: Indices) -> Floats:
    """What was counted in each tick of a whole second; what a short slice lacks is missing."""
    ticks = round(1_000_000 / message.tick_us)
    values = np.full((ticks, places.size), np.nan)
    there = min(ticks, len(message.fast))
    counted = message.fast[:there, places].astype(np.float64)
    values[:there] = np.where(message.fast_missing[:there, places], np.nan, counted)
    return values
