"""Harm by interrupts: who was there before loses time to them, or to who causes them."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

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
    culprits = {loss.pair.culprit for loss in counted}
    interrupted = np.flatnonzero(accounts.times[:, _IRQ] >= SLACK).tolist()
    return any(
        accounts.layout.subjects[row] in culprits or _loses_more(accounts, history, row)
        for row in interrupted
    )


def _loses_more(accounts: Accounts, history: LedgerHistory, row: int) -> bool:
    """Return whether a known subject loses more to interrupts and runs no more than before."""
    name, times = accounts.layout.subjects[row], accounts.times[row]
    if name in ledger.NAMELESS:
        return False
    more = times[_IRQ] - history.most_interrupted(name)
    enough = more >= max(SLACK, BEGIN.share * times[_DESIRED].sum())
    return bool(enough) and history.knows(name) and not history.grew(accounts, row)
