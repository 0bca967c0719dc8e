"""Harm by interrupts: who was there before loses time to them, or to who causes them."""

from __future__ import annotations

from collections.abc import Iterable

from reveal_analyzer.ledger.accounts import COLUMNS, Accounts
from reveal_analyzer.ledger.history import SLACK, LedgerHistory
from reveal_analyzer.ledger.losses import BEGIN, PairLoss
from reveal_contract import ledger

_IRQ = COLUMNS.index(ledger.IRQ)
_DESIRED = [COLUMNS.index(part) for part in ledger.DESIRED]


def interrupts_harm(
    accounts: Accounts, history: LedgerHistory, counted: Iterable[PairLoss]
) -> bool:
    """Return whether interrupts cost somebody time; ``counted`` are the losses of CPU time.

    The interrupts of packets that a subject sends and receives itself are its own work.  So only
    those count that come to a subject which does no more than before, and those of a culprit.
    """
    rows = {name: row for row, name in enumerate(accounts.layout.subjects)}
    culprits = {rows[loss.pair.culprit] for loss in counted if loss.pair.culprit in rows}
    if any(accounts.times[row, _IRQ] >= SLACK for row in culprits):
        return True
    named = (row for name, row in rows.items() if name not in ledger.NAMELESS)
    return any(_loses_more(accounts, history, row) for row in named)


def _loses_more(accounts: Accounts, history: LedgerHistory, row: int) -> bool:
    """Return whether a known subject loses more to interrupts and runs no more than before."""
    name, times = accounts.layout.subjects[row], accounts.times[row]
    more = times[_IRQ] - history.most_interrupted(name)
    enough = more >= max(SLACK, BEGIN.share * times[_DESIRED].sum())
    return bool(enough) and history.knows(name) and not history.grew(accounts, row)
