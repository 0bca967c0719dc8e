"""Newcomers: how long they are remembered, and what a saved one may be."""

from __future__ import annotations

import pytest

from reveal_analyzer.ledger.newcomers import FORGET_S, Newcomers
from reveal_analyzer.state.tree import StateError
from reveal_contract import ledger
from reveal_contract.ledger import Pair
from support.ledger_node import Times, accounts_of

JOB, HOG = "pgrp:<job>", "/hog"
PAIR = Pair(JOB, HOG)
ACCOUNTS = accounts_of({JOB: Times(run=0.5, cpu={HOG: 0.5}), HOG: Times(run=1.0)})
UNREAD = ACCOUNTS._replace(valid=ACCOUNTS.valid & False)
ROW = ACCOUNTS.layout.pairs[ledger.LOST_CPU].pairs.index(PAIR)


def counted() -> Newcomers:
    newcomers = Newcomers()
    newcomers.add(ACCOUNTS, [PAIR])
    return newcomers


def test_a_newcomer_is_forgotten_after_seconds_in_which_it_takes_nothing() -> None:
    newcomers = counted()
    for _ in range(FORGET_S):
        newcomers.add(ACCOUNTS, [])
        assert newcomers.known(ACCOUNTS, ROW)
    newcomers.add(ACCOUNTS, [])
    assert not newcomers.known(ACCOUNTS, ROW)


def test_seconds_without_the_ledger_do_not_count() -> None:
    newcomers = counted()
    for _ in range(3 * FORGET_S):
        newcomers.add(UNREAD, [])
    assert newcomers.known(ACCOUNTS, ROW)


def test_what_is_saved_is_known_again() -> None:
    restored = Newcomers()
    restored.restore(counted().save())
    assert restored.known(ACCOUNTS, ROW)


@pytest.mark.parametrize("pairs", [["/job"], ["a<b<c"]])
def test_a_name_that_is_no_pair_is_refused(pairs: list[str]) -> None:
    with pytest.raises(StateError, match="victim and a culprit"):
        Newcomers().restore({"pairs": pairs})


def begins_after(seconds: int) -> bool:
    """Return whether a hog is a newcomer after seconds in each of which a subject came and went."""
    newcomers = Newcomers()
    for _ in range(seconds):
        newcomers.add(accounts_of({JOB: Times(run=1.0), HOG: Times()}), [])
    return newcomers.beginning(ACCOUNTS, ROW)


def test_subjects_that_come_and_go_do_not_shorten_the_time_a_victim_must_be_known() -> None:
    assert not begins_after(29)
    assert begins_after(30)


def test_a_subject_that_was_away_ran_nothing() -> None:
    newcomers = Newcomers()
    alone = accounts_of({JOB: Times(run=1.0)})
    for second in range(30):  # the hog runs for one second of each period
        both = accounts_of({JOB: Times(run=0.9), HOG: Times(run=1.0)})
        newcomers.add(alone if second % 10 else both, [])
    assert newcomers.beginning(ACCOUNTS, ROW)
