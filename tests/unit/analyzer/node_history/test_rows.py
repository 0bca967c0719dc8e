"""Rows of a node's history: what matters is kept, noise is not."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from reveal_analyzer.heartbeat.series import FINE
from reveal_analyzer.node_history.rows import SIGNIFICANT_BITS, STEPS_OF_QUANTUM, RowPlan, step_of
from reveal_contract import catalogue
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.metric import Kind, Lane
from support.synthetic_node import TABLE, Node

AVAILABLE = Channel("memory.mem_available", "", Kind.GAUGE, 1024.0)


def value(table: ChannelTable, index: int, level: int) -> float:
    """Return what is kept of a channel that has the same value in each tick, in base units."""
    message = Node(table).slice()
    fast = message.fast.copy()
    fast[:, index] = level
    row = RowPlan.of(table).row(replace(message, fast=fast))
    return float(row.steps[index]) * row.channels[index].scale


@pytest.mark.parametrize("level", [0, 1, 12 << 20, 2 << 30])
def test_a_gauge_is_kept_to_a_part_of_what_matters(level: int) -> None:
    quantum = catalogue.find(AVAILABLE.metric).quantum
    index = TABLE.fast.index(AVAILABLE)
    assert abs(value(TABLE, index, level) - level * 1024.0) <= quantum / STEPS_OF_QUANTUM


@pytest.mark.parametrize("level", [7, 1000, 10**12])
def test_a_counter_is_kept_to_some_bits(level: int) -> None:
    table = ChannelTable((Channel("network.nic.rx_bytes", "e", Kind.COUNTER),), ())
    quantum = catalogue.find("network.nic.rx_bytes").quantum
    exact = 10.0 * level
    allowed = exact * 2.0**-SIGNIFICANT_BITS + quantum / STEPS_OF_QUANTUM
    assert abs(value(table, 0, level) - exact) <= allowed


def test_states_and_unknown_metrics_are_exact() -> None:
    for channel in (Channel("cpu.user", "", Kind.STATE, 3.0), Channel("no.such", "", scale=7.0)):
        assert step_of(channel) == channel.scale


def test_what_was_not_read_is_missing_and_fine_clocks_are_left_out() -> None:
    slow = (Channel("cpu.idle", "", Kind.COUNTER, 1e7, Lane.SLOW),)
    table = ChannelTable(
        (
            Channel("cpu.user", "", Kind.COUNTER),
            Channel(FINE, "/a#0"),
        ),
        slow,
    )
    message = Node(table).slice()
    row = RowPlan.of(table).row(replace(message, slow_missing=np.ones(1, np.bool_)))
    assert [channel.metric for channel in row.channels] == ["cpu.user", "cpu.idle"]
    assert np.isnan(row.steps).tolist() == [False, True]


def test_channels_of_a_kind_that_only_a_later_version_knows_are_left_out() -> None:
    rows = [["cpu.user", "", kind, 1.0, "fast"] for kind in ("quantile", "counter")]
    table = ChannelTable.from_json(json.dumps({"version": 1, "fast": rows, "slow": []}))
    row = RowPlan.of(table).row(Node(table).slice())
    assert row.channels == (Channel("cpu.user", "", Kind.COUNTER, row.channels[0].scale),)


def test_tables_that_change_share_their_channels() -> None:
    other = ChannelTable((*TABLE.fast, Channel("cpu.nice", "", Kind.COUNTER)), TABLE.slow)
    first, second = RowPlan.of(TABLE).channels, RowPlan.of(other).channels
    assert all(mine is its for mine, its in zip(first, second, strict=False) if mine == its)
