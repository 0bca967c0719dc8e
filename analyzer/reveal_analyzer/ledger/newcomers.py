"""Pairs whose culprit is a newcomer: it began, or runs twice as much, and the victim does not.

On a busy host each subject may get no more than its share, and still a job slows down when another
one comes: it had the CPU time before.  A pair that is as old as the ledger is no such change.

Who comes also displaces others, which then take time from third ones without running more than
before.  Threads of the kernel that run more than before do the same.

Two subjects that use a disk wait for each other.  If one of them came later, the other one, which
does what it did before, takes nothing from it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from reveal_analyzer.ledger.accounts import COLUMNS, Accounts
from reveal_analyzer.ledger.history import SLACK, LedgerHistory
from reveal_analyzer.state.tree import StateError, StateTree, texts
from reveal_contract import ledger
from reveal_contract.ledger import Pair, pair_of

_RUN = COLUMNS.index(ledger.RUN)
_MUTUAL = 0.5  # of the share that a pair loses, the least that the reverse one does
_TIMES = 2.0  # as much as before must a newcomer run and take
FORGET_S = 10  # seconds of the ledger after which a pair that does not count is forgotten


class Newcomers:
    """Finds newcomers among the pairs of lost CPU time of one node, and remembers them.

    ``history`` is that of the seconds before.
    """

    def __init__(self, history: LedgerHistory) -> None:
        self._history = history
        self._known = _RememberedPairs()
        self._displaced = _RememberedPairs()
        self._provoked = _RememberedPairs()

    def save(self) -> StateTree:
        """Return the known newcomers and displaced ones; what was before is learned again."""
        return {
            "pairs": self._known.save(),
            "displaced": self._displaced.save(),
            "provoked": self._provoked.save(),
        }

    def restore(self, tree: StateTree) -> None:
        """Continue with the pairs of ``save``; raises ``StateError``."""
        known = _restored(tree, "pairs")
        # an earlier version did not save them
        self._displaced, self._provoked = (
            _restored(tree, name) if name in tree else _RememberedPairs()
            for name in ("displaced", "provoked")
        )
        self._known = known

    def add(
        self, counted: Collection[Pair], displaced: Collection[Pair], provoked: Collection[Pair]
    ) -> None:
        """Add a second, in which these pairs counted: of newcomers, displaced and provoked."""
        self._known.add(counted)
        self._displaced.add(displaced)
        self._provoked.add(provoked)

    def known(self, accounts: Accounts, row: int) -> bool:
        """Return whether a pair (its row) is of a newcomer that counted lately."""
        return accounts.layout.pairs[ledger.LOST_CPU].pairs[row] in self._known

    def beginning(self, accounts: Accounts, row: int) -> bool:
        """Return whether a pair (its row) is of a newcomer, known or by what was before."""
        return self.known(accounts, row) or self._begins(accounts, row)

    def displaced(self, accounts: Accounts, row: int, comes: bool) -> bool:
        """Return whether the culprit of a pair (its row) was only pushed to its victim's CPU.

        It runs no more than before.  While a newcomer takes time from somebody, or ``comes`` now,
        that is enough.  Where threads of the kernel run more, by at least what the culprit takes,
        the victim must run no more, either.
        """
        of = accounts.layout.pairs[ledger.LOST_CPU]
        victim, culprit = int(of.victims[row]), int(of.culprits[row])
        if self._history.grew(accounts, culprit):
            return False
        if comes or self._known:
            return True
        if self._history.grew(accounts, victim):
            return False
        taken = float(accounts.taken[ledger.LOST_CPU][row])
        return of.pairs[row] in self._displaced or taken <= self._kernel_growth(accounts)

    def provoked(self, accounts: Accounts, pair: Pair, shares: Mapping[Pair, float]) -> bool:
        """Return whether the victim of lost storage time came last, and takes about as much.

        ``shares`` are those of their wanted time that all victims lost.
        """
        history, names = self._history, accounts.layout.subjects
        # a culprit of more subjects than are shown has no account
        is_known = history.knows(pair.culprit) and pair.culprit in names
        if is_known and history.grew(accounts, names.index(pair.culprit)):
            return False
        if pair in self._provoked:
            return True
        if history.knows(pair.victim) or not is_known:
            return False
        reverse = shares.get(Pair(pair.culprit, pair.victim), 0.0)
        return reverse >= _MUTUAL * shares[pair]

    def _begins(self, accounts: Accounts, row: int) -> bool:
        of, run = accounts.layout.pairs[ledger.LOST_CPU], accounts.times[:, _RUN]
        pair, history = of.pairs[row], self._history
        victim, culprit = int(of.victims[row]), int(of.culprits[row])
        if not history.knows(pair.victim) or culprit < 0 or history.grew(accounts, victim):
            return False
        taken = accounts.taken[ledger.LOST_CPU][row]
        return bool(
            run[culprit] >= _TIMES * history.most_ran(pair.culprit) + SLACK
            and taken >= _TIMES * history.most_taken(pair)
        )

    def _kernel_growth(self, accounts: Accounts) -> float:
        """Return by how much more threads of the kernel run than before, in ns."""
        if ledger.KERNEL not in accounts.layout.subjects:
            return 0.0
        kernel = accounts.layout.subjects.index(ledger.KERNEL)
        if not self._history.grew(accounts, kernel):
            return 0.0
        return float(accounts.times[kernel, _RUN]) - self._history.most_ran(ledger.KERNEL)


class _RememberedPairs:
    """Pairs, each until it has not counted for ``FORGET_S`` seconds."""

    def __init__(self, pairs: Iterable[Pair] = ()) -> None:
        self._idle_s = dict.fromkeys(pairs, 0)  # seconds since each counted

    def __bool__(self) -> bool:
        return bool(self._idle_s)

    def __contains__(self, pair: Pair) -> bool:
        return pair in self._idle_s

    def add(self, counted: Iterable[Pair]) -> None:
        """Add a second in which these counted."""
        idle_s = {pair: seconds + 1 for pair, seconds in self._idle_s.items() if seconds < FORGET_S}
        self._idle_s = idle_s | dict.fromkeys(counted, 0)

    def save(self) -> list[str]:
        """Return the instances of the pairs."""
        return [pair.instance for pair in self._idle_s]


def _restored(tree: StateTree, name: str) -> _RememberedPairs:
    """Return the pairs of a saved list; raises ``StateError``."""
    instances = texts(tree, name)
    try:
        return _RememberedPairs(map(pair_of, instances))
    except ValueError as error:
        raise StateError(f"{name!r} has none of a victim and a culprit: {error}") from None
