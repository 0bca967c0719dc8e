"""Whom interrupts harm: not those whose own packets cause them."""

from __future__ import annotations

import pytest

from reveal_analyzer.ledger.history import LedgerHistory
from reveal_analyzer.ledger.interrupts import interrupts_harm
from reveal_analyzer.ledger.losses import PairLoss
from reveal_contract import ledger
from reveal_contract.ledger import Pair
from support.ledger_node import Times, accounts_of

JOB, SENDER = "/job", "/sender"


def interrupted(run: float, irq: float) -> Times:
    return Times(run=run, others={ledger.IRQ: irq})


BEFORE = {JOB: interrupted(0.8, 0.02), SENDER: Times()}


def harm(now: dict[str, Times], counted: tuple[PairLoss, ...] = (), seconds: int = 30) -> bool:
    history = LedgerHistory()
    for _ in range(seconds):
        history.add(accounts_of(BEFORE))
    return interrupts_harm(accounts_of(now), history, counted)


def test_a_job_that_loses_more_than_before_is_harmed() -> None:
    assert harm({JOB: interrupted(0.7, 0.12), SENDER: interrupted(0.5, 0.4)})


@pytest.mark.parametrize(
    "job",
    [
        interrupted(0.8, 0.02),  # as before
        interrupted(0.8, 0.06),  # little more
        interrupted(1.2, 0.2),  # works more, too: its own packets
    ],
)
def test_others_that_have_many_interrupts_harm_nobody(job: Times) -> None:
    assert not harm({JOB: job, SENDER: interrupted(0.5, 0.4)})


def test_who_is_not_known_may_have_begun_to_communicate() -> None:
    assert not harm({JOB: interrupted(0.7, 0.12), SENDER: Times()}, seconds=20)


@pytest.mark.parametrize(("irq", "is_harm"), [(0.4, True), (0.01, False)])
def test_a_culprit_with_many_interrupts_takes_time_by_them(irq: float, is_harm: bool) -> None:
    loss = PairLoss(Pair(JOB, SENDER), 0.3, 3e8)
    assert harm({JOB: interrupted(0.5, 0.02), SENDER: interrupted(0.5, irq)}, (loss,)) is is_harm


def test_threads_of_the_kernel_are_no_victims() -> None:
    times = {JOB: interrupted(0.8, 0.02), ledger.KERNEL: interrupted(0.1, 0.5)}
    assert not harm(times)
