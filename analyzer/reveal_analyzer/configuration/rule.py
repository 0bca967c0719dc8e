"""What a configuration rule is, and what it says of one object that breaks it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from reveal_contract.facts import Facts
from reveal_contract.finding import Evidence, Severity, Subject
from reveal_contract.metric import Subsystem


@dataclass(frozen=True)
class Broken:
    """One object that breaks a rule: a device, a NIC, a pool of pages; "" is the host.

    ``values`` fill the rule's claim and fix.  ``severity`` and ``subsystem`` override the
    rule's where this object is another case than most.
    """

    what: str
    values: Mapping[str, object]
    evidence: tuple[Evidence, ...]
    severity: Severity | None = None
    subsystem: Subsystem | None = None
    subjects: tuple[Subject, ...] = ()


@dataclass(frozen=True)
class Rule:
    """``check`` gives every object that breaks the rule; unknown facts break none.

    ``claim`` says what is and what it costs, ``fix`` is the command that mends it, both with
    the names of ``Broken.values`` in braces; ``why`` and ``reference`` are for the reader who
    doubts.
    """

    name: str
    subsystem: Subsystem
    severity: Severity
    claim: str
    fix: str
    why: str
    reference: str
    check: Callable[[Facts], Iterable[Broken]] = field(repr=False)


def fact(
    name: str,
    instance: str,
    value: object,
    should: object = "",
    unit: str = "",
    known_as: str = "",
) -> Evidence:
    """A fact as evidence: what it is and, where there is one right value, what it should be."""
    return Evidence(
        metric=f"fact.{name}", feature="fact", instance=instance, value=str(value),
        baseline=str(should), unit=unit, direction=_direction(value, should), known_as=known_as,
    )  # fmt: skip


def _direction(value: object, should: object) -> str:
    numbers = isinstance(value, int | float) and isinstance(should, int | float)
    return "down" if numbers and value < should else "up"  # type: ignore[operator]
