"""Selection of the largest of many subjects that seldom changes: each change costs a new table.

Uses scatter from second to second.  So the largest by the last second are others all the time,
and each time collectors announce another channel table, and analyzers build its columns.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Mapping, Set
from typing import Any, Generic, TypeVar

from reveal_contract.runtime.token_bucket import TokenBucket
from reveal_contract.time_units import NS_PER_SECOND

Item = TypeVar("Item")

_AVERAGED_S = 60.0  # time constant of the averages that are compared
_REPLACE_FACTOR = 2.0
_REPLACE_INTERVAL_S = 15.0  # between two replacements
_REPLACE_BURST = 4  # replacements in a row; then one each ``_REFILL_S``
_REFILL_S = 120.0


def is_clearly_larger(use: float, other: float, margin: float) -> bool:
    """Return whether a use is so much larger that its owner may replace that of the other."""
    return use > _REPLACE_FACTOR * other + margin


class StableSelection(Generic[Item]):
    """At most ``limit`` of the items that it knows of, the largest.

    A free place goes to the largest item that waits, at once.  If there is none, an item replaces
    another only if its average use over about a minute is twice that of the other plus ``margin``.
    So a much larger one replaces another after seconds, and similar ones never do.  Where items
    take turns, replacements are limited to one in two minutes.  An item leaves if it is gone or
    replaced, not if its use falls.

    ``name`` gives the order of items of the same use.
    """

    def __init__(self, limit: int, margin: float, name: Callable[[Item], Any]) -> None:
        self.selected: frozenset[Item] = frozenset()
        self._limit, self._margin, self._name = limit, margin, name
        self._averages: dict[Item, float] = {}
        self._updated: float | None = None
        self._replaced = -math.inf
        self._replacements = TokenBucket(_REPLACE_BURST, _REFILL_S)

    def update(
        self,
        uses: Mapping[Item, float],
        now: float,
        entering: Collection[Item] | None = None,
        ended: Set[Item] = frozenset(),
    ) -> frozenset[Item]:
        """Return the selection after an observation at ``now`` (seconds).

        ``uses`` has all items: one that is not in it is gone.  ``entering`` are those that may
        be added, by default all.  ``ended`` ones make room for any other.
        """
        self._average(uses, now)
        selected = {item for item in self.selected if item in uses}
        waiting = [
            item
            for item in (uses if entering is None else entering)
            if item not in selected and item in uses and item not in ended
        ]
        if waiting:
            self._admit(selected, sorted(waiting, key=self._rank), now, ended)
        if selected != self.selected:
            self.selected = frozenset(selected)
        return self.selected

    def _average(self, uses: Mapping[Item, float], now: float) -> None:
        """Update the averages; one that is new since the first observation starts at 0."""
        if self._updated is None:
            self._averages = dict(uses)
        else:
            kept = math.exp(-max(0.0, now - self._updated) / _AVERAGED_S)
            known = self._averages
            self._averages = {
                item: use + kept * (known.get(item, 0.0) - use) for item, use in uses.items()
            }
        self._updated = now

    def _rank(self, item: Item) -> tuple[float, Any]:
        return -self._averages[item], self._name(item)

    def _admit(
        self, selected: set[Item], waiting: list[Item], now: float, ended: Set[Item]
    ) -> None:
        """Add the first of ``waiting`` where there is room, or where they are much larger."""
        free = max(self._limit - len(selected), 0)
        selected.update(waiting[:free])
        for item in waiting[free:]:
            weakest = min(selected, key=lambda other: self._strength(other, ended), default=None)
            if weakest is None:
                return
            if weakest not in ended and not (self._is_larger(item, weakest) and self._turn(now)):
                return
            selected.remove(weakest)
            selected.add(item)

    def _strength(self, item: Item, ended: Set[Item]) -> tuple[bool, float, Any]:
        return item not in ended, self._averages[item], self._name(item)

    def _is_larger(self, item: Item, other: Item) -> bool:
        """Return whether an item may replace another."""
        return is_clearly_larger(self._averages[item], self._averages[other], self._margin)

    def _turn(self, now: float) -> bool:
        """Return whether items may be replaced now; those of one call count as one replacement."""
        if self._replaced == now:
            return True
        is_early = now - self._replaced < _REPLACE_INTERVAL_S
        if is_early or not self._replacements.take(round(now * NS_PER_SECOND)):
            return False
        self._replaced = now
        return True


class CpuRates(Generic[Item]):
    """CPUs that subjects use, from their CPU clocks in ns."""

    def __init__(self) -> None:
        self._clocks: dict[Item, int] = {}
        self._updated = 0.0

    def update(self, clocks: Mapping[Item, int], now: float) -> dict[Item, float]:
        """Return the mean since the last call; 0 for a subject that is new."""
        elapsed_ns = max(now - self._updated, 0.1) * NS_PER_SECOND
        known, self._clocks, self._updated = self._clocks, dict(clocks), now
        return {
            item: max(0, clock - known.get(item, clock)) / elapsed_ns
            for item, clock in clocks.items()
        }


def mean_rates(clocks: Mapping[Item, int]) -> dict[Item, float]:
    """Return the mean CPUs since the boot that CPU times in ns stand for."""
    booted_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    return {item: clock / booted_ns for item, clock in clocks.items()}
