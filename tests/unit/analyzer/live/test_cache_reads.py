"""Reads of pages that were dropped before: when they are harm, and when only reads."""

from __future__ import annotations

import numpy as np
import pytest

from reveal_analyzer.derive.deriver import Deriver
from reveal_analyzer.live.cache_reads import CacheReads
from reveal_analyzer.node import NodeAnalyzer
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.finding import FindingChange
from reveal_contract.metric import Kind
from reveal_contract.settings import AnalyzerSettings
from support.synthetic_node import FAST, QUIET, SLOW, Node

REFAULTS, MAJOR = "memory.vm.workingset_refault_file", "memory.vm.pgmajfault"
FILE, ANON = "memory.vm.pgscan_file", "memory.vm.pgscan_anon"
USED_TO = 50.0


def channels(*names: str) -> tuple[Channel, ...]:
    return tuple(Channel(name, "", Kind.COUNTER, 1.0) for name in names)


class Host:
    """Which of its columns are not scored, second by second."""

    def __init__(self, *names: str) -> None:
        self.table = ChannelTable(channels(*names), ())
        self.node, self.deriver, self.reads = Node(), Deriver(), CacheReads()
        self.node.table = self.table

    def run(self, seconds: int, **values: float) -> list[set[str]]:
        changed = {f"memory.vm.{name}": value for name, value in values.items()}
        return [self._second(changed) for _ in range(seconds)]

    def _second(self, changed: dict[str, float]) -> set[str]:
        second = self.deriver.second(self.node.slice(changed), self.table)
        columns = second.plan.columns
        scored = self.reads.scorable(second, second.values, np.full(len(columns), USED_TO))
        kept = np.isnan(scored) <= np.isnan(second.values)
        return {each.metric.name for each, same in zip(columns, kept, strict=True) if not same}


def test_reads_are_not_scored_while_nothing_was_scanned_for_ten_seconds() -> None:
    host = Host(REFAULTS, MAJOR, FILE, ANON)
    host.run(12)
    assert host.run(3, workingset_refault_file=1240, pgmajfault=300) == [{REFAULTS, MAJOR}] * 3


@pytest.mark.parametrize("scan", ["pgscan_file", "pgscan_anon"])
def test_reads_are_scored_while_pages_are_scanned_and_for_ten_seconds_more(scan: str) -> None:
    host = Host(REFAULTS, MAJOR, FILE, ANON)
    host.run(12)
    during = host.run(5, **{"workingset_refault_file": 1240.0, scan: 400.0})
    after = host.run(12, workingset_refault_file=1240)
    assert [*during, *after[:9]] == [set()] * 14
    assert after[-1] == {REFAULTS}


def test_as_many_as_the_node_is_used_to_are_scored_and_so_learned() -> None:
    host = Host(REFAULTS, MAJOR, FILE, ANON)
    host.run(12)
    assert host.run(3, workingset_refault_file=USED_TO / 2) == [set()] * 3


def test_all_reads_are_scored_where_scans_are_not_counted() -> None:
    """Linux before 5.8 counts the scans of cgroups nowhere."""
    host = Host(REFAULTS, MAJOR, "memory.vm.pgscan_direct")
    host.run(12)
    assert host.run(3, workingset_refault_file=1240) == [set()] * 3


@pytest.mark.parametrize(("scanned", "found"), [(0.0, False), (9_000.0, True)])
def test_a_node_reports_a_shortage_and_no_program_that_starts(scanned: float, found: bool) -> None:
    node = Node(ChannelTable((*FAST, *channels(REFAULTS, MAJOR, FILE, ANON)), SLOW))
    judge = NodeAnalyzer("n1", AnalyzerSettings(warmup_seconds=60))
    fault = {REFAULTS: 6_000.0, MAJOR: 500.0, FILE: scanned, ANON: scanned}
    changes = [
        update.change
        for second in range(150)
        for update in judge.analyze(
            node.slice(QUIET | (fault if 120 <= second < 140 else {})), node.table
        )
    ]
    assert (FindingChange.OPENED in changes) is found
