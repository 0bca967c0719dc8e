"""Findings with a selection: evidence from kept metrics; scores from all by default."""

from __future__ import annotations

from collections.abc import Sequence

from reveal_analyzer.node import NodeAnalyzer
from reveal_analyzer.offline import judgement
from reveal_analyzer.selection.applied import NO_SELECTION, AppliedSelection
from reveal_analyzer.selection.file import DroppedMetric, KeptMetric, Selection
from reveal_contract.finding import Evidence, Finding
from reveal_contract.metric import Subsystem
from reveal_contract.settings import AnalyzerSettings
from support.synthetic_node import TABLE, Node

SETTINGS = AnalyzerSettings(warmup_seconds=60)
WAITING = {
    "cpu.pressure.some": 9.5e5, "cpu.procs_running": 9.0, "cpu.user": 200.0,
    "cpu.user{0}": 100.0, "cpu.user{1}": 100.0, "cpu.context_switches": 4000.0,
}  # fmt: skip
PRESSURE, RUNNING, SWITCHES = "cpu.pressure.some", "cpu.procs_running", "cpu.context_switches"


def selection_of(by: str, *gone: str, scored: bool = False) -> AppliedSelection:
    dropped = tuple(DroppedMetric(name, by, 0.9) for name in gone)
    return AppliedSelection(Selection(0.5, (KeptMetric(by, ""),), dropped), scored=scored)


def judged(selected: AppliedSelection) -> NodeAnalyzer:
    """An analyzer that is ten seconds into tasks waiting for CPUs."""
    node, analyzer = Node(), NodeAnalyzer("n1", SETTINGS, selection=selected)
    for second in range(100):
        analyzer.analyze(node.slice(WAITING if second >= 90 else None), TABLE)
    return analyzer


def found(selected: AppliedSelection) -> Finding:
    finding = judged(selected).finish()[-1].finding
    assert finding.subsystem is Subsystem.CPU
    return finding


def of(name: str, evidence: Sequence[Evidence]) -> Evidence | None:
    return next((row for row in evidence if row.metric == name), None)


def test_dropped_metrics_are_reported_once_by_their_representative() -> None:
    plain, selected = found(NO_SELECTION).evidence, found(selection_of(PRESSURE, RUNNING)).evidence
    assert of(RUNNING, plain) is not None
    assert of(RUNNING, selected) is None
    assert of(PRESSURE, selected) == of(PRESSURE, plain)
    assert sum(row.metric == PRESSURE for row in selected) == 1


def test_a_representative_has_its_own_values() -> None:
    row = of(SWITCHES, found(selection_of(SWITCHES, PRESSURE)).evidence)
    assert row is not None
    assert 3900 < float(row.value) < 4100
    assert float(row.baseline) < 400
    assert (row.feature, row.direction) == ("mean", "up")


def test_nothing_else_of_the_finding_changes() -> None:
    plain, selected = found(NO_SELECTION), found(selection_of(PRESSURE, RUNNING))
    for name in ("id", "severity", "claim", "hypothesis", "score_percent", "methods"):
        assert getattr(plain, name) == getattr(selected, name)


def test_scores_leave_out_what_went_only_when_asked() -> None:
    plain = judged(NO_SELECTION).status().over[Subsystem.CPU]
    assert plain > 1
    assert judged(selection_of(SWITCHES, PRESSURE, RUNNING)).status().over[Subsystem.CPU] == plain
    few = (
        judged(selection_of(SWITCHES, PRESSURE, RUNNING, scored=True)).status().over[Subsystem.CPU]
    )
    assert few < 1


def test_offline_mode_applies_the_selection_too() -> None:
    node = Node()
    slices = [
        (node.slice(WAITING if 120 <= second < 134 else None), node.table) for second in range(220)
    ]
    (plain,) = judgement.judge(slices, SETTINGS)
    (finding,) = judgement.judge(slices, SETTINGS, selection=selection_of(PRESSURE, RUNNING))
    assert of(RUNNING, plain.evidence) is not None
    assert of(RUNNING, finding.evidence) is None
    every = selection_of(SWITCHES, PRESSURE, RUNNING, scored=True)
    assert judgement.judge(slices, SETTINGS, selection=every) == []
