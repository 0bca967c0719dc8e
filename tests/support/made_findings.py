"""Findings for tests, and strategies of any of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from reveal_contract.finding import (
    Confidence,
    Evidence,
    Finding,
    FindingChange,
    FindingKind,
    FindingScope,
    FindingUpdate,
    Hypothesis,
    Impact,
    Method,
    Peers,
    Pod,
    Severity,
    State,
    Subject,
)
from reveal_contract.metric import Subsystem

AT = 1_700_000_000_123_456_789
SECOND = 1_000_000_000


def finding(identity: str = "cpu-1", **other: Any) -> Finding:
    given: dict[str, Any] = {
        "node_name": "n1", "subsystem": Subsystem.CPU, "severity": Severity.MEDIUM,
        "state": State.OPEN, "first_seen_ns": AT, "last_seen_ns": AT + 5 * SECOND,
        "claim": "CPU is slow", "subsystems": (Subsystem.CPU,), **other,
    }  # fmt: skip
    return Finding(id=identity, **given)


def opened(identity: str = "cpu-1", **other: Any) -> FindingUpdate:
    return FindingUpdate(FindingChange.OPENED, finding(identity, **other))


def changed(identity: str = "cpu-1", **other: Any) -> FindingUpdate:
    return FindingUpdate(FindingChange.CHANGED, finding(identity, **other))


def resolved(identity: str = "cpu-1", **other: Any) -> FindingUpdate:
    over = {"state": State.RESOLVED, "resolved_ns": AT + 60 * SECOND, **other}
    return FindingUpdate(FindingChange.RESOLVED, finding(identity, **over))


def largest() -> Finding:
    """More than any analysis tells, all of it as long as it may be."""
    words = 'größer als <usual> & "quoted" \u0001 '
    return replace(
        finding(node_name="n" * 253, claim=words * 60),
        subsystems=tuple(Subsystem),
        hypothesis=Hypothesis("H" * 99, 300, words * 60),
        methods=tuple(Method(f"m{n}" * 40, True, 101) for n in range(9)),
        evidence=tuple(
            Evidence("m" * 200, "f" * 200, words * 20, "1" * 200, "2" * 200, "ns/s", "up", "k" * 99)
            for _ in range(30)
        ),
        pods=tuple(
            Pod("s" * 63, "p" * 253, "u" * 36, "c" * 63, 150, -150, Confidence.MEASURED)
            for _ in range(30)
        ),
        subjects=tuple(
            Subject("ProcessGroup", words * 20, 60, 55, Confidence.INFERRED) for _ in range(30)
        ),
        notes=(words * 20,) * 30,
        victims=(f"{'v' * 63}/{'w' * 253}",) * 30,
        peers=Peers(9, "0" * 200, "1" * 200),
        impact=Impact("j" * 400, 9.14, 8.04, 10.24, 1716.4, 1572.7, AT, 30, "c" * 200, 188),
        score_percent=1000,
        confidence_percent=-4,
    )


_TEXT = st.text(max_size=300)
_WORD = st.text(min_size=1, max_size=300)
_PERCENT = st.integers(-1000, 1000)
_TIME = st.integers(0, 4 * 10**18)
_SURE = st.sampled_from(Confidence)


def _many(one: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(one, max_size=14).map(tuple)


ANY_FINDING = st.builds(
    Finding,
    id=st.from_regex(r"[a-z]{1,10}-[0-9a-f]{10}", fullmatch=True),
    node_name=st.from_regex(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?", fullmatch=True),
    subsystem=st.sampled_from(Subsystem),
    severity=st.sampled_from(Severity),
    state=st.sampled_from(State),
    first_seen_ns=_TIME,
    last_seen_ns=_TIME,
    claim=_TEXT,
    scope=st.sampled_from(FindingScope),
    subsystems=_many(st.sampled_from(Subsystem)),
    hypothesis=st.none() | st.builds(Hypothesis, _WORD, _PERCENT, _TEXT),
    methods=_many(st.builds(Method, _WORD, st.booleans(), _PERCENT)),
    evidence=_many(
        st.builds(
            Evidence,
            _WORD,
            _TEXT,
            _TEXT,
            _TEXT,
            _TEXT,
            _TEXT,
            st.sampled_from(["up", "down"]),
            _TEXT,
        )
    ),
    pods=_many(st.builds(Pod, _TEXT, _TEXT, _TEXT, _TEXT, _PERCENT, _PERCENT, _SURE)),
    subjects=_many(st.builds(Subject, _TEXT, _TEXT, _PERCENT, _PERCENT, _SURE)),
    score_percent=_PERCENT,
    confidence_percent=_PERCENT,
    resolved_ns=st.none() | _TIME,
    notes=_many(_TEXT),
    kind=st.sampled_from(FindingKind),
    peers=st.none() | st.builds(Peers, st.integers(0, 10**6), _TEXT, _TEXT),
    victims=_many(_TEXT),
)
