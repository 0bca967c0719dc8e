"""Pairs whose culprit is a newcomer: it began, or runs twice as much, and the victim does not.

On a busy host each subject may get no more than its share, and still a job slows down when another
one comes: it had the CPU time before.  A pair that is as old as the ledger is no such change.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from reveal_analyzer.arrays import Floats
from reveal_analyzer.ledger.accounts import COLUMNS, Accounts, LedgerLayout
from reveal_analyzer.state.tree import StateError, StateTree, texts
from reveal_contract import ledger
from reveal_contract.ledger import Pair, pair_of
from reveal_contract.time_units import NS_PER_SECOND

_RUN = COLUMNS.index(ledger.RUN)
_SPAN_S = 10  # of a period, of which means are compared
_PERIODS = 6
_LEAST_PERIODS = 3  # in which the victim must be known
_TIMES = 2.0  # as much as before must a newcomer run and take
_SAME = 1.25  # times what it ran before, a victim runs as before
_SLACK = 0.05 * NS_PER_SECOND  # a second: less is no growth
FORGET_S = 10  # seconds of the ledger after which a pair that does not count is forgotten


class _Period(NamedTuple):
    """Means of some seconds, in ns a second: what subjects ran, and pairs took."""

    run: Mapping[str, float]
    taken: Mapping[Pair, float]


class Newcomers:
    """Finds newcomers among the pairs of lost CPU time of one node, and remembers them."""

    def __init__(self) -> None:
        self._periods: deque[_Period] = deque(maxlen=_PERIODS)
        self._sums = _Sums()
        self._idle_s: dict[Pair, int] = {}  # of known newcomers: seconds since they counted

    def save(self) -> StateTree:
        """Return the known newcomers; what was before them is learned again."""
        return {"pairs": [pair.instance for pair in self._idle_s]}

    def restore(self, tree: StateTree) -> None:
        """Continue with the newcomers of ``save``; raises ``StateError``."""
        try:
            self._idle_s = dict.fromkeys(map(pair_of, texts(tree, "pairs")), 0)
        except ValueError as error:
            raise StateError(f"'pairs' has none of a victim and a culprit: {error}") from None

    def add(self, accounts: Accounts, counted: Sequence[Pair]) -> None:
        """Add a second, in which these pairs of newcomers counted."""
        if not accounts.valid.any():  # the ledger was not read
            return
        idle_s = {pair: seconds + 1 for pair, seconds in self._idle_s.items()}
        idle_s |= dict.fromkeys(counted, 0)
        self._idle_s = {pair: seconds for pair, seconds in idle_s.items() if seconds <= FORGET_S}
        self._sums.add(accounts)
        if self._sums.seconds >= _SPAN_S:
            self._periods.append(self._sums.means())
            self._sums = _Sums()

    def known(self, accounts: Accounts, row: int) -> bool:
        """Return whether a pair (its row) is of a newcomer that counted lately."""
        return accounts.layout.pairs[ledger.LOST_CPU].pairs[row] in self._idle_s

    def beginning(self, accounts: Accounts, row: int) -> bool:
        """Return whether a pair (its row) is of a newcomer, known or by what was before."""
        return self.known(accounts, row) or self._begins(accounts, row)

    def are_about(self) -> bool:
        """Return whether a newcomer takes time from somebody."""
        return bool(self._idle_s)

    def grew(self, accounts: Accounts, subject: int) -> bool:
        """Return whether a subject (its row, -1 for none) runs more than before."""
        if subject < 0:
            return True
        ran = self._most_ran(accounts.layout.subjects[subject])
        return bool(accounts.times[subject, _RUN] > _SAME * ran + _SLACK)

    def _most_ran(self, subject: str) -> float:
        return max((period.run.get(subject, 0.0) for period in self._periods), default=0.0)

    def _begins(self, accounts: Accounts, row: int) -> bool:
        of, run = accounts.layout.pairs[ledger.LOST_CPU], accounts.times[:, _RUN]
        pair = of.pairs[row]
        periods = sum(pair.victim in period.run for period in self._periods)
        victim, culprit = int(of.victims[row]), int(of.culprits[row])
        if periods < _LEAST_PERIODS or culprit < 0 or self.grew(accounts, victim):
            return False
        taken = max(period.taken.get(pair, 0.0) for period in self._periods)
        return bool(
            run[culprit] >= _TIMES * self._most_ran(pair.culprit) + _SLACK
            and accounts.taken[ledger.LOST_CPU][row] >= _TIMES * taken
        )


class _Sums:
    """Sums over the seconds of a period; subjects may come and go in it."""

    def __init__(self) -> None:
        self.seconds = 0
        self._run: dict[str, float] = defaultdict(float)
        self._taken: dict[Pair, float] = defaultdict(float)
        self._layout: LedgerLayout | None = None
        self._run_of_layout: Floats = np.zeros(0)
        self._taken_of_layout: Floats = np.zeros(0)

    def add(self, accounts: Accounts) -> None:
        """Add a second."""
        if self._layout is not accounts.layout:
            self._add_up()
            self._layout = accounts.layout
            self._run_of_layout = np.zeros(len(accounts.layout.subjects))
            self._taken_of_layout = np.zeros(len(accounts.taken[ledger.LOST_CPU]))
        self.seconds += 1
        self._run_of_layout += accounts.times[:, _RUN]
        self._taken_of_layout += accounts.taken[ledger.LOST_CPU]

    def means(self) -> _Period:
        """Return the means of all seconds; a subject that was away ran nothing."""
        self._add_up()
        return _Period(
            {name: ran / self.seconds for name, ran in self._run.items()},
            {pair: taken / self.seconds for pair, taken in self._taken.items()},
        )

    def _add_up(self) -> None:
        """Add the sums of the last layout by name: the next one has other rows."""
        if self._layout is None:
            return
        for name, ran in zip(self._layout.subjects, self._run_of_layout.tolist(), strict=True):
            self._run[name] += ran
        taken = self._taken_of_layout.tolist()
        for pair, time in zip(self._layout.pairs[ledger.LOST_CPU].pairs, taken, strict=True):
            if time > 0.0:
                self._taken[pair] += time
