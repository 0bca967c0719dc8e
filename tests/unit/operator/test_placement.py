"""Which nodes a pod template selects."""

from __future__ import annotations

from typing import Any

import pytest

from reveal_operator.placement import Placement, placement_of

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
