"""The subjects of a finding: what they used and lost before it and in it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reveal_cli.page_data.history import NodeHistory
from reveal_cli.page_data.losses import judged, subject_rows
from reveal_contract import ledger
from reveal_contract.finding import Confidence, JobLoss, Subject
from support.finding_factory import finding
from support.ledger_node import Times, ledger_node, ledger_values

SECOND, START = 10**9, 1_700_000_000 * 10**9
JOB, THIEF = "/job", "/thief"


def history(onset: int, seconds: int) -> NodeHistory:
    node, found = ledger_node(JOB, THIEF), NodeHistory("n1")
    for second in range(seconds):
        stolen = 0.4 if second >= onset else 0.0
        times = {JOB: Times(run=1.0 - stolen, cpu={THIEF: stolen}), THIEF: Times(run=stolen)}
        found.push(node.slice(ledger_values(times)), node.table)
    return found


def test_lost_time_is_compared_with_the_minute_before() -> None:
    node = history(60, 80)
    found = replace(
        finding(),
        lost_time=(JobLoss(JOB, 40.0, 20),),
        subjects=(Subject("Cgroup", THIEF, 100, 100, Confidence.MEASURED),),
    )
    rows = {
        row.name: row
        for row in subject_rows(found, node, (START + 60 * SECOND, START + 80 * SECOND))
    }
    assert rows[JOB].role == "loses time by it"
    assert rows[JOB].lost_before == pytest.approx(0.0, abs=0.01)
    assert rows[JOB].lost_during == pytest.approx(0.4, abs=0.02)
    assert rows[JOB].lost_to == "waiting for a CPU: 40 % to /thief"
    assert rows[THIEF].role == "causes it (100 %)"


def test_what_a_culprit_takes_is_known_for_each_second() -> None:
    times, amounts = judged(history(5, 8), "ledger.taken_cpu", THIEF)
    assert (times[0], len(times)) == (START, 8)
    assert amounts.tolist() == pytest.approx([0.0] * 5 + [4e8] * 3, rel=0.05)


def test_the_share_in_which_a_job_is_stopped_is_known_for_each_second() -> None:
    node, found = ledger_node(JOB), NodeHistory("n1")
    for stopped in (0.0, 0.0, 0.4, 0.0):
        job = Times(run=1 - stopped, others={ledger.STOPPED: stopped})
        found.push(node.slice(ledger_values({JOB: job})), node.table)
    _, shares = judged(found, ledger.STOPPED_SHARE, JOB)
    assert shares.tolist() == pytest.approx([0.0, 0.0, 4e5, 0.0], rel=0.01)


def test_without_a_ledger_lost_time_is_not_known() -> None:
    found = replace(finding(), victims=("/job",))
    [row] = subject_rows(found, NodeHistory("n1"), (START, START + SECOND))
    assert (row.lost_before, row.lost_during, row.cpus_during) == (None, None, None)


def test_a_subject_that_fell_is_no_cause() -> None:
    found = replace(finding(), subjects=(Subject("Cgroup", "/job", 2, -98, Confidence.MEASURED),))
    [row] = subject_rows(found, NodeHistory("n1"), (START, START + SECOND), fell=True)
    assert row.role == "fell most"
