"""Slices of strangers, and of more nodes than memory can hold, are refused and reported."""

from __future__ import annotations

import pytest

from reveal_analyzer.stream import node_admission
from reveal_analyzer.stream.node_admission import (
    STRANGER,
    UNLIMITED,
    NodeAdmission,
    nodes_that_fit,
)
from support.fake_clock import FakeClock


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    result = FakeClock()
    monkeypatch.setattr(node_admission.time, "monotonic", result)
    return result


def test_any_name_is_taken_where_there_is_no_cluster() -> None:
    admission = NodeAdmission()
    assert [admission.refusal(f"n{number}") for number in range(9)] == [""] * 9
    assert admission.degradations() == []


def test_a_name_that_is_no_node_of_the_cluster_is_refused(clock: FakeClock) -> None:
    nodes = {"n1"}
    admission = NodeAdmission(is_node=nodes.__contains__)
    assert admission.refusal("n1") == ""
    assert admission.refusal("forged") == STRANGER
    assert admission.degradations() == [], "it may have just joined the cluster"
    clock.now += 20
    assert admission.refusal("forged") == STRANGER
    [found] = admission.degradations()
    assert (found.reason, found.nodes) == ("UnknownNodes", 1)
    assert "'forged'" in found.message
    nodes.add("forged")
    assert admission.refusal("forged") == ""
    assert admission.degradations() == []


def test_what_was_taken_before_the_nodes_were_known_is_checked_then(clock: FakeClock) -> None:
    answers: dict[str, bool | None] = {"n1": None, "forged": None}
    admission = NodeAdmission(2, answers.__getitem__)
    assert admission.refusal("n1") == admission.refusal("forged") == ""
    answers |= {"n1": True, "forged": False, "n2": True}
    assert admission.refusal("n1") == ""
    assert admission.refusal("forged") == STRANGER
    assert admission.refusal("n2") == "", "it has the place of the other"


def test_no_more_nodes_than_fit_are_taken(clock: FakeClock) -> None:
    admission = NodeAdmission(2)
    assert admission.refusal("n1") == admission.refusal("n2") == ""
    assert "2 nodes" in admission.refusal("n3")
    assert admission.refusal("n1") == ""
    assert [each.reason for each in admission.degradations()] == ["TooManyNodes"]
    admission.forget(["n1"])
    assert admission.refusal("n3") == ""
    clock.now += 400
    assert admission.degradations() == []


def test_the_names_of_strangers_take_bounded_memory(clock: FakeClock) -> None:
    admission = NodeAdmission(is_node=lambda _: False)
    for number in range(5000):
        admission.refusal(f"forged{number}")
    clock.now += 20
    for number in range(5000):
        admission.refusal(f"forged{number}")
    assert sum(each.nodes for each in admission.degradations()) <= 1024


@pytest.mark.parametrize(
    ("memory", "nodes"),
    [(0, UNLIMITED), (64 << 20, 16), (512 << 20, 51), (6 << 30, 1177)],
)
def test_the_number_of_nodes_follows_from_the_memory(memory: int, nodes: int) -> None:
    """Those of the sizes that docs/explanation/sizing.md gives fit."""
    assert nodes_that_fit(memory) == nodes
