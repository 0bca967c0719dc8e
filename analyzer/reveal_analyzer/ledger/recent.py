"""The lost time of the last seconds of a node."""

from __future__ import annotations

from collections import deque

from reveal_analyzer.ledger.accounts import Accounts
from reveal_analyzer.ledger.lost_time import LostTime, lost_time
from reveal_analyzer.ledger.totals import summed


class RecentLosses:
    """Says what each busy subject lost in the last ``seconds``."""

    def __init__(self, seconds: int) -> None:
        self._accounts: deque[Accounts] = deque(maxlen=seconds)

    def add(self, accounts: Accounts) -> None:
        """Add one second."""
        self._accounts.append(accounts)

    def clear(self) -> None:
        """Forget all: the ledger was not read for a second."""
        self._accounts.clear()

    def lost_time(self) -> tuple[LostTime, ...]:
        """Return the lost time of each busy subject, most first."""
        return tuple(lost_time(summed(self._accounts)))
