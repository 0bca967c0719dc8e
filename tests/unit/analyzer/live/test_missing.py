"""A column without a value is within its range, and unobserved after a while."""

from __future__ import annotations

import numpy as np
import pytest

from reveal_analyzer.live.missing import UNOBSERVED_S
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.metric import Kind, Subsystem
from support.scored_node import LOSS, SHARE, ScoredNode
from support.synthetic_node import TABLE, Node

TCP = {channel.metric for channel in TABLE.fast if channel.metric.startswith("network.tcp.")}
ALL = {channel.metric for channel in TABLE.fast}


@pytest.fixture
def watched() -> ScoredNode:
    result = ScoredNode()
    result.run(120)
    return result


def test_a_fault_whose_metrics_go_missing_has_no_score(watched: ScoredNode) -> None:
    assert watched.run(20, LOSS)[-1].over[Subsystem.NETWORK] > 1
    for scored in watched.run(60, LOSS, missing=TCP):
        assert scored.over[Subsystem.NETWORK] < 0.1
        assert scored.weighted[watched.index(SHARE)] == 0
        assert not scored.excess[:, watched.index(SHARE)].any()


def test_a_column_is_unobserved_after_some_seconds_without_a_value(watched: ScoredNode) -> None:
    column = "network.tcp.out_segs__mean"
    assert not watched.run(1)[-1].unobserved.any()
    missing = watched.run(10, LOSS, missing=TCP)
    index = watched.index(column)
    assert [bool(scored.unobserved[index]) for scored in missing] == [
        second > UNOBSERVED_S for second in range(1, 11)
    ]
    assert missing[-1].unobserved[watched.index(SHARE)]  # a ratio of what was not read
    assert not missing[-1].unobserved[watched.index("cpu.user__mean")]
    assert not watched.run(1)[-1].unobserved.any()


def test_a_share_of_nothing_is_observed() -> None:
    """Without lost segments nothing can be said of their pattern, but all counters were read."""
    recoveries = Channel("network.tcp_ext.tcp_sack_recovery", "", Kind.COUNTER)
    watched = ScoredNode(node=Node(ChannelTable((*TABLE.fast, recoveries), TABLE.slow)))
    scored = watched.run(30)[-1]
    length = watched.index("network.tcp.recovery_length__mean")
    assert watched.second is not None
    assert np.isnan(watched.second.values[length])
    assert not scored.unobserved.any()
    assert watched.run(10, missing={recoveries.metric})[-1].unobserved[length]


def test_nothing_is_learned_of_a_column_without_a_value(watched: ScoredNode) -> None:
    columns = np.arange(len(watched.live.columns))
    before = watched.live.reference(columns)
    watched.run(400, missing=ALL)
    after = watched.live.reference(columns)
    nic = [index for index, column in enumerate(watched.live.columns) if column.instance == "eth0"]
    # half of the history was known: what was left is repeated, so the range is the same
    np.testing.assert_allclose(after.bounds[..., nic], before.bounds[..., nic], rtol=0.02)
    assert watched.run(20)[-1].worst < 0.5


def test_a_fault_is_scored_again_when_its_metrics_return(watched: ScoredNode) -> None:
    watched.run(20, LOSS)
    watched.run(30, LOSS, missing=TCP)
    returned = watched.run(6, LOSS)
    assert returned[-1].over[Subsystem.NETWORK] > 1


def test_a_count_of_subjects_that_were_not_read_is_unobserved(watched: ScoredNode) -> None:
    index = watched.index("cpu.stalled_subjects__mean")
    assert watched.second is not None and watched.second.values[index] == 0
    scored = watched.run(10, missing={"cpu.subject.usage"})[-1]
    assert np.isnan(watched.second.values[index])
    assert scored.unobserved[index]


def test_a_table_that_comes_while_the_size_of_the_node_is_not_read_keeps_its_scale() -> None:
    watched, large = ScoredNode(), {"memory.mem_total": float(512 << 20)}
    watched.run(120, large)
    available = "memory.mem_available__mean"
    before = watched.highest(available)
    more = Channel("network.nic.tx_bytes", "eth0", Kind.COUNTER)
    watched.node.table = ChannelTable((*TABLE.fast, more), TABLE.slow)
    watched.run(1, large, missing={"memory.mem_total"})
    assert watched.highest(available) == pytest.approx(before, rel=0.01)
