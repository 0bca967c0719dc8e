"""Sums of the ledger over seconds, by subject and by pair."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from reveal_analyzer.arrays import Floats
from reveal_analyzer.ledger.accounts import COLUMNS, Accounts, LedgerLayout
from reveal_contract.ledger import DESIRED, PAIRS

LEAST_DESIRED = 0.05  # CPUs, mean: who wants less is not listed
_MOST_SUBJECTS = 1024  # of one node; the ledger of a second names about 32
_MOST_CULPRITS = 256  # of one victim
_Taken = dict[str, dict[str, dict[str, float]]]


@dataclass
class Totals:
    """Times by subject (``COLUMNS``) and what was taken by metric, victim and culprit, in ns."""

    seconds: int = 0
    times: dict[str, Floats] = field(default_factory=dict)
    taken: _Taken = field(default_factory=lambda: {metric: {} for metric in PAIRS})

    def time(self, subject: str, part: str) -> float:
        """Return the time of a part in ns, 0 for a subject without an account."""
        row = self.times.get(subject)
        return 0.0 if row is None else float(row[COLUMNS.index(part)])

    def desired(self, subject: str) -> float:
        """Return the time in ns in which a subject did not sleep."""
        return sum(self.time(subject, part) for part in DESIRED)

    def share(self, subject: str, part: str) -> float:
        """Return the part of the desired time, 0 for a subject that desired nothing."""
        desired = self.desired(subject)
        return self.time(subject, part) / desired if desired else 0.0


class LedgerTotals:
    """Adds up the ledger of a node, in bounded memory: the smallest of too many are dropped.

    Seconds of one channel table are added as arrays, and joined by name when it changes.
    """

    def __init__(self) -> None:
        self._joined = Totals()
        self._layout: LedgerLayout | None = None
        self._times: Floats = np.zeros((0, len(COLUMNS)))
        self._taken: dict[str, Floats] = {}

    def add(self, accounts: Accounts) -> None:
        """Add one second."""
        if accounts.layout is not self._layout:
            self._join()
            self._layout = accounts.layout
            self._times = np.zeros_like(accounts.times)
            self._taken = {name: np.zeros_like(row) for name, row in accounts.taken.items()}
        self._joined.seconds += 1
        self._times += accounts.times
        for metric, times in accounts.taken.items():
            self._taken[metric] += times

    def totals(self) -> Totals:
        """Return the sums so far."""
        self._join()
        return self._joined

    def _join(self) -> None:
        layout, joined = self._layout, self._joined
        if layout is None:
            return
        for name, row in zip(layout.subjects, self._times, strict=True):
            known = joined.times.get(name)
            joined.times[name] = row.copy() if known is None else known + row
        for metric, of in layout.pairs.items():
            for pair, time in zip(of.pairs, self._taken[metric].tolist(), strict=True):
                culprits = joined.taken[metric].setdefault(pair.victim, {})
                culprits[pair.culprit] = culprits.get(pair.culprit, 0.0) + time
            self._taken[metric][:] = 0.0
        self._times[:] = 0.0
        _drop_smallest(joined)


def summed(seconds: Iterable[Accounts]) -> Totals:
    """Return the sums over some seconds."""
    sums = LedgerTotals()
    for accounts in seconds:
        sums.add(accounts)
    return sums.totals()


def _drop_smallest(totals: Totals) -> None:
    if len(totals.times) > _MOST_SUBJECTS:
        ran = {name: float(row[0]) for name, row in totals.times.items()}
        totals.times = {name: totals.times[name] for name in _largest(ran, _MOST_SUBJECTS // 2)}
    for by_victim in totals.taken.values():
        for victim in [name for name in by_victim if name not in totals.times]:
            del by_victim[victim]
        for victim, culprits in by_victim.items():
            if len(culprits) > _MOST_CULPRITS:
                kept = _largest(culprits, _MOST_CULPRITS // 2)
                by_victim[victim] = {name: culprits[name] for name in kept}


def _largest(amounts: Mapping[str, float], count: int) -> list[str]:
    return sorted(amounts, key=lambda name: (-amounts[name], name))[:count]
