"""The lost-time ledger of a running scan: what was lost in the last seconds, and its tier."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from reveal_cli.collector_state import no_ledger
from reveal_contract.ledger import Tier

if TYPE_CHECKING:
    from reveal_analyzer.ledger.accounts import Accounts
    from reveal_analyzer.ledger.lost_time import LostTime

SECONDS = 10  # over which the shares of a live view are
IN_FORCE = {
    Tier.BPF: f"tier {Tier.BPF}, BPF programs",
    Tier.SCHEDSTAT: f"tier {Tier.SCHEDSTAT}, times of threads: who took what was lost is not known",
}
_NOT_READ = "the collector does not read the ledger now"
_ASK_EVERY = 5  # seconds without a ledger


class LiveLedger:
    """Follows the ledger second by second.

    ``tier`` is what it is read from, or why there is none; empty while that is not known.  ``lost``
    is what each busy subject lost in the last seconds, most first.
    """

    def __init__(self) -> None:
        from reveal_analyzer.ledger.recent import RecentLosses  # noqa: PLC0415 - numpy

        self.tier = ""
        self.lost: tuple[LostTime, ...] = ()
        self.is_due = False  # the collector is to be asked why there is no ledger
        self._recent = RecentLosses(SECONDS)
        self._was_read, self._read_from = False, Tier.BPF
        self._without = 0

    def add(self, accounts: Accounts) -> None:
        """Take the ledger of a second, before its end."""
        self._recent.add(accounts)
        self._was_read, self._read_from = True, accounts.tier

    def end_second(self) -> None:
        """End a second; if it had no ledger, what was lost before is no longer shown."""
        if self._was_read:
            self.tier, self._without = IN_FORCE[self._read_from], 0
        else:
            self._recent.clear()
            self._without += 1
        self.is_due = self._without % _ASK_EVERY == 1
        self._was_read = False
        self.lost = self._recent.lost_time()

    def explain(self, collector: Mapping[str, Any]) -> None:
        """Take the reason why there is no ledger from the state of the collector."""
        reason = no_ledger(collector)
        self.tier, self.is_due = reason or _NOT_READ, False
