"""The columns of a table: equal columns of several nodes are shared."""

from __future__ import annotations

import json
from operator import is_

from reveal_analyzer.derive.columns import column_plan
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.metric import Kind
from support.synthetic_node import FAST, SLOW, TABLE


def test_nodes_of_other_pods_share_the_columns_of_the_host() -> None:
    pod = Channel("network.nic.rx_bytes", "pod0", Kind.COUNTER)
    first, second = column_plan(TABLE), column_plan(ChannelTable((*FAST, pod), SLOW))
    assert first is not second
    assert all(map(is_, first.columns[:9], second.columns[:9]))
    assert set(second.labels) - set(first.labels) == {"network.nic.rx_bytes{pod0}__mean"}


def test_a_column_is_known_by_its_label() -> None:
    labels = column_plan(TABLE).labels
    assert len(set(labels)) == len(labels)
    assert {"cpu.user__mean", "cpu.user__maximum", "network.nic.rx_bytes{eth0}__mean"} <= {*labels}


def test_a_channel_of_a_kind_that_only_a_later_version_knows_has_no_column() -> None:
    rows = [["cpu.user", "", kind, 1.0, "fast"] for kind in ("quantile", "counter")]
    table = ChannelTable.from_json(json.dumps({"version": 1, "fast": rows, "slow": rows[:1]}))
    plan = column_plan(table)
    assert plan.labels[:1] == ("cpu.user__mean",)
    assert plan.recipe.copied.tolist() == [1]
    assert not any("unknown" in label for label in plan.labels)


def test_nodes_that_differ_in_their_pods_share_their_columns() -> None:
    """What follows from the columns is then computed once, as at the takeover of many nodes."""
    first, second = (
        column_plan(ChannelTable((Channel("cpu.user"), Channel("cpu.subject.usage", pod)), ()))
        for pod in ("/a", "/b")
    )
    assert first.column_set is second.column_set
    more = column_plan(ChannelTable((Channel("cpu.user"), Channel("cpu.nice")), ()))
    assert more.column_set is not first.column_set
