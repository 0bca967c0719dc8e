"""The columns of the ledger: which subjects and pairs are displayed, and their counters."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from math import inf
from operator import add, floordiv
from typing import Generic, Protocol, TypeVar

from reveal_collector.ledger.accounts import FIXED, KERNEL_METRICS, METRICS, Names
from reveal_collector.ledger.slots import Slot
from reveal_collector.readers.textfile import channel
from reveal_collector.subjects.stable_selection import StableSelection
from reveal_contract import ledger
from reveal_contract.channels import Channel
from reveal_contract.ledger import RESOLUTION_NS, Pair

MOST_SUBJECTS, MOST_PAIRS = 32, 48
_MARGIN = 0.01  # CPUs that one must use, or take, more than another to replace it
_LEAST_PAIR = 0.001  # of a CPU: to be displayed
_NOTABLE_PAIR = 0.05  # of a CPU: it can be a finding
_MINOR_PAIR = 0.01  # of a CPU: a pair that lost less for ``_IDLE_S`` makes room for a notable one
_IDLE_S = 10.0
_COUNTS = frozenset((ledger.WAITS, *ledger.LONG_WAITS.values()))
_UNITS = [1 if metric in _COUNTS else RESOLUTION_NS for metric in METRICS]
_ZEROS = [0] * len(METRICS)

Key = TypeVar("Key", bound=Hashable)


class Increments(Protocol):
    """What happened between two readings: increments of subjects, and what pairs lost."""

    elapsed_ns: int

    def desired_cpus(self, slot: Slot) -> float:
        """Return the mean number of CPUs that a subject used, or would have used."""

    def counters(self, slot: Slot) -> list[int]:
        """Return the increments of a subject in the order of ``METRICS``."""

    def pairs(self, victim: Slot) -> dict[Names, tuple[int, int]]:
        """Return what a subject lost to each other one: waiting for a CPU, and for storage."""


class _Sums(Generic[Key]):
    """Counters that never fall: corrections of earlier increments are deducted from later ones."""

    def __init__(self) -> None:
        self._exact: dict[Key, list[int]] = {}
        self._displayed: dict[Key, list[int]] = {}

    def add(self, key: Key, increments: Sequence[int]) -> None:
        exact = self._exact.setdefault(key, [0] * len(increments))
        displayed = self._displayed.setdefault(key, [0] * len(increments))
        exact[:] = map(add, exact, increments)
        displayed[:] = map(max, displayed, exact)

    def values(self, key: Key) -> list[int]:
        return self._displayed.get(key, [])

    def keep(self, keys: Iterable[Key]) -> None:
        kept = set(keys)
        self._exact = {key: sums for key, sums in self._exact.items() if key in kept}
        self._displayed = {key: sums for key, sums in self._displayed.items() if key in kept}


class DisplayedSubjects:
    """Counters of the largest subjects and pairs, as columns that seldom change."""

    def __init__(self) -> None:
        self.channels: tuple[Channel, ...] = _channels((), ())
        self.uses: Mapping[str, float] = {}  # CPUs that all subjects desired, by name
        self._subjects: StableSelection[str] = StableSelection(MOST_SUBJECTS, _MARGIN, name=str)
        self._pairs: StableSelection[Names] = StableSelection(MOST_PAIRS, _MARGIN, name=tuple)
        self.names: list[str] = []  # of the displayed subjects
        self._displayed_pairs: list[Names] = []
        self._active: dict[Names, float] = {}  # when each displayed pair was no minor one
        self._sums: _Sums[str] = _Sums()
        self._lost: _Sums[Names] = _Sums()

    def update(self, interval: Increments, slots: Sequence[Slot], now: float) -> bool:
        """Add what happened in an interval; return whether the columns changed."""
        self.uses = {slot.name: interval.desired_cpus(slot) for slot in slots}
        names = sorted(self._subjects.update(self.uses, now))
        displayed = set(names)
        lost: dict[Names, tuple[int, int]] = {}
        for slot in FIXED:
            self._add(interval, slot)
        for slot in slots:
            if slot.name in displayed:
                self._add(interval, slot)
                lost |= interval.pairs(slot)
        pairs = self._choose_pairs(lost, displayed, interval.elapsed_ns, now)
        for pair in pairs:
            self._lost.add(pair, lost.get(pair, (0, 0)))
        if names == self.names and pairs == self._displayed_pairs:
            return False
        self.names, self._displayed_pairs = names, pairs
        self._sums.keep((*names, *(slot.name for slot in FIXED)))
        self._lost.keep(pairs)
        self.channels = _channels(names, pairs)
        return True

    def values(self) -> list[int]:
        """Return the counters in the order of the channels."""
        row = self._row(ledger.OTHER, METRICS) + self._row(ledger.KERNEL, KERNEL_METRICS)
        for name in self.names:
            row += self._row(name, METRICS)
        for pair in self._displayed_pairs:
            row += [ns // RESOLUTION_NS for ns in self._lost.values(pair)]
        return row

    def _add(self, interval: Increments, slot: Slot) -> None:
        self._sums.add(slot.name, interval.counters(slot))

    def _choose_pairs(
        self,
        lost: Mapping[Names, tuple[int, int]],
        displayed: set[str],
        elapsed_ns: int,
        now: float,
    ) -> list[Names]:
        """Return the largest pairs of the displayed victims, in order.

        A notable pair gets a column at once if any other has been minor for a while.
        """
        rates = {pair: sum(ns) / max(elapsed_ns, 1) for pair, ns in lost.items()}
        # one that lost nothing in this second stays until its place is needed
        kept = {pair: 0.0 for pair in self._displayed_pairs if pair[0] in displayed}
        self._active |= {pair: now for pair, rate in rates.items() if rate >= _MINOR_PAIR}
        new = [pair for pair, rate in rates.items() if rate >= _NOTABLE_PAIR and pair not in kept]
        if new:
            idle = {pair for pair in kept if now - self._active.get(pair, -inf) >= _IDLE_S}
            chosen = self._pairs.update(kept | rates, now, new, idle)
        else:
            entering = [pair for pair, rate in rates.items() if rate >= _LEAST_PAIR]
            chosen = self._pairs.update(kept | rates, now, entering)
        self._active = {pair: time for pair, time in self._active.items() if pair in chosen}
        return sorted(chosen)

    def _row(self, name: str, metrics: Sequence[str]) -> list[int]:
        row = list(map(floordiv, self._sums.values(name) or _ZEROS, _UNITS))
        return row if metrics is METRICS else [row[METRICS.index(metric)] for metric in metrics]


def _channels(names: Sequence[str], pairs: Sequence[Names]) -> tuple[Channel, ...]:
    rows = [(ledger.OTHER, METRICS), (ledger.KERNEL, KERNEL_METRICS)]
    rows += [(name, METRICS) for name in names]
    return (
        *(_channel(metric, name) for name, metrics in rows for metric in metrics),
        *(_channel(metric, Pair(*pair).instance) for pair in pairs for metric in ledger.PAIRS),
    )


def _channel(metric: str, instance: str) -> Channel:
    return channel(metric, instance, 1.0 if metric in _COUNTS else RESOLUTION_NS)
