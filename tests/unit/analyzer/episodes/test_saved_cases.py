"""Open cases as a state tree: the same after a restart, small however many are open."""

from __future__ import annotations

import pytest

from reveal_analyzer.node import OPTIONAL_STATE, NodeAnalyzer
from reveal_analyzer.state.codec import MAX_BYTES, Position, SavedState, decode, encode
from reveal_analyzer.state.tree import StateError, StateTree, section, sections
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.finding import Finding
from reveal_contract.metric import Kind
from reveal_contract.settings import AnalyzerSettings
from support.synthetic_node import TABLE, Node

PODS = [f"/pod{number}" for number in range(24)]
MANY = ChannelTable(
    (*TABLE.fast, *(Channel("cpu.subject.throttled_time", pod, Kind.COUNTER) for pod in PODS)),
    TABLE.slow,
)


def analyzer() -> NodeAnalyzer:
    return NodeAnalyzer("n1", AnalyzerSettings(warmup_seconds=60))


def throttled(count: int) -> dict[str, float]:
    return {f"cpu.subject.throttled_time{{{pod}}}": 5e8 for pod in PODS[:count]}


def stored(tree: StateTree) -> StateTree:
    """The tree after it was written and read."""
    state = SavedState(Position("n1", b"b" * 16, 1, 1), 1, tree)
    data = encode(state, OPTIONAL_STATE)
    assert len(data) <= MAX_BYTES
    return decode(data).tree


def findings(judge: NodeAnalyzer) -> dict[str, Finding]:
    return {update.finding.id: update.finding for update in judge.finish()}


def test_open_findings_are_the_same_after_a_restart() -> None:
    judge, node = analyzer(), Node(MANY)
    for second in range(120):
        # one pod after the other, far enough apart to be causes of their own
        changed = throttled(min(max(second - 60, 0) // 10, 4))
        judge.analyze(node.slice(changed), MANY)
    again = analyzer()
    again.restore(stored(judge.save()))
    before, after = findings(judge), findings(again)
    assert len(before) == 4
    assert before.keys() == after.keys()
    for name, finding in before.items():
        other = after[name]
        assert (other.claim, other.severity, other.notes) == (
            finding.claim, finding.severity, finding.notes
        )  # fmt: skip
        # no second of the case is in memory any more: the last answer stays
        assert [each.name for each in other.subjects] == [each.name for each in finding.subjects]


def test_a_case_of_an_unknown_rule_or_metric_is_refused() -> None:
    judge, node = analyzer(), Node(MANY)
    for _ in range(10):
        judge.analyze(node.slice(throttled(1)), MANY)
    tree = judge.save()
    without_rules = NodeAnalyzer("n1", AnalyzerSettings(warmup_seconds=60), rules=[])
    with pytest.raises(StateError):
        without_rules.restore(tree)


def test_an_unknown_phase_is_refused() -> None:
    judge, node = analyzer(), Node(MANY)
    for _ in range(10):
        judge.analyze(node.slice(throttled(1)), MANY)
    cases = section(judge.save(), "cases")
    (case,) = sections(cases, "open")
    lifecycle = {**section(case, "lifecycle"), "phase": "Dormant"}
    with pytest.raises(StateError, match="Dormant"):
        analyzer().restore(
            {**judge.save(), "cases": {**cases, "open": [{**case, "lifecycle": lifecycle}]}}
        )
