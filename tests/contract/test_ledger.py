"""The contract of the lost-time ledger: its metrics, its pairs, and when its parts add up."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveal_analyzer.derive.columns import shared_column_plan
from reveal_analyzer.subjects.means import is_subject_level
from reveal_contract import ledger
from reveal_contract.catalogue import find, rows
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.ledger import PARTS, THREAD_TIME, Pair, adds_up, pair_of
from reveal_contract.metric import Harm, Kind, Lane, Scope

SECOND = 1e9


def test_every_name_has_a_row_of_the_catalogue() -> None:
    named = {
        *ledger.PARTS, *ledger.PAIRS, *ledger.LONG_WAITS.values(), ledger.THREAD_TIME, ledger.DISK,
        ledger.WAITS, ledger.TIER, ledger.MISSED, ledger.FOLDED, ledger.COST,
    }  # fmt: skip
    assert named == {row.name for row in rows() if row.source == ledger.SOURCE}


def test_parts_are_counters_of_time_by_subject() -> None:
    for name in (*ledger.PARTS, ledger.THREAD_TIME, ledger.DISK):
        row = find(name)
        assert (row.kind, row.scope, row.unit) == (Kind.COUNTER, Scope.SUBJECT, "ns")
    assert {find(name).scope for name in ledger.PAIRS} == {Scope.PAIR}


def test_lost_time_is_part_of_the_desired_time() -> None:
    assert set(ledger.LOST) - {ledger.STOLEN} < set(ledger.DESIRED) < set(ledger.PARTS)


@given(st.text(), st.text())
def test_a_pair_comes_back_from_its_instance(victim: str, culprit: str) -> None:
    pair = Pair(victim.replace("%", ""), culprit.replace("%", ""))
    assert pair_of(pair.instance) == pair


def test_an_instance_of_no_pair_is_refused() -> None:
    with pytest.raises(ValueError, match="unpack"):
        pair_of("/system.slice/cron.service")


def second(**parts: float) -> dict[str, float]:
    increments = dict.fromkeys((*PARTS, THREAD_TIME), 0.0)
    return increments | {f"ledger.{name}": value for name, value in parts.items()}


def test_a_second_whose_parts_add_up_is_used() -> None:
    assert adds_up(second(run=0.4e9, wait_others=0.1e9, sleep=1.5e9, thread_time=2e9))
    assert adds_up(second())


def test_a_second_that_lost_more_than_a_hundredth_is_refused() -> None:
    parts = second(run=2e9, sleep=18e9)
    assert adds_up(parts | {THREAD_TIME: 20.1e9})
    assert not adds_up(parts | {THREAD_TIME: 20.4e9})
    assert not adds_up(parts | {THREAD_TIME: 19.6e9})


def test_the_ledger_is_no_column_of_the_live_score() -> None:
    channels = tuple(
        Channel(row.name, "a", row.kind, 1.0, Lane.SLOW)
        for row in rows()
        if row.source == ledger.SOURCE
    )
    columns = shared_column_plan(ChannelTable((), channels)).columns
    assert {column.metric.name for column in columns}.isdisjoint(
        row.name for row in rows() if row.source == ledger.SOURCE
    )
    assert not any(map(is_subject_level, channels))
    assert {find(channel.metric).harm for channel in channels} == {Harm.NEITHER}
