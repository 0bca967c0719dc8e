"""Dataclasses come back from a tree as they were; a tree that does not fit is refused."""

from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveal_analyzer.state.codec import Position, SavedState, decode, encode
from reveal_analyzer.state.records import restore_record, save_record
from reveal_analyzer.state.tree import StateError, StateValue
from reveal_contract.finding import (
    Confidence,
    Evidence,
    Finding,
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
from support.property_tests import examples

FINDING = Finding(
    id="cpu-0123456789",
    node_name="n1",
    subsystem=Subsystem.CPU,
    severity=Severity.HIGH,
    state=State.OPEN,
    first_observed_ns=1_700_000_000_000_000_000,
    last_observed_ns=1_700_000_009_000_000_000,
    claim="It is slow.",
    subsystems=(Subsystem.CPU, Subsystem.STORAGE),
    hypothesis=Hypothesis("CPUThrottling", 90, "Raise the limit."),
    methods=(Method("ZScore", True, 80),),
    evidence=(Evidence("cpu.user", "mean", "", "3", "1", "ns/s", "up"),),
    pods=(Pod("team-a", "job-0", "u1", "main", 80, 300, Confidence.MEASURED),),
    subjects=(Subject("Unit", "x.service", 20, 100, Confidence.INFERRED),),
    score_percent=70,
    confidence_percent=60,
    notes=("a note",),
    impact=Impact("job", 12.5, 11.0, 14.0, 1125.0, 1000.0, 1, 30, "cpu", 90),
    peers=Peers(8, "1", "2"),
    victims=("team-b/job-1",),
)
SAVED = save_record(FINDING)


def through_bytes(tree: dict[str, StateValue]) -> Any:
    return decode(encode(SavedState(Position("n1", b"", 0, 0), 0, tree))).tree


def test_a_finding_comes_back_as_it_was() -> None:
    assert restore_record(Finding, through_bytes(SAVED)) == FINDING
    bare = replace(FINDING, hypothesis=None, impact=None, peers=None, pods=(), resolved_ns=7)
    assert restore_record(Finding, through_bytes(save_record(bare))) == bare


def test_a_field_with_a_default_may_be_missing_and_others_may_not() -> None:
    """The state of an earlier version."""
    tree = {key: value for key, value in SAVED.items() if key not in ("victims", "impact")}
    assert restore_record(Finding, tree) == replace(FINDING, victims=(), impact=None)
    del tree["claim"]
    with pytest.raises(StateError, match="claim"):
        restore_record(Finding, tree)


_UNFIT = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5),
    st.lists(st.integers(), min_size=1, max_size=2),
    st.dictionaries(st.text(max_size=5), st.integers(), max_size=2),
)  # fmt: skip


@given(st.sampled_from([each.name for each in fields(Finding)]), _UNFIT)
@examples(300)
def test_a_field_that_does_not_fit_raises_only_state_errors(name: str, value: Any) -> None:
    try:
        finding = restore_record(Finding, {**SAVED, name: value})
    except StateError:
        return
    assert restore_record(Finding, save_record(finding)) == finding


def test_an_unknown_word_of_an_enumeration_is_refused() -> None:
    with pytest.raises(StateError, match="Subsystem"):
        restore_record(Finding, {**SAVED, "subsystem": "Disk"})
