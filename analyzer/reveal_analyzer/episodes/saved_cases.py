"""Open cases as a state tree, so that they go on after the analyzer has been restarted.

Rules are saved by name and columns by metric, instance and feature.  Of the trace only evidence is
saved: its columns and their means over the last active minute and the worst ten seconds.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from typing import TypeVar

import numpy as np

from reveal_analyzer.episodes.case import Case
from reveal_analyzer.episodes.claims import Claims, ColumnSet
from reveal_analyzer.episodes.column_state import restore_columns, save_columns
from reveal_analyzer.episodes.episode import Episode
from reveal_analyzer.episodes.lifecycle import Lifecycle, Phase
from reveal_analyzer.episodes.trace import Trace
from reveal_analyzer.hypotheses.model import HypothesisRule
from reveal_analyzer.hypotheses.signature_matcher import CaseKey, SignatureMatch
from reveal_analyzer.live.reference import ColumnReference
from reveal_analyzer.state.records import restore_record, save_record
from reveal_analyzer.state.tree import (
    StateError,
    StateTree,
    array,
    flag,
    integer,
    named_sections,
    number,
    section,
    sections,
    text,
    texts,
)
from reveal_analyzer.subjects.case_subjects import CaseSubjects
from reveal_analyzer.subjects.finding_subjects import NamedSubjects
from reveal_analyzer.subjects.history import MOST_ACTIVE_S
from reveal_analyzer.subjects.reference import SubjectReference
from reveal_contract.finding import Severity
from reveal_contract.metric import Subsystem

Rules = Mapping[str, HypothesisRule]
_COLUMNS, _FEWEST_COLUMNS = 192, 8  # of evidence: of all cases together, and of each
_Member = TypeVar("_Member", bound=StrEnum)


def save_all(cases: Sequence[Case]) -> StateTree:
    """Return open cases as a state tree.

    The references of subjects are a section of their own, which may be left out: then the last
    answer stays.  The more cases are open, the fewer columns are saved of each.
    """
    most = max(_FEWEST_COLUMNS, _COLUMNS // max(len(cases), 1))
    subjects = {
        str(index): case.subjects.save() for index, case in enumerate(cases) if case.subjects
    }
    return {"open": [save(case, most) for case in cases], "subjects": subjects}


def restore_all(tree: StateTree, rules: Rules) -> list[Case]:
    """Return the cases of a state tree; raises ``StateError`` as ``restore``."""
    cases = [restore(case, rules) for case in sections(tree, "open")]
    subjects = named_sections(tree, "subjects") if "subjects" in tree else {}
    for index, case in enumerate(cases):
        if str(index) in subjects:
            case.subjects = CaseSubjects.restore(subjects[str(index)])
    return cases


def save(case: Case, most: int = 128) -> StateTree:
    """Return an open case as a state tree, with at most ``most`` columns of evidence."""
    state = case.lifecycle
    moved = _heaviest(case, most)
    kept = {*moved, *case.condition_labels()}
    return {
        "episode": _save_episode(case.episode),
        "trace": case.trace.save(kept, most),
        "notes": list(case.notes),
        "lifecycle": {
            "phase": state.phase.value, "calm_s": state.calm_s, "unobserved_s": state.unobserved_s,
        },
        "keys": [list(key) for key in sorted(case.keys)],
        "explained": [list(key) for key in sorted(case.explained)],
        "moved": moved,
        "described": list(case.described.labels),
        "claims": case.claims.save(),
        "reference": _save_reference(case.reference, kept) if case.reference else None,
        "learned": case.is_learned,
        "related": list(case.related),
        "severity": case.reported_severity.value if case.reported_severity else "",
        "named": save_record(case.subjects.named) if case.subjects else None,
        "active_ns": np.array(case.active, np.int64),
    }  # fmt: skip


def restore(tree: StateTree, rules: Rules) -> Case:
    """Return the case of a state tree.

    Raises ``StateError`` if the tree does not fit, or names a metric or rule that is not known.
    """
    case = Case(_restore_episode(section(tree, "episode"), rules))
    case.trace = Trace.restore(section(tree, "trace"))
    case.notes = texts(tree, "notes")
    lifecycle = section(tree, "lifecycle")
    case.lifecycle = Lifecycle(
        _member(Phase, text(lifecycle, "phase")),
        integer(lifecycle, "calm_s"),
        integer(lifecycle, "unobserved_s"),
    )
    case.keys = {CaseKey(*key) for key in _pairs(tree, "keys", 2) if key[0] in rules}
    case.explained = {CaseKey(*key) for key in _pairs(tree, "explained", 2)}
    case.moved, case.described = (
        ColumnSet(texts(tree, "moved")),
        ColumnSet(texts(tree, "described")),
    )
    case.claims = Claims.restore(section(tree, "claims"))
    case.is_learned = flag(tree, "learned")
    case.related = dict.fromkeys(texts(tree, "related"))
    if tree.get("reference") is not None:
        case.reference = _restore_reference(section(tree, "reference"))
    if tree.get("named") is not None:
        named = restore_record(NamedSubjects, section(tree, "named"))
        case.subjects = CaseSubjects(case.episode.first_ns, SubjectReference(), named=named)
        case.reported_culprits = named.identities
    reported = text(tree, "severity")
    case.reported_severity = _member(Severity, reported) if reported else None
    active = array(tree, "active_ns", np.int64, (None,))
    case.active.extend(active[-MOST_ACTIVE_S:].tolist())
    return case


def _save_episode(episode: Episode) -> StateTree:
    return {
        "first_ns": episode.first_ns,
        "last_ns": episode.last_ns,
        "opened_ns": episode.opened_ns,
        "subsystem": episode.subsystem.value,
        "subsystems": [subsystem.value for subsystem in episode.subsystems],
        "weights": {subsystem.value: weight for subsystem, weight in episode.weights.items()},
        "peak": float(episode.peak),
        "matches": [_save_match(match) for match in episode.matches.values()],
        "present_ns": dict(episode.present_ns),
        "salt": episode.salt,
    }


def _restore_episode(tree: StateTree, rules: Rules) -> Episode:
    weights, present = section(tree, "weights"), section(tree, "present_ns")
    matches = [_restore_match(match, rules) for match in sections(tree, "matches")]
    return Episode(
        first_ns=integer(tree, "first_ns"),
        last_ns=integer(tree, "last_ns"),
        opened_ns=integer(tree, "opened_ns"),
        subsystem=_member(Subsystem, text(tree, "subsystem")),
        subsystems=[_member(Subsystem, name) for name in texts(tree, "subsystems")],
        weights={_member(Subsystem, name): number(weights, name) for name in weights},
        peak=number(tree, "peak"),
        matches={match.rule.name: match for match in matches},
        present_ns={name: integer(present, name) for name in present},
        salt=text(tree, "salt"),
    )


def _save_match(match: SignatureMatch) -> StateTree:
    return {
        "rule": match.rule.name,
        "instance": match.instance,
        "columns": save_columns(match.columns),
        "value": float(np.nan_to_num(match.value)),
    }


def _restore_match(tree: StateTree, rules: Rules) -> SignatureMatch:
    name = text(tree, "rule")
    if name not in rules:
        raise StateError(f"there is no hypothesis {name!r} any more")
    columns = tuple(restore_columns(texts(tree, "columns")))
    return SignatureMatch(rules[name], columns, text(tree, "instance"), number(tree, "value"))


def _heaviest(case: Case, most: int) -> list[str]:
    """Return the columns that moved, at most ``most`` of them by their part in the harm."""
    columns = zip(case.trace.stats.columns, case.trace.weights.tolist(), strict=True)
    weights = {column.label: weight for column, weight in columns}
    return sorted(case.moved.labels, key=lambda label: -weights.get(label, 0.0))[:most]


def _save_reference(whole: ColumnReference, kept: Collection[str]) -> StateTree:
    chosen = [index for index, label in enumerate(whole.labels) if label in kept]
    reference = whole.select(np.array(chosen, np.intp))
    return {
        "labels": list(reference.labels),
        "bounds": reference.bounds,
        "own_excess": reference.own_excess.astype(np.float16),
        "highest": reference.highest.astype(np.float32),
        "baseline": reference.baseline.astype(np.float32),
        "thresholds": reference.thresholds,
    }


def _restore_reference(tree: StateTree) -> ColumnReference:
    labels = texts(tree, "labels")
    width = len(labels)
    return ColumnReference(
        labels,
        array(tree, "bounds", np.float32, (None, 4, width)),
        array(tree, "own_excess", np.float32, (2, width)),
        array(tree, "highest", np.float64, (width,)),
        array(tree, "baseline", np.float64, (width,)),
        array(tree, "thresholds", np.float64, (len(Subsystem),)),
    )


def _pairs(tree: StateTree, key: str, length: int) -> list[tuple[str, ...]]:
    """Return the tuples of texts at ``key``, all of one length."""
    rows = tree.get(key)
    if not isinstance(rows, list | tuple):
        raise StateError(f"{key!r} is not a list")
    found = [tuple(row) for row in rows if isinstance(row, list | tuple)]
    parts_fit = all(isinstance(part, str) for row in found for part in row)
    if len(found) < len(rows) or not parts_fit or any(len(row) != length for row in found):
        raise StateError(f"{key!r} is not a list of {length} texts each")
    return [tuple(str(part) for part in row) for row in found]


def _member(kind: type[_Member], value: str) -> _Member:
    try:
        return kind(value)
    except ValueError as error:
        raise StateError(f"{value!r} is no {kind.__name__}") from error
