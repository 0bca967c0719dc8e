"""What a live score learned goes on in another process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from reveal_analyzer.live.score import OPTIONAL, LiveScore, Scored
from reveal_analyzer.live.settings import LiveSettings, live_settings
from reveal_analyzer.state.codec import Position, SavedState, decode, encode, without
from reveal_analyzer.state.tree import StateError, StateTree
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.metric import Kind, Subsystem
from support.scored_node import LOSS, PRESSURE, SHARE, ScoredNode
from support.synthetic_node import TABLE, Node

POSITION = Position("n1", bytes(16), 1, 1)
JOB = ChannelTable((*TABLE.fast, Channel("cpu.subject.usage", "/j", Kind.COUNTER, 1.0)), TABLE.slow)


def carried(live: LiveScore) -> StateTree:
    """Return what another process reads of the saved state."""
    return decode(encode(SavedState(POSITION, 1, live.save()))).tree


def continued(node: ScoredNode, settings: LiveSettings | None = None) -> ScoredNode:
    """Return the same node with a live score that was restored from its saved state."""
    live = LiveScore(settings or LiveSettings())
    live.restore(carried(node.live))
    other = Node(node.node.table)
    other.second = node.node.second
    other._random.bit_generator.state = node.node._random.bit_generator.state
    result = ScoredNode(live, other)
    result._deriver._last = node._deriver._last
    return result


def assert_alike(mine: list[Scored], its: list[Scored]) -> None:
    for restored, kept in zip(mine, its, strict=True):
        assert restored.ready == kept.ready
        np.testing.assert_allclose(restored.excess, kept.excess, rtol=0.02, atol=0.3)
        assert dict(restored.over) == pytest.approx(dict(kept.over), rel=0.05, abs=0.05)


SCENES: dict[str, Callable[[ScoredNode], object]] = {
    "quiet": lambda node: node.run(400),
    "young": lambda node: node.run(90),
    "at an onset": lambda node: (node.run(300), node.run(2, LOSS)),
    "in a fault": lambda node: (node.run(300), node.run(40, LOSS)),
    "in a learned level": lambda node: (node.run(300), node.run(200, LOSS)),
    "after a fault": lambda node: (node.run(300), node.run(200, LOSS), node.run(5)),
}


@pytest.mark.parametrize("scene", SCENES)
@pytest.mark.parametrize("fault", [{}, LOSS, LOSS | PRESSURE])
def test_the_next_seconds_have_the_same_scores(scene: str, fault: dict[str, float]) -> None:
    node = ScoredNode()
    SCENES[scene](node)
    other = continued(node)
    assert other.live.age == node.live.age
    assert_alike(other.run(15, fault), node.run(15, fault))


def test_a_node_that_is_being_learned_goes_on_being_learned() -> None:
    node = ScoredNode()
    node.run(30)
    other = continued(node)
    ready = [scored.ready for scored in other.run(40)]
    assert ready == [scored.ready for scored in node.run(40)]
    assert ready.index(True) == 30


def test_the_level_from_before_returns_after_a_restart() -> None:
    node = ScoredNode()
    node.run(300)
    before = node.highest(SHARE)
    node.run(200, LOSS)
    other = continued(node)
    other.run(30, LOSS)
    assert other.highest(SHARE) > 10 * before + 1e3
    other.run(20)
    assert other.highest(SHARE) == pytest.approx(before, rel=0.1)


def test_workloads_that_return_after_a_restart_are_known() -> None:
    node, waiting = ScoredNode(node=Node(JOB)), {"cpu.pressure.some": 5e4}
    node.run(120, waiting)
    node.node.table = TABLE
    node.run(600)
    other = continued(node)
    other.node.table = node.node.table = JOB
    assert_alike(other.run(15, waiting), node.run(15, waiting))


def test_another_table_after_a_restart_keeps_the_columns_that_it_has() -> None:
    node = ScoredNode()
    node.run(400)
    other = continued(node)
    other.node.table = ChannelTable(tuple(TABLE.fast[::-1]), TABLE.slow)
    assert other.run(10)[-1].worst < 0.5
    assert other.run(10, LOSS)[-1].over[Subsystem.NETWORK] > 1


def test_constant_columns_stay_constant() -> None:
    node = ScoredNode()
    node.run(800)
    other = continued(node)
    other.run(1)
    node.run(1)
    assert other.live._columns.labels == node.live._columns.labels


def test_other_settings_change_thresholds_and_no_memory() -> None:
    node = ScoredNode()
    node.run(400)
    other = continued(node, live_settings("High", 60))
    scored, same = other.run(5, PRESSURE)[-1], node.run(5, PRESSURE)[-1]
    np.testing.assert_allclose(scored.excess, same.excess, rtol=0.02, atol=0.3)
    assert other.live.thresholds.max() == 4.5
    assert not other.live.learning


def test_no_view_spans_a_gap_before_the_first_second() -> None:
    node = ScoredNode()
    node.run(300)
    node.run(10, LOSS)
    other = continued(node)
    other.live.reset_recent()
    assert other.run(1)[-1].worst < 0.5


def test_a_node_of_another_size_is_learned_again() -> None:
    node = ScoredNode()
    node.run(300)
    other = continued(node)
    other.run(1, {"memory.mem_total": 64 << 20})
    assert other.live.learning


def test_a_node_of_which_little_is_known_saves_nothing() -> None:
    node = ScoredNode()
    assert node.live.save() == {}
    node.run(3)
    assert node.live.save() == {}
    other = LiveScore(LiveSettings())
    other.restore({})
    assert ScoredNode(other).run(1)[-1].ready is False


def test_sections_may_be_left_out() -> None:
    node = ScoredNode()
    node.run(300)
    node.run(200, LOSS)
    tree = carried(node.live)
    for path in OPTIONAL:
        tree = without(tree, path)
    live = LiveScore(LiveSettings())
    live.restore(tree)
    assert ScoredNode(live).run(5, LOSS)[-1].worst < 1


def paths(tree: Any, prefix: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Return the path of each value of a tree."""
    found = []
    for key, value in tree.items():
        inner = paths(value, (*prefix, key)) if isinstance(value, dict) else []
        found += inner or [(*prefix, key)]
    return found


def test_a_damaged_state_is_refused() -> None:
    node = ScoredNode()
    node.run(300)
    node.run(200, LOSS)
    tree = carried(node.live)
    optional = {path[1] for path in OPTIONAL}
    for path in paths(tree):
        for damage in (None, "text", np.zeros((1, 1, 1, 1, 1)), -1.5):
            live = LiveScore(LiveSettings())
            with pytest.raises(StateError):
                live.restore(damaged(tree, path, damage))
        if path[-1] not in optional:
            with pytest.raises(StateError):
                LiveScore(LiveSettings()).restore(without(tree, path))


def damaged(tree: Any, path: tuple[str, ...], value: object) -> Any:
    name, *rest = path
    return {**tree, name: damaged(tree[name], tuple(rest), value) if rest else value}


@pytest.mark.parametrize("columns", [400, 840])
def test_the_saved_state_of_a_large_node_is_small(columns: int) -> None:
    """All columns vary, as they hardly do; many are in a learned new level."""
    nics = [Channel("network.nic.rx_bytes", f"eth{n}", Kind.COUNTER) for n in range(1, columns)]
    table = ChannelTable((*TABLE.fast, *nics[: columns - 30]), TABLE.slow)
    values = {nic.label: 1e5 * (1 + n) for n, nic in enumerate(nics)}
    node = ScoredNode(node=Node(table))
    node.run(330, values)
    node.run(100, values | LOSS | PRESSURE)
    assert len(encode(SavedState(POSITION, 1, node.live.save()))) < 48 * 1024
