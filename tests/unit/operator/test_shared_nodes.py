"""Which profiles select the same nodes, and when nodes are listed."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from reveal_operator.api import Object, Page
from reveal_operator.conditions import ProfileOverlap
from reveal_operator.placement import Placement, placement_of
from reveal_operator.shared_nodes import PAUSE_S, STALE_S, Found, SharedNodes, shared

LABELS = {"gpu": "true", "zone": "a", "cores": "64"}


def in_zone(zone: str) -> Placement:
    return placement_of({"nodeSelector": {"zone": zone}})


def test_shared_nodes_are_found_both_ways() -> None:
    selected = {"a": frozenset("xy"), "b": frozenset("yz"), "c": frozenset("z")}
    assert shared("a", selected) == (("b", frozenset("y")),)
    assert shared("b", selected) == (("a", frozenset("y")), ("c", frozenset("z")))
    assert shared("gone", selected) == ()


class Nodes:
    """An API of nodes alone, which counts how often it is asked."""

    def __init__(self) -> None:
        self.names = {"n1": LABELS, "n2": {"zone": "b"}}
        self.asked = 0

    def pages(self, kind: str, *_: str, metadata: bool = False) -> Iterator[Page]:
        assert (kind, metadata) == ("Node", True)
        self.asked += 1
        for name, labels in self.names.items():
            item: Object = {"metadata": {"name": name, "labels": labels}}
            yield Page([item], "1")


@pytest.fixture
def nodes() -> Nodes:
    return Nodes()


def test_nodes_are_listed_for_two_profiles_and_when_desired_counts_change(nodes: Nodes) -> None:
    now = 0.0
    shared_nodes = SharedNodes(nodes, lambda: now)  # type: ignore[arg-type]
    everywhere, there = placement_of({}), in_zone("a")

    def overlaps(placements: dict[str, Placement], **desired: int) -> Found:
        return asyncio.run(shared_nodes.overlaps("a", placements, desired))

    assert overlaps({"a": everywhere}, a=2) == ((), None)
    assert nodes.asked == 0
    both = {"a": everywhere, "b": there}
    assert overlaps(both, a=2, b=1) == ((ProfileOverlap("b", 1, "n1"),), None)
    now += 2 * PAUSE_S
    assert overlaps(both, a=2, b=1) == ((ProfileOverlap("b", 1, "n1"),), None)
    assert nodes.asked == 1
    nodes.names["n0"] = {"zone": "a"}
    assert overlaps(both, a=3, b=2) == ((ProfileOverlap("b", 2, "n0"),), None)
    del nodes.names["n0"]
    now += 1  # too soon for another list, but the retry is scheduled
    assert overlaps(both, a=2, b=1) == ((ProfileOverlap("b", 2, "n0"),), PAUSE_S - 1)
    now += PAUSE_S
    assert overlaps(both, a=2, b=1) == ((ProfileOverlap("b", 1, "n1"),), None)
    assert nodes.asked == 3
    assert overlaps({"a": everywhere, "b": in_zone("c")}, a=2, b=1) == (
        (),
        None,
    )
    now += STALE_S
    overlaps(both, a=2, b=1)
    assert nodes.asked == 4
