"""Newcomers and whom they displace: how long they are remembered, and what is saved."""

from __future__ import annotations

import pytest

from reveal_analyzer.ledger.history import LedgerHistory
from reveal_analyzer.ledger.losses import shares_lost
from reveal_analyzer.ledger.newcomers import FORGET_S, Newcomers
from reveal_analyzer.state.tree import StateError
from reveal_contract import ledger
from reveal_contract.ledger import Pair
from support.ledger_node import Times, accounts_of

JOB, HOG = "pgrp:<job>", "/hog"
PAIR = Pair(JOB, HOG)
ACCOUNTS = accounts_of({JOB: Times(run=0.5, cpu={HOG: 0.5}), HOG: Times(run=1.0)})
ROW = ACCOUNTS.layout.pairs[ledger.LOST_CPU].pairs.index(PAIR)


def counted() -> Newcomers:
    newcomers = Newcomers(LedgerHistory())
    newcomers.add([PAIR], [], [])
    return newcomers


def test_a_newcomer_is_forgotten_after_seconds_in_which_it_takes_nothing() -> None:
    newcomers = counted()
    for _ in range(FORGET_S):
        newcomers.add([], [], [])
        assert newcomers.known(ACCOUNTS, ROW)
    newcomers.add([], [], [])
    assert not newcomers.known(ACCOUNTS, ROW)


def test_what_is_saved_is_known_again() -> None:
    restored = Newcomers(LedgerHistory())
    restored.restore(counted().save())
    assert restored.known(ACCOUNTS, ROW)


def test_newcomers_that_an_earlier_version_saved_are_known_again() -> None:
    restored = Newcomers(LedgerHistory())
    restored.restore({"pairs": [PAIR.instance]})
    assert restored.known(ACCOUNTS, ROW)


@pytest.mark.parametrize("pairs", [["/job"], ["a<b<c"]])
@pytest.mark.parametrize("name", ["pairs", "displaced", "provoked"])
def test_a_name_that_is_no_pair_is_refused(name: str, pairs: list[str]) -> None:
    with pytest.raises(StateError, match="victim and a culprit"):
        Newcomers(LedgerHistory()).restore({"pairs": [], name: pairs})


def displaced(kernel: float, victim: float = 0.5, before: float = 1.0) -> bool:
    """Return whether a build was only pushed to the CPU of the job, after 30 s of history."""
    history = LedgerHistory()
    newcomers = Newcomers(history)
    quiet = {JOB: Times(run=0.6), HOG: Times(run=before), ledger.KERNEL: Times(run=0.1)}
    for _ in range(30):
        history.add(accounts_of(quiet))
    now = accounts_of({
        JOB: Times(run=victim, cpu={HOG: 0.3}),
        HOG: Times(run=1.0),
        ledger.KERNEL: Times(run=kernel),
    })  # fmt: skip
    row = now.layout.pairs[ledger.LOST_CPU].pairs.index(PAIR)
    return newcomers.displaced(now, row, comes=False)


def test_threads_of_the_kernel_displace_who_runs_no_more_than_before() -> None:
    assert displaced(kernel=0.5)
    assert not displaced(kernel=0.1)  # as much as before
    assert not displaced(kernel=0.3)  # more, but less than the build takes from the job


def test_who_runs_more_than_before_was_not_displaced() -> None:
    assert not displaced(kernel=0.5, before=0.5)


def test_a_victim_that_runs_more_than_before_waits_for_whoever_was_there() -> None:
    assert not displaced(kernel=0.5, victim=0.9)


def test_who_was_displaced_is_remembered_while_it_takes_time() -> None:
    history = LedgerHistory()
    newcomers = Newcomers(history)
    busy = {JOB: Times(run=0.5, cpu={HOG: 0.3}), HOG: Times(run=1.0), ledger.KERNEL: Times(run=0.5)}
    for _ in range(30):  # the kernel's threads run as much as before by now
        history.add(accounts_of(busy))
    now = accounts_of(busy)
    row = now.layout.pairs[ledger.LOST_CPU].pairs.index(PAIR)
    assert not newcomers.displaced(now, row, comes=False)
    newcomers.restore({"pairs": [], "displaced": [PAIR.instance]})
    assert newcomers.displaced(now, row, comes=False)


def provoked(history: dict[str, Times], taken_back: float, culprit: float = 0.3) -> bool:
    """Return whether the job is no victim of a reader, which loses ``taken_back`` to it."""
    before = LedgerHistory()
    newcomers = Newcomers(before)
    for _ in range(30):
        before.add(accounts_of(history))
    now = accounts_of({
        JOB: Times(run=0.5, disk={HOG: 0.4}),
        HOG: Times(run=culprit, disk={JOB: taken_back}, threads=2),
    })  # fmt: skip
    shares = shares_lost(now, ledger.LOST_DISK)
    return newcomers.provoked(now, PAIR, shares)


READER = {HOG: Times(run=0.3)}


def test_who_comes_to_a_disk_and_takes_as_much_is_no_victim() -> None:
    assert provoked(READER, taken_back=0.3)


def test_who_comes_to_a_disk_and_takes_little_is_a_victim() -> None:
    assert not provoked(READER, taken_back=0.05)


def test_who_was_there_first_or_began_together_is_a_victim() -> None:
    assert not provoked(READER | {JOB: Times(run=0.5)}, taken_back=0.3)
    assert not provoked({"/other": Times(run=0.1)}, taken_back=0.3)


def test_who_comes_to_a_disk_is_a_victim_of_who_does_more_than_before() -> None:
    assert not provoked(READER, taken_back=0.3, culprit=0.9)


def test_a_culprit_without_an_account_was_not_provoked() -> None:
    """More subjects may use a node than have accounts: the least busy one has none by now."""
    before = LedgerHistory()
    newcomers = Newcomers(before)
    for _ in range(30):
        before.add(accounts_of(READER))
    now = accounts_of({JOB: Times(run=0.5, disk={HOG: 0.4})})
    assert not newcomers.provoked(now, PAIR, shares_lost(now, ledger.LOST_DISK))


def test_a_provoked_pair_counts_again_once_its_culprit_does_more() -> None:
    before = LedgerHistory()
    newcomers = Newcomers(before)
    for _ in range(30):
        before.add(accounts_of(READER))
    newcomers.add([], [], [PAIR])
    for run, is_provoked in ((0.3, True), (0.9, False)):
        now = accounts_of({JOB: Times(run=0.5, disk={HOG: 0.4}), HOG: Times(run=run, threads=2)})
        assert newcomers.provoked(now, PAIR, {PAIR: 0.5}) is is_provoked


def test_a_provoked_pair_stays_so_while_it_counts_also_when_its_victim_is_known() -> None:
    newcomers = Newcomers(LedgerHistory())
    newcomers.add([], [], [PAIR])
    restored = Newcomers(LedgerHistory())
    restored.restore(newcomers.save())
    assert restored.provoked(ACCOUNTS, PAIR, {PAIR: 0.5})
