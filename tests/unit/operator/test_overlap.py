"""Which nodes a template selects, and which profiles share nodes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from reveal_operator.api import Object, Page
from reveal_operator.conditions import ProfileOverlap
from reveal_operator.neighbors import PAUSE_S, STALE_S, Found, Neighbors
from reveal_operator.overlap import Placement, placement_of, shared

LABELS = {"gpu": "true", "zone": "a", "cores": "64"}


def requirement_of(key: str, operator: str, *values: str) -> Placement:
    expression = {"key": key, "operator": operator, "values": list(values)}
    return affine({"matchExpressions": [expression]})


def affine(*terms: dict[str, Any]) -> Placement:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [*terms]}}
    return placement_of({"affinity": {"nodeAffinity": required}})


@pytest.mark.parametrize(
    ("placement", "expected"),
    [
        (requirement_of("zone", "In", "a", "b"), True),
        (requirement_of("zone", "In", "b"), False),
        (requirement_of("absent", "In", "a"), False),
        (requirement_of("zone", "NotIn", "b"), True),
        (requirement_of("zone", "NotIn", "a"), False),
        (requirement_of("absent", "NotIn", "a"), True),
        (requirement_of("gpu", "Exists"), True),
        (requirement_of("absent", "Exists"), False),
        (requirement_of("absent", "DoesNotExist"), True),
        (requirement_of("gpu", "DoesNotExist"), False),
        (requirement_of("cores", "Gt", "32"), True),
        (requirement_of("cores", "Gt", "64"), False),
        (requirement_of("cores", "Lt", "65"), True),
        (requirement_of("cores", "Lt", "64"), False),
        (requirement_of("zone", "Gt", "1"), False),
        (requirement_of("absent", "Lt", "1"), False),
        (requirement_of("zone", "Near", "a"), False),
        (placement_of({}), True),
        (placement_of({"nodeSelector": {"gpu": "true"}}), True),
        (placement_of({"nodeSelector": {"gpu": "true", "zone": "b"}}), False),
        (affine({}), False),  # an empty term selects nothing
        (affine(), False),
    ],
)
def test_operators(placement: Placement, expected: bool) -> None:
    assert placement.matches("n1", LABELS) is expected


def test_terms_are_alternatives_and_their_parts_are_not() -> None:
    gpu = {"key": "gpu", "operator": "Exists"}
    other = {"key": "other", "operator": "Exists"}
    assert affine({"matchExpressions": [other]}, {"matchExpressions": [gpu]}).matches("n", LABELS)
    assert not affine({"matchExpressions": [gpu, other]}).matches("n", LABELS)


def test_fields_are_those_of_the_node() -> None:
    name = {"key": "metadata.name", "operator": "In", "values": ["n1"]}
    placement = affine({"matchFields": [name]})
    assert placement.matches("n1", {})
    assert not placement.matches("n2", {"metadata.name": "n1"})


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
    neighbours = Neighbors(nodes, lambda: now)  # type: ignore[arg-type]
    everywhere, there = placement_of({}), requirement_of("zone", "In", "a")

    def overlaps(placements: dict[str, Placement], **desired: int) -> Found:
        return asyncio.run(neighbours.overlaps("a", placements, desired))

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
    assert overlaps({"a": everywhere, "b": requirement_of("zone", "In", "c")}, a=2, b=1) == (
        (),
        None,
    )
    now += STALE_S
    overlaps(both, a=2, b=1)
    assert nodes.asked == 4
