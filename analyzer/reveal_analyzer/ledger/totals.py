"""Sums of the ledger over seconds, by subject and by pair."""

from __future__ import annotations

from collections import Counter, defaultdict

from reveal_analyzer.arrays import Floats
from reveal_analyzer.ledger.accounts import COLUMNS, Accounts
from reveal_contract.ledger import PAIRS

_MOST_SUBJECTS = 1024  # of one node; the ledger of a second names about 32
_MOST_CULPRITS = 256  # of one victim


class LedgerTotals:
    """Adds up the ledger of a node, in bounded memory: the smallest of too many are dropped.

    ``taken`` is the time in ns by metric of ``ledger.PAIRS``, victim and culprit.
    """

    def __init__(self) -> None:
        self.seconds = 0
        self.times: dict[str, Floats] = {}
        self.taken: dict[str, dict[str, Counter[str]]] = {
            metric: defaultdict(Counter) for metric in PAIRS
        }

    def add(self, accounts: Accounts) -> None:
        """Add one second."""
        self.seconds += 1
        for name, row in zip(accounts.subjects, accounts.times, strict=True):
            known = self.times.get(name)
            self.times[name] = row.copy() if known is None else known + row
        if len(self.times) > _MOST_SUBJECTS:
            self._drop_smallest()
        for metric, (pairs, times) in accounts.pairs.items():
            by_victim = self.taken[metric]
            for pair, time in zip(pairs, times.tolist(), strict=True):
                culprits = by_victim[pair.victim]
                culprits[pair.culprit] += time
                if len(culprits) > _MOST_CULPRITS:
                    by_victim[pair.victim] = Counter(
                        dict(culprits.most_common(_MOST_CULPRITS // 2))
                    )

    def time(self, subject: str, part: str) -> float:
        """Return the time of a part in ns, 0 for a subject without an account."""
        row = self.times.get(subject)
        return 0.0 if row is None else float(row[COLUMNS.index(part)])

    def _drop_smallest(self) -> None:
        ran = sorted(self.times, key=lambda name: -float(self.times[name][0]))
        self.times = {name: self.times[name] for name in ran[: _MOST_SUBJECTS // 2]}
        for metric, by_victim in self.taken.items():
            kept = {name: taken for name, taken in by_victim.items() if name in self.times}
            self.taken[metric] = defaultdict(Counter, kept)
