"""What a scan says of the lost time of each job."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from reveal_analyzer.derive.deriver import Deriver
from reveal_analyzer.ledger.accounts import AccountReader
from reveal_analyzer.ledger.lost_time import LostTime, lost_time
from reveal_analyzer.ledger.totals import LedgerTotals
from reveal_contract import ledger
from support.ledger_node import Times, accounts_of, ledger_node, ledger_values

JOB, HOG = "/job", "/hog"


def after(*seconds: Mapping[str, Times]) -> list[LostTime]:
    node, totals, reader, deriver = (
        ledger_node(JOB, HOG),
        LedgerTotals(),
        AccountReader(),
        Deriver(),
    )
    for times in seconds:
        accounts = reader.read(deriver.second(node.slice(ledger_values(times)), node.table))
        assert accounts is not None
        totals.add(accounts)
    return lost_time(totals.totals())


def test_parts_of_the_loss_have_their_culprit_and_add_up() -> None:
    quiet = {JOB: Times(run=0.9), HOG: Times(run=0.02)}
    loud = {
        JOB: Times(run=0.3, cpu={HOG: 0.3}, others={ledger.THROTTLED: 0.1, ledger.IO_OWN: 0.2}),
        HOG: Times(run=1.0),
    }
    job, hog = after(quiet, loud)
    assert (job.subject, hog.subject) == (JOB, HOG)
    assert job.desired == pytest.approx(0.9)
    assert job.share == pytest.approx(0.4 / 1.8)
    named = [(loss.reason, loss.culprit, round(loss.share, 3)) for loss in job.losses]
    assert named == [
        ("waiting for a CPU", HOG, 0.167), ("held back by its CPU quota", "", 0.056)
    ]  # fmt: skip
    assert sum(loss.share for loss in job.losses) == pytest.approx(job.share)
    assert hog.losses == ()


def test_a_wait_without_a_pair_has_no_culprit() -> None:
    values = {JOB: Times(run=0.5, others={ledger.WAIT_OTHERS: 0.5}), HOG: Times(run=1.0)}
    job = after(values)[0]
    assert [(loss.culprit, loss.share) for loss in job.losses] == [("", pytest.approx(0.5))]


def test_small_subjects_are_nobody_with_a_name() -> None:
    times = {JOB: Times(run=0.5, cpu={ledger.OTHER: 0.3}), ledger.OTHER: Times(run=1.0)}
    totals = LedgerTotals()
    totals.add(accounts_of(times))
    (job,) = lost_time(totals.totals())
    assert [(loss.word, loss.culprit) for loss in job.losses] == [("cpu", "")]


def test_who_is_not_busy_is_left_out() -> None:
    assert [each.subject for each in after({JOB: Times(run=0.5), HOG: Times(run=0.01)})] == [JOB]


def test_totals_go_on_when_the_channel_table_changes() -> None:
    reader, totals = AccountReader(), LedgerTotals()
    for subjects in ((JOB, HOG), (HOG, JOB, "/new")):
        node = ledger_node(*subjects)
        times = {name: Times(run=0.5) for name in subjects} | {JOB: Times(run=0.3, cpu={HOG: 0.3})}
        accounts = reader.read(Deriver().second(node.slice(ledger_values(times)), node.table))
        assert accounts is not None
        totals.add(accounts)
    sums = totals.totals()
    assert sums.time(JOB, ledger.RUN) == pytest.approx(6e8)
    assert sums.taken[ledger.LOST_CPU][JOB][HOG] == pytest.approx(6e8)
    assert sums.time("/new", ledger.RUN) == pytest.approx(5e8)
    assert totals.totals().seconds == 2
