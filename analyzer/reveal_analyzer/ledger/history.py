"""What the ledger of one node was before: means over the periods of the last minute."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from reveal_analyzer.arrays import Floats
from reveal_analyzer.ledger.accounts import COLUMNS, Accounts, LedgerLayout
from reveal_contract import ledger
from reveal_contract.ledger import Pair
from reveal_contract.time_units import NS_PER_SECOND

_RUN, _IRQ = COLUMNS.index(ledger.RUN), COLUMNS.index(ledger.IRQ)
_SPAN_S = 10  # of a period
_PERIODS = 6
_LEAST_PERIODS = 3  # in which a known subject was there
_SAME = 1.25  # times what it ran before, a subject runs as before
SLACK = 0.05 * NS_PER_SECOND  # a second: less is no growth


class _Period(NamedTuple):
    """Means of some seconds, in ns a second: what subjects ran, lost to interrupts, and took."""

    run: Mapping[str, float]
    interrupted: Mapping[str, float]
    taken: Mapping[Pair, float]


class LedgerHistory:
    """The periods of the last minute of one node."""

    def __init__(self) -> None:
        self._periods: deque[_Period] = deque(maxlen=_PERIODS)
        self._sums = _Sums()

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
