"""Channels of a table by metric."""

from reveal_analyzer.derive.channel_index import indices_by_metric, indices_of
from reveal_contract.channels import ChannelTable
from support.synthetic_node import FAST, SLOW, TABLE


def test_each_metric_has_the_indices_of_its_channels() -> None:
    found = indices_by_metric(FAST)
    assert found["cpu.user"] == [0, 1, 2]
    assert sorted(index for indices in found.values() for index in indices) == [*range(len(FAST))]
    assert list(indices_of(FAST, "no.such.metric")) == []


def test_tables_do_not_share_an_index() -> None:
    other = ChannelTable(FAST[::-1], SLOW)
    assert indices_of(other.fast, "cpu.user") == [11, 12, 13]
    assert indices_of(TABLE.fast, "cpu.user") == [0, 1, 2]
