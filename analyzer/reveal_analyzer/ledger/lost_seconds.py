"""Counters of what the busiest subjects of a node wanted, lost and took from others.

So that the number of series is bounded, only some subjects have counters of their own; all others
share one.  The seconds of a subject count where it is at that time, so no counter ever falls, and
together they have each second once.
"""

from __future__ import annotations

import numpy as np

from reveal_analyzer.arrays import Floats, Indices
from reveal_analyzer.ledger.accounts import COLUMNS, Accounts
from reveal_analyzer.ledger.lost_time import REASONS
from reveal_analyzer.ledger.totals import LEAST_DESIRED
from reveal_contract import ledger
from reveal_contract.time_units import NS_PER_SECOND

# the columns of a counter: what is wanted, lost by reason, and taken by resource
DESIRED = "desired"
RESOURCES = {ledger.LOST_CPU: "cpu", ledger.LOST_DISK: "storage"}
COUNTERS = (DESIRED, *REASONS, *RESOURCES)

KEPT_SECONDS = 60  # after a subject is gone: two scrapes see its last value
_SMOOTHING = 1 / 30  # of the wanted time, a second
_BUSIER = 2.0  # times as busy must be who displaces a subject


class LostSeconds:
    """The counters of one node, in ns by ``COUNTERS``; ``most`` subjects have their own.

    A scrape reads ``rows`` from another thread: it may see a part of a second.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._rows: dict[str, Floats] = {ledger.OTHER: np.zeros(len(COUNTERS))}
        self._desired: dict[str, float] = {}  # of the subjects of the ledger, smoothed
        self._gone: dict[str, int] = {}  # seconds, of the named

    def rows(self) -> dict[str, tuple[float, ...]]:
        """Return the counters by subject; ``other`` is all without counters of their own."""
        return {name: tuple(row.tolist()) for name, row in list(self._rows.items())}

    def add(self, accounts: Accounts) -> None:
        """Add one second."""
        amounts = _amounts(accounts)
        subjects = accounts.layout.subjects
        self._smooth(dict(zip(subjects, amounts[:, 0].tolist(), strict=True)))
        self._remove_gone()
        self._admit()
        for name, row in zip(subjects, amounts, strict=True):
            if name != ledger.KERNEL:
                self._rows[name if name in self._rows else ledger.OTHER] += row

    def _smooth(self, desired: dict[str, float]) -> None:
        known = self._desired
        self._desired = {
            name: (last := known.get(name, 0.0)) + (amount - last) * _SMOOTHING
            for name, amount in desired.items()
            if name not in ledger.NAMELESS
        }

    def _remove_gone(self) -> None:
        """Remove the subjects that the ledger has not named for a while."""
        names = self._rows.keys() - {ledger.OTHER}
        self._gone = {n: self._gone.get(n, 0) + 1 for n in names if n not in self._desired}
        for name in [name for name, seconds in self._gone.items() if seconds > KEPT_SECONDS]:
            del self._rows[name]

    def _admit(self) -> None:
        """Give the busiest subject its own counters, if there is room or another is less busy."""
        unnamed = self._desired.keys() - self._rows.keys()
        busiest = max(unnamed, key=lambda name: (self._desired[name], name), default=None)
        if busiest is None or self._desired[busiest] < LEAST_DESIRED * NS_PER_SECOND:
            return
        if len(self._rows) > self._most:
            named = [name for name in self._rows if name in self._desired]
            idlest = min(named, key=lambda name: (self._desired[name], name), default=None)
            if idlest is None or self._desired[busiest] < _BUSIER * self._desired[idlest]:
                return
            del self._rows[idlest]
        self._rows[busiest] = np.zeros(len(COUNTERS))


def _amounts(accounts: Accounts) -> Floats:
    """Return the increments of one second (subjects, ``COUNTERS``)."""
    times = accounts.times
    taken = [_taken(accounts, metric) for metric in RESOURCES]
    desired = times[:, _columns(*ledger.DESIRED)].sum(axis=1)
    result: Floats = np.column_stack([desired, times[:, _columns(*REASONS)], *taken])
    return result


def _taken(accounts: Accounts, metric: str) -> Floats:
    """Return what each subject took from others."""
    pairs = accounts.layout.pairs[metric]
    known = (pairs.culprits >= 0) & (pairs.culprits != pairs.victims)
    taken = np.zeros(len(accounts.layout.subjects))
    np.add.at(taken, pairs.culprits[known], accounts.taken[metric][known])
    return taken


def _columns(*parts: str) -> Indices:
    return np.array([COLUMNS.index(part) for part in parts], np.intp)
