"""Regimes: stable names, the state stored for a set of workloads, and when it is restored."""

from __future__ import annotations

import numpy as np
import pytest

from reveal_analyzer.live.column_map import ColumnMap
from reveal_analyzer.live.regimes import MOST, ROWS, STEP, Regimes, workloads
from reveal_analyzer.node import NodeAnalyzer
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.finding import FindingUpdate
from reveal_contract.metric import Kind
from reveal_contract.settings import AnalyzerSettings
from support.synthetic_node import TABLE, Node

FORGOTTEN = 300


def usage(name: str) -> Channel:
    return Channel("cpu.subject.usage", name, Kind.COUNTER)


@pytest.mark.parametrize(
    ("first", "again"),
    [
        ("ml/train-7d9f8c6b5d-x2x9z", "ml/train-6c5d4b7f99-k8s4q"),
        ("ml/workers-0", "ml/workers-3"),
        ("pgrp:python[1883]", "pgrp:python[77]"),
        ("/kubepods/besteffort/0123456789abcdef", "/kubepods/besteffort/0123456789abcdef"),
    ],
)
def test_a_workload_is_known_by_what_stays_of_its_name(first: str, again: str) -> None:
    assert workloads([usage(first)]) == workloads([usage(again)])


def test_different_workloads_stay_different() -> None:
    names = ["ml/train", "ml/serve", "/reveal-work-loader", "pgrp:bash[3]", "cron.service"]
    assert len({workloads([usage(name)]) for name in names}) == len(names)


def learned(regimes: Regimes, key: str, level: float, seconds: int) -> None:
    regimes.enter((key,))
    for _ in range(seconds):
        regimes.learn(np.full((3, 2, 4), level))


def test_values_that_left_the_history_are_restored() -> None:
    regimes = Regimes(FORGOTTEN)
    learned(regimes, "train", 1.0, 100)
    learned(regimes, "train and loader", 2.0, 100)
    learned(regimes, "train", 1.0, FORGOTTEN)
    rows = regimes.enter(("train and loader",))
    assert len(rows) == 100 // STEP
    assert all((row == 2.0).all() for row in rows)


def test_values_still_in_the_history_are_not_restored() -> None:
    regimes = Regimes(FORGOTTEN)
    learned(regimes, "a", 1.0, 50)
    learned(regimes, "b", 2.0, FORGOTTEN - 1)
    assert regimes.enter(("a",)) == ()


def test_only_so_much_is_remembered() -> None:
    regimes = Regimes(FORGOTTEN)
    learned(regimes, "first", 1.0, 50)
    learned(regimes, "second", 2.0, (ROWS + 5) * STEP)
    for number in range(MOST - 1):
        learned(regimes, f"other {number}", 0.0, FORGOTTEN)
    assert len(regimes.enter(("second",))) == ROWS
    assert regimes.enter(("first",)) == ()


def test_columns_move_with_their_table() -> None:
    regimes = Regimes(0)
    regimes.enter(("a",))
    regimes.learn(np.arange(24.0).reshape(3, 2, 4))
    regimes.remap(ColumnMap(np.array([3, -1]), np.zeros(2, np.float32)))
    regimes.enter(("b",))
    (row,) = regimes.enter(("a",))
    assert row[0].tolist() == [[3.0, 0.0], [7.0, 0.0]]


def test_a_job_that_returns_after_leaving_the_history_is_no_finding() -> None:
    """In each run the job waits for the network as before."""
    job = ChannelTable((*TABLE.fast, usage("/loader")), TABLE.slow)
    waiting = {"network.tcp.retrans_segs": 25.0, "network.tcp.out_segs": 1000.0}

    def opened(judge: NodeAnalyzer, node: Node, seconds: int, busy: bool) -> list[FindingUpdate]:
        node.table = job if busy else TABLE
        updates = []
        for _ in range(seconds):
            updates += judge.analyze(node.slice(waiting if busy else None), node.table)
        return [update for update in updates if update.change.value == "Opened"]

    node, judge = Node(), NodeAnalyzer("n1", AnalyzerSettings(warmup_seconds=60))
    opened(judge, node, 90, busy=False)
    first = opened(judge, node, 240, busy=True)
    assert opened(judge, node, 900, busy=False) == []
    assert len(first) == 1
    assert opened(judge, node, 60, busy=True) == []
