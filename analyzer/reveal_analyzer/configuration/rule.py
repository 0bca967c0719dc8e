"""Configuration rules and their violations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from reveal_contract.facts import Facts
from reveal_contract.finding import Evidence, Severity, Subject
from reveal_contract.metric import Subsystem


@dataclass(frozen=True)
class Violation:
    """One object that breaks a rule: a device, a NIC, a pool of pages.

    ``what`` identifies it; "" is the host.  ``values`` fill the rule's claim and fix.
    ``severity`` and ``subsystem`` override those of the rule for this object.
    """

    what: str
    values: Mapping[str, object]
    evidence: tuple[Evidence, ...]
    severity: Severity | None = None
    subsystem: Subsystem | None = None
    subjects: tuple[Subject, ...] = ()


ALL = "*"


@dataclass(frozen=True)
class Unknown:
    """An object of which some facts are unknown: whether it breaks the rule cannot be said.

    ``what`` is that of its violation, ``ALL`` any object.  An open finding of it stays open.
    """

    what: str


Verdict = Violation | Unknown


@dataclass(frozen=True)
class ConfigurationRule:
    """A rule on the facts of a node; ``check`` yields each violation.

    Unknown facts violate no rule, and end no violation: ``check`` yields ``Unknown`` for them.
    ``fields`` are the facts that list its objects; where one is unread the rule is not checked.
    ``claim`` states the setting and its cost, ``fix`` is the command that corrects it; both contain
    the names of ``Violation.values`` in braces.  ``why`` and ``reference`` explain the rule.
    """

    name: str
    subsystem: Subsystem
    severity: Severity
    claim: str
    fix: str
    why: str
    reference: str
    check: Callable[[Facts], Iterable[Verdict]] = field(repr=False)
    fields: tuple[str, ...] = ()

    def is_checkable(self, facts: Facts) -> bool:
        """Return whether all objects of the rule are known."""
        return not any(
            name == unread or name.startswith(f"{unread}.")
            for unread in facts.unread
            for name in self.fields
        )


def fact(
    name: str,
    instance: str,
    value: object,
    should: object = "",
    unit: str = "",
    known_as: str = "",
) -> Evidence:
    """Return a fact as evidence: its value and, if there is one right value, what it should be."""
    return Evidence(
        metric=f"fact.{name}", feature="fact", instance=instance, value=str(value),
        baseline=str(should), unit=unit, direction=_direction(value, should), known_as=known_as,
    )  # fmt: skip


def _direction(value: object, should: object) -> str:
    numbers = isinstance(value, int | float) and isinstance(should, int | float)
    return "down" if numbers and value < should else "up"  # type: ignore[operator]
