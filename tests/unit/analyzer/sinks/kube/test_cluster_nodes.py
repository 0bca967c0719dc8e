"""The nodes of the cluster: listed once, new names are asked for."""

from __future__ import annotations

import pytest

from reveal_analyzer.sinks.kube.cluster_nodes import (
    ANSWER_SECONDS,
    LIST_AGAIN_SECONDS,
    NAMES_A_STEP,
    ClusterNodes,
)
from reveal_contract.kube.errors import ForbiddenError, UnavailableError
from support.fake_kube import FakeKube


def test_a_node_is_known_from_the_list_and_a_new_node_after_a_step() -> None:
    api = FakeKube()
    nodes = ClusterNodes(api)
    assert nodes.is_node("n1") is None, "nothing was read yet"
    nodes.step(0.0)
    assert nodes.is_node("n1") is True
    api.nodes["n2"] = "n2-uid"
    assert nodes.is_node("n2") is False
    nodes.step(1.0)
    assert nodes.is_node("n2") is True
    assert [name for name, _ in api.calls] == ["node_names", "node"]


def test_a_name_without_a_node_is_asked_for_once_a_minute() -> None:
    api = FakeKube()
    nodes = ClusterNodes(api)
    nodes.step(0.0)
    for second in range(1, int(2 * ANSWER_SECONDS)):
        assert nodes.is_node("forged") is False
        nodes.step(float(second))
    assert [name for name, _ in api.calls].count("node") == 2


def test_many_names_are_asked_for_in_portions() -> None:
    api = FakeKube()
    nodes = ClusterNodes(api)
    nodes.step(0.0)
    for number in range(50):
        nodes.is_node(f"forged{number}")
    nodes.step(1.0)
    assert [name for name, _ in api.calls].count("node") == NAMES_A_STEP


def test_without_the_right_to_list_no_name_is_a_stranger() -> None:
    """A chart of an earlier version gives the right to get nodes only."""
    api = FakeKube()
    api.fail = lambda name, about: ForbiddenError("no") if name == "node_names" else None
    nodes = ClusterNodes(api)
    nodes.step(0.0)
    nodes.step(1.0)
    assert nodes.is_node("anything") is None
    assert len(api.calls) == 1
    api.fail = lambda name, about: None
    nodes.step(LIST_AGAIN_SECONDS)
    assert nodes.is_node("anything") is False


def test_an_outage_leaves_what_is_to_be_asked() -> None:
    api = FakeKube()
    nodes = ClusterNodes(api)
    nodes.step(0.0)
    api.nodes["n2"] = "n2-uid"
    nodes.is_node("n2")
    api.fail = lambda name, about: UnavailableError("down")
    with pytest.raises(UnavailableError):
        nodes.step(1.0)
    api.fail = lambda name, about: None
    nodes.step(2.0)
    assert nodes.is_node("n2") is True
