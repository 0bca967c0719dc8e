"""What the ledger of one node was before: means over the periods of the last minute."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np

from reveal_analyzer.arrays import Floats
from reveal_analyzer.ledger.accounts import COLUMNS, Accounts, LedgerLayout
from reveal_analyzer.state.tree import StateError, StateTree, array, finite_array, texts
from reveal_contract import ledger
from reveal_contract.ledger import Pair
from reveal_contract.time_units import NS_PER_SECOND

_RUN, _IRQ = COLUMNS.index(ledger.RUN), COLUMNS.index(ledger.IRQ)
_SPAN_S = 10  # of a period
_PERIODS = 6
_LEAST_PERIODS = 3  # in which a known subject was there
_SAME = 1.25  # times what it ran before, a subject runs as before
_ABSENT = -1.0  # the saved time of a subject that was not there in a period
SLACK = 0.05 * NS_PER_SECOND  # a second: less is no growth


class _Period(NamedTuple):
    """Means of some seconds, in ns a second: what subjects ran, lost to interrupts, and took."""

    run: Mapping[str, float]
    interrupted: Mapping[str, float]
    taken: Mapping[Pair, float]

    def times_of(self, subject: str) -> tuple[float, float]:
        """Return what a subject ran and lost to interrupts, ``_ABSENT`` if it was not there."""
        return self.run.get(subject, _ABSENT), self.interrupted.get(subject, _ABSENT)


class LedgerHistory:
    """The periods of the last minute of one node."""

    def __init__(self) -> None:
        self._periods: deque[_Period] = deque(maxlen=_PERIODS)
        self._sums = _Sums()

    def save(self) -> StateTree:
        """Return the whole periods, with each name once."""
        periods = self._periods
        pairs = list(dict.fromkeys(pair for period in periods for pair in period.taken))
        names = list(dict.fromkeys([*(n for each in periods for n in each.run), *chain(*pairs)]))
        rows = {name: row for row, name in enumerate(names)}
        times = [[each.times_of(name) for name in names] for each in periods]
        taken = [[each.taken.get(pair, 0.0) for pair in pairs] for each in periods]
        return {
            "names": names,
            "times": np.array(times, np.float32).reshape(len(periods), len(names), 2),
            "pairs": np.array([[rows[n] for n in pair] for pair in pairs], np.int16).reshape(-1, 2),
            "taken": np.array(taken, np.float32).reshape(len(periods), len(pairs)),
        }

    def restore(self, tree: StateTree) -> None:
        """Continue with the periods of ``save``; raises ``StateError``."""
        names = texts(tree, "names")
        times = finite_array(tree, "times", np.float32, (None, len(names), 2))
        pairs = array(tree, "pairs", np.int64, (None, 2))
        taken = finite_array(tree, "taken", np.float32, (len(times), len(pairs)))
        if ((pairs < 0) | (pairs >= len(names))).any():
            raise StateError("'pairs' has an index that no name has")
        named = [Pair(names[victim], names[culprit]) for victim, culprit in pairs.tolist()]
        periods = zip(times.tolist(), taken.tolist(), strict=True)
        self._periods = deque((_period(names, t, named, k) for t, k in periods), maxlen=_PERIODS)

    def add(self, accounts: Accounts) -> None:
        """Add a second in which the ledger was read."""
        self._sums.add(accounts)
        if self._sums.seconds >= _SPAN_S:
            self._periods.append(self._sums.means())
            self._sums = _Sums()

    @property
    def ready(self) -> bool:
        """Whether a subject that was there all the time is known."""
        return len(self._periods) >= _LEAST_PERIODS

    def knows(self, subject: str) -> bool:
        """Return whether a subject was there for long enough to say what it did before."""
        return sum(subject in period.run for period in self._periods) >= _LEAST_PERIODS

    def most_ran(self, subject: str) -> float:
        """Return the most that a subject ran in a period."""
        return max((period.run.get(subject, 0.0) for period in self._periods), default=0.0)

    def most_interrupted(self, subject: str) -> float:
        """Return the most that a subject lost to interrupts in a period."""
        return max((period.interrupted.get(subject, 0.0) for period in self._periods), default=0.0)

    def most_taken(self, pair: Pair) -> float:
        """Return the most that a culprit took from a victim in a period."""
        return max((period.taken.get(pair, 0.0) for period in self._periods), default=0.0)

    def grew(self, accounts: Accounts, subject: int) -> bool:
        """Return whether a subject (its row, -1 for none) runs more than before."""
        if subject < 0:
            return True
        ran = self.most_ran(accounts.layout.subjects[subject])
        return bool(accounts.times[subject, _RUN] > _SAME * ran + SLACK)


def _period(
    names: Sequence[str],
    times: Sequence[Sequence[float]],
    pairs: Sequence[Pair],
    taken: Sequence[float],
) -> _Period:
    """Return the period of saved times, by name and by pair."""
    present = {name: each for name, each in zip(names, times, strict=True) if each[0] != _ABSENT}
    return _Period(
        {name: run for name, (run, _) in present.items()},
        {name: interrupted for name, (_, interrupted) in present.items()},
        {pair: time for pair, time in zip(pairs, taken, strict=True) if time > 0.0},
    )


class _Sums:
    """Sums over the seconds of a period; subjects may come and go in it."""

    def __init__(self) -> None:
        self.seconds = 0
        self._times: dict[str, Floats] = {}  # what each subject ran and lost to interrupts
        self._taken: dict[Pair, float] = defaultdict(float)
        self._layout: LedgerLayout | None = None
        self._times_of_layout: Floats = np.zeros((0, 2))
        self._taken_of_layout: Floats = np.zeros(0)

    def add(self, accounts: Accounts) -> None:
        """Add a second."""
        if self._layout is not accounts.layout:
            self._add_up()
            self._layout = accounts.layout
            self._times_of_layout = np.zeros((len(accounts.layout.subjects), 2))
            self._taken_of_layout = np.zeros(len(accounts.taken[ledger.LOST_CPU]))
        self.seconds += 1
        self._times_of_layout += accounts.times[:, (_RUN, _IRQ)]
        self._taken_of_layout += accounts.taken[ledger.LOST_CPU]

    def means(self) -> _Period:
        """Return the means of all seconds; a subject that was away ran nothing."""
        self._add_up()
        times = {name: (sums / self.seconds).tolist() for name, sums in self._times.items()}
        return _Period(
            {name: run for name, (run, _) in times.items()},
            {name: interrupted for name, (_, interrupted) in times.items()},
            {pair: taken / self.seconds for pair, taken in self._taken.items()},
        )

    def _add_up(self) -> None:
        """Add the sums of the last layout by name: the next one has other rows."""
        if self._layout is None:
            return
        for name, times in zip(self._layout.subjects, self._times_of_layout, strict=True):
            self._times[name] = self._times.get(name, 0.0) + times
        taken = self._taken_of_layout.tolist()
        for pair, time in zip(self._layout.pairs[ledger.LOST_CPU].pairs, taken, strict=True):
            if time > 0.0:
                self._taken[pair] += time
