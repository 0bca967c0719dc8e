"""What the watch of losses remembers, and what a second without the ledger changes."""

from __future__ import annotations

from reveal_analyzer.hypotheses import loader
from reveal_analyzer.ledger.accounts import Accounts
from reveal_analyzer.ledger.loss_watch import LossWatch
from reveal_analyzer.ledger.newcomers import FORGET_S
from reveal_contract import ledger
from reveal_contract.ledger import Pair
from reveal_contract.time_units import NS_PER_SECOND
from support.ledger_node import Times, accounts_of

JOB, HOG = "/job", "/hog"
PAIR = Pair(JOB, HOG).instance
QUIET = accounts_of({JOB: Times(run=0.5), HOG: Times()})
UNREAD = QUIET._replace(valid=QUIET.valid & False)


def newcomers_after(accounts: Accounts) -> object:
    """Return the known newcomers after so many seconds that they would be forgotten."""
    watch = LossWatch(loader.load())
    watch.restore({"newcomers": {"pairs": [PAIR], "displaced": []}})
    for second in range(3 * FORGET_S):
        watch.match(accounts, 2, second * NS_PER_SECOND)
    newcomers = watch.save()["newcomers"]
    assert isinstance(newcomers, dict)
    return newcomers["pairs"]


def test_seconds_without_the_ledger_do_not_count() -> None:
    assert newcomers_after(QUIET) == []
    assert newcomers_after(UNREAD) == [PAIR]


def test_interrupts_are_harmless_only_where_they_were_measured() -> None:
    watch = LossWatch(loader.load())
    for second in range(30):
        watch.match(QUIET, 2, second * NS_PER_SECOND)
        assert watch.harmless_parts == frozenset()  # nobody is known yet
    watch.match(QUIET, 2, 30 * NS_PER_SECOND)
    assert watch.harmless_parts == {ledger.IRQ}
    watch.match(UNREAD, 2, 31 * NS_PER_SECOND)
    assert watch.harmless_parts == frozenset()


def test_who_was_there_is_known_after_a_restart() -> None:
    watch, restored = LossWatch(loader.load()), LossWatch(loader.load())
    for second in range(60):
        watch.match(QUIET, 2, second * NS_PER_SECOND)
    restored.restore(watch.save())
    restored.match(QUIET, 2, 60 * NS_PER_SECOND)
    assert restored.harmless_parts == {ledger.IRQ}
