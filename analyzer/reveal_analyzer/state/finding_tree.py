"""Findings as trees: what a part of the analysis saves of the findings that it has open."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from enum import StrEnum
from typing import Any, TypeVar

from reveal_analyzer.state.tree import (
    StateError,
    StateTree,
    StateValue,
    integer,
    number,
    section,
    sections,
    text,
    texts,
)
from reveal_contract.finding import (
    Confidence,
    Evidence,
    Finding,
    Hypothesis,
    Impact,
    Method,
    Pod,
    Severity,
    State,
    Subject,
)
from reveal_contract.metric import Subsystem

_Enum = TypeVar("_Enum", bound=StrEnum)
_Part = TypeVar("_Part", Evidence, Hypothesis, Method, Pod, Subject, Impact)
_TEXT_KEYS = ("id", "node_name", "claim")


def finding_tree(finding: Finding) -> StateTree:
    """Return an open finding of one node; its impact is saved apart."""
    return {
        "id": finding.id,
        "node_name": finding.node_name,
        "claim": finding.claim,
        "subsystem": finding.subsystem.value,
        "subsystems": [subsystem.value for subsystem in finding.subsystems],
        "severity": finding.severity.value,
        "first": finding.first_observed_ns,
        "last": finding.last_observed_ns,
        "score": finding.score_percent,
        "confidence": finding.confidence_percent,
        "hypothesis": _tree(finding.hypothesis) if finding.hypothesis else None,
        "methods": [_tree(each) for each in finding.methods],
        "evidence": [_tree(each) for each in finding.evidence],
        "pods": [_tree(each) for each in finding.pods],
        "subjects": [_tree(each) for each in finding.subjects],
        "victims": finding.victims,
        "notes": finding.notes,
    }


def finding_of(tree: StateTree, key: str) -> Finding:
    """Return the finding at ``key``; raises ``StateError`` if it does not fit."""
    tree = section(tree, key)
    identity, node, claim = (text(tree, name) for name in _TEXT_KEYS)
    has_hypothesis = tree.get("hypothesis") is not None
    return Finding(
        id=identity,
        node_name=node,
        subsystem=_member(Subsystem, text(tree, "subsystem")),
        severity=_member(Severity, text(tree, "severity")),
        state=State.OPEN,
        first_observed_ns=integer(tree, "first"),
        last_observed_ns=integer(tree, "last"),
        claim=claim,
        subsystems=tuple(_member(Subsystem, each) for each in texts(tree, "subsystems")),
        hypothesis=_part(Hypothesis, section(tree, "hypothesis")) if has_hypothesis else None,
        methods=_parts(Method, tree, "methods"),
        evidence=_parts(Evidence, tree, "evidence"),
        pods=_parts(Pod, tree, "pods"),
        subjects=_parts(Subject, tree, "subjects"),
        score_percent=integer(tree, "score"),
        confidence_percent=integer(tree, "confidence"),
        notes=texts(tree, "notes"),
        victims=texts(tree, "victims"),
    )


def impact_tree(impact: Impact) -> StateTree:
    """Return what a job loses."""
    return _tree(impact)


def impact_of(tree: StateTree, key: str) -> Impact | None:
    """Return the impact at ``key``, ``None`` if there is none."""
    return None if tree.get(key) is None else _part(Impact, section(tree, key))


def _tree(part: object) -> dict[str, StateValue]:
    return {name: getattr(part, name) for name in getattr(part, "__slots__", ())}


def _parts(kind: type[_Part], tree: StateTree, key: str) -> tuple[_Part, ...]:
    return tuple(_part(kind, each) for each in sections(tree, key))


def _part(kind: type[_Part], tree: StateTree) -> _Part:
    """Return a dataclass of texts and numbers; fields that a newer version added are missing."""
    values = {
        each.name: _READERS[str(each.type)](tree, each.name)
        for each in fields(kind)
        if each.name in tree
    }
    try:
        return kind(**values)
    except TypeError as error:
        raise StateError(f"a part of a finding cannot be read: {error}") from None


def _member(enum: type[_Enum], value: str) -> _Enum:
    try:
        return enum(value)
    except ValueError as error:
        raise StateError(str(error)) from None


def _flag(tree: StateTree, key: str) -> bool:
    return tree[key] is True


# the types of the fields, as the dataclasses write them
_READERS: dict[str, Callable[[StateTree, str], Any]] = {
    "str": text,
    "int": lambda tree, key: integer(tree, key, least=-(2**63)),
    "float": number,
    "bool": _flag,
    "Confidence": lambda tree, key: _member(Confidence, text(tree, key)),
}
