"""A case keeps what was normal for its columns, and compares the present with it."""

from __future__ import annotations

import numpy as np
import pytest

from reveal_analyzer.live.reference import ColumnReference
from reveal_contract.channels import ChannelTable
from reveal_contract.metric import Subsystem
from support.scored_node import LOSS, PRESSURE, SHARE, WAITING, ScoredNode
from support.synthetic_node import TABLE

TCP = {channel.metric for channel in TABLE.fast if channel.metric.startswith("network.tcp.")}


@pytest.fixture
def watched() -> ScoredNode:
    result = ScoredNode()
    result.run(200)
    return result


def reference(watched: ScoredNode, *labels: str) -> ColumnReference:
    return watched.live.reference(np.array([watched.index(label) for label in labels]))


def every(watched: ScoredNode) -> ColumnReference:
    return watched.live.reference(np.arange(len(watched.live.columns)))


def over(watched: ScoredNode, kept: ColumnReference) -> float:
    """Return the Network score of a reference's columns relative to its own threshold."""
    weighted = watched.live.placed(kept, watched.live.deviation(kept))
    return watched.live.over(weighted, kept.thresholds)[Subsystem.NETWORK]


def test_the_deviation_of_all_columns_is_that_of_the_score(watched: ScoredNode) -> None:
    kept = every(watched)
    scored = watched.run(5, LOSS)[-1]
    weighted = watched.live.deviation(kept)
    np.testing.assert_allclose(weighted, scored.weighted, rtol=0.05, atol=0.2)
    assert watched.live.over(scored.weighted) == pytest.approx(dict(scored.over))


def test_a_lasting_fault_goes_on_deviating_from_what_was_before(watched: ScoredNode) -> None:
    watched.run(5, LOSS)
    kept = every(watched)
    for _ in range(600):
        (scored,) = watched.run(1, LOSS)
        assert over(watched, kept) > 1
    assert scored.over[Subsystem.NETWORK] < 1  # the score itself has learned it
    watched.run(10)
    assert over(watched, kept) < 1


def test_a_reference_is_about_its_own_columns(watched: ScoredNode) -> None:
    share, waiting = reference(watched, SHARE), reference(watched, WAITING)
    watched.run(10, LOSS)
    assert watched.live.deviation(share)[0] > 5
    assert watched.live.deviation(waiting)[0] < 1
    watched.run(10, PRESSURE)
    assert watched.live.deviation(share)[0] < 1
    assert watched.live.deviation(waiting)[0] > 5


def test_the_reference_of_a_learned_level_is_that_level(watched: ScoredNode) -> None:
    before = reference(watched, SHARE)
    watched.run(300, LOSS)
    now = reference(watched, SHARE)
    assert now.highest[0] > 10 * before.highest[0]
    assert now.baseline[0] > 10 * before.baseline[0]
    watched.run(1, LOSS)
    assert watched.live.deviation(now)[0] < 1 < watched.live.deviation(before)[0]


def test_a_column_without_a_value_does_not_deviate(watched: ScoredNode) -> None:
    kept = reference(watched, SHARE, WAITING)
    watched.run(10, LOSS | PRESSURE)
    assert (watched.live.deviation(kept) > 1).all()
    watched.run(1, LOSS | PRESSURE, missing=TCP)
    share, waiting = watched.live.deviation(kept).tolist()
    assert (share, waiting > 1) == (0.0, True)


def test_a_reference_outlives_its_table(watched: ScoredNode) -> None:
    kept = reference(watched, SHARE, "network.nic.rx_bytes{eth0}__mean", WAITING)
    fast = [channel for channel in TABLE.fast[::-1] if channel.instance != "eth0"]
    watched.node.table = ChannelTable(tuple(fast), TABLE.slow)
    watched.run(10, LOSS)
    assert watched.live.indices(kept).tolist() == [watched.index(SHARE), -1, watched.index(WAITING)]
    share, gone, waiting = watched.live.deviation(kept).tolist()
    assert (share > 5, gone, waiting < 1) == (True, 0.0, True)
    placed = watched.live.placed(kept, np.array([1.0, 2.0, 3.0], np.float32))
    assert sorted(placed[placed > 0].tolist()) == [1.0, 3.0]


def test_a_constant_column_has_a_reference(watched: ScoredNode) -> None:
    label = "memory.vm.oom_kill__mean"
    watched.run(200)
    kept = reference(watched, label, SHARE)
    assert watched.live.deviation(kept)[0] == 0
    assert (kept.highest[0], kept.baseline[0]) == (0.0, 0.0)
    watched.run(3, {"memory.vm.oom_kill": 10.0})
    assert watched.live.deviation(kept)[0] > 1


def test_before_there_is_a_history_nothing_deviates() -> None:
    watched = ScoredNode()
    watched.run(3)
    kept = every(watched)
    watched.run(60, LOSS)
    assert not watched.live.deviation(kept).any()
    assert np.isinf(kept.highest).all()
    assert np.isnan(kept.baseline).all()


def test_columns_can_be_selected_and_added(watched: ScoredNode) -> None:
    first, both = reference(watched, SHARE), reference(watched, WAITING, SHARE)
    more = first.extended(both)
    assert more.labels == (SHARE, WAITING)
    assert more.extended(first) is more
    np.testing.assert_array_equal(more.select(np.array([1])).bounds[..., 0], both.bounds[..., 0])
    watched.run(10, LOSS | PRESSURE)
    np.testing.assert_array_equal(
        watched.live.deviation(more), watched.live.deviation(both)[[1, 0]]
    )
