"""Which nodes a pod template selects by labels: pure, with the rules of the scheduler.

https://kubernetes.io/docs/concepts/scheduling-eviction/assign-pod-node/.  Taints are ignored: a
node that two profiles select overlaps even while a taint keeps one of them away.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Labels = Mapping[str, str]
_NAME = "metadata.name"


@dataclass(frozen=True)
class Placement:
    """``terms`` are alternatives; None selects every node with the labels of ``selector``."""

    selector: Labels
    terms: tuple[Mapping[str, Any], ...] | None

    def matches(self, name: str, labels: Labels) -> bool:
        """Return whether a node of that name with those labels is selected."""
        if any(labels.get(key) != value for key, value in self.selector.items()):
            return False
        return self.terms is None or any(_term(term, name, labels) for term in self.terms)


def placement_of(pod: Mapping[str, Any]) -> Placement:
    """Return the placement in a pod spec."""
    affinity = (pod.get("affinity") or {}).get("nodeAffinity") or {}
    required = affinity.get("requiredDuringSchedulingIgnoredDuringExecution")
    terms = None if required is None else tuple(required.get("nodeSelectorTerms") or ())
    return Placement(dict(pod.get("nodeSelector") or {}), terms)


def _term(term: Mapping[str, Any], name: str, labels: Labels) -> bool:
    expressions, fields = term.get("matchExpressions") or (), term.get("matchFields") or ()
    if not expressions and not fields:
        return False  # an empty term selects nothing
    return all(_holds(each, labels) for each in expressions) and all(
        _holds(each, {_NAME: name}) for each in fields
    )


def _holds(requirement: Mapping[str, Any], labels: Labels) -> bool:
    found, values = labels.get(requirement["key"]), requirement.get("values") or ()
    operator = _OPERATORS.get(requirement["operator"])
    return operator is not None and operator(found, values)


def _is_greater(left: str | None, rights: Any) -> bool:
    try:
        return int(left or "") > int(next(iter(rights)) or "")
    except (ValueError, StopIteration):
        return False


_OPERATORS: dict[str, Callable[[str | None, Any], bool]] = {
    "In": lambda found, values: found in values,
    "NotIn": lambda found, values: found not in values,
    "Exists": lambda found, _: found is not None,
    "DoesNotExist": lambda found, _: found is None,
    "Gt": _is_greater,
    "Lt": lambda found, values: _is_greater(next(iter(values), None), (found,)),
}
