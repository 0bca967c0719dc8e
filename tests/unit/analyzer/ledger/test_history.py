"""What the ledger was before, though subjects come and go."""

from __future__ import annotations

import numpy as np
import pytest

from reveal_analyzer.ledger.history import LedgerHistory
from reveal_analyzer.state.tree import StateError, StateTree
from reveal_contract import ledger
from reveal_contract.ledger import Pair
from support.ledger_node import Times, accounts_of

JOB, HOG = "/job", "/hog"
BOTH = {JOB: Times(run=0.5, cpu={HOG: 0.2}, others={ledger.IRQ: 0.1}), HOG: Times(run=1.0)}


def history_of(*seconds: dict[str, Times]) -> LedgerHistory:
    history = LedgerHistory()
    for times in seconds:
        history.add(accounts_of(times))
    return history


def test_a_subject_is_known_after_three_periods() -> None:
    assert not history_of(*[BOTH] * 29).knows(JOB)
    assert history_of(*[BOTH] * 30).knows(JOB)


def test_channels_that_change_every_second_do_not_shorten_a_period() -> None:
    """Each call makes another channel table."""
    history = history_of(*[BOTH, {JOB: BOTH[JOB]}] * 14)
    assert not history.ready
    assert not history.knows(JOB)


def test_what_is_known_is_the_most_of_a_period() -> None:
    history = history_of(*[BOTH] * 10, *[{JOB: Times(run=0.2), HOG: Times()}] * 20)
    assert history.most_ran(JOB) == pytest.approx(0.5e9)
    assert history.most_taken(Pair(JOB, HOG)) == pytest.approx(0.2e9)
    assert history.most_interrupted(JOB) == pytest.approx(0.1e9)


def test_a_subject_that_was_away_ran_nothing() -> None:
    history = history_of(*[BOTH, *[{JOB: BOTH[JOB]}] * 9] * 3)
    assert history.most_ran(HOG) == pytest.approx(0.1e9)
    assert history.knows(HOG)


def test_who_was_never_there_ran_nothing() -> None:
    history = history_of(*[BOTH] * 30)
    assert (history.most_ran("/new"), history.most_interrupted("/new")) == (0.0, 0.0)
    assert not history.knows("/new")


def restored(tree: StateTree) -> LedgerHistory:
    history = LedgerHistory()
    history.restore(tree)
    return history


def test_a_saved_history_goes_on() -> None:
    """A subject that was away in a period is not known by it afterwards, either."""
    alone = {JOB: BOTH[JOB]}
    saved = history_of(*[BOTH] * 30, *[alone] * 40)
    history = restored(saved.save())
    assert history.ready
    assert history.knows(JOB)
    assert not history.knows(HOG)
    assert history.most_ran(HOG) == pytest.approx(saved.most_ran(HOG))
    assert history.most_interrupted(JOB) == pytest.approx(0.1e9)
    assert history.most_taken(Pair(JOB, HOG)) == pytest.approx(0.2e9)
    for _ in range(20):
        history.add(accounts_of(alone))
    assert history.most_ran(HOG) == 0.0


def test_an_empty_history_is_saved_as_empty() -> None:
    assert not restored(LedgerHistory().save()).ready


def test_a_pair_of_nobody_is_refused() -> None:
    tree = dict(history_of(*[BOTH] * 10).save())
    tree["pairs"] = np.array([[0, 9]], np.int16)
    with pytest.raises(StateError, match="no name"):
        restored(tree)
