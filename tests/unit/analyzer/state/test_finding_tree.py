"""Findings and impacts as trees: nothing is lost, and what does not fit is refused."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from reveal_analyzer.state.finding_tree import finding_of, finding_tree, impact_of, impact_tree
from reveal_analyzer.state.tree import StateError
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

IMPACT = Impact("/train", 12.3, 11.0, 13.6, 505.4, 450.0, 1_700_000_000_123_456_789, 60, "cpu", 88)
FINDING = Finding(
    "cpu-1", "n1", Subsystem.CPU, Severity.HIGH, State.OPEN, 17 * 10**17, 17 * 10**17 + 5,
    "observed with it: busy", subsystems=(Subsystem.CPU, Subsystem.MEMORY),
    hypothesis=Hypothesis("CPUContention", 80, "look"),
    methods=(Method("zscore", True, 93), Method("forest", False, 40)),
    evidence=(Evidence("cpu.pressure.some", "level", "", "0.5", "0", "ns/s", "up", "psi"),),
    pods=(Pod("ml", "train-0", "u-1", "", 40, -3, Confidence.MEASURED),),
    subjects=(Subject("Unit", "cron.service", 10, 5, Confidence.INFERRED),),
    score_percent=12, confidence_percent=34, notes=("a note",), victims=("ml/eval-0",),
)  # fmt: skip


def test_a_finding_comes_back_as_it_was() -> None:
    assert finding_of({"finding": finding_tree(FINDING)}, "finding") == FINDING
    bare = replace(FINDING, hypothesis=None, methods=(), evidence=(), pods=(), subjects=())
    assert finding_of({"finding": finding_tree(bare)}, "finding") == bare


def test_an_impact_comes_back_as_it_was() -> None:
    assert impact_of({"impact": impact_tree(IMPACT)}, "impact") == IMPACT
    assert impact_of({"impact": None}, "impact") is None
    assert impact_of({}, "impact") is None


def test_a_field_that_an_older_version_did_not_save_has_its_default() -> None:
    tree = dict(finding_tree(FINDING))
    evidence = FINDING.evidence[0]
    names = [each.name for each in fields(Evidence) if each.name != "known_as"]
    tree["evidence"] = [{name: getattr(evidence, name) for name in names}]
    found = finding_of({"finding": tree}, "finding")
    assert found.evidence == (replace(evidence, known_as=""),)


@pytest.mark.parametrize(
    "changed",
    [
        {"severity": "Extreme"},
        {"subsystem": "Sun"},
        {"first": "today"},
        {"pods": [{"namespace": "ml"}]},
        {"pods": [{"namespace": "ml", "share_percent": "many"}]},
        {"subjects": "none"},
        {"hypothesis": {"name": 4}},
    ],
)
def test_what_does_not_fit_is_refused(changed: dict[str, object]) -> None:
    tree = {**finding_tree(FINDING), **changed}
    with pytest.raises(StateError):
        finding_of({"finding": tree}, "finding")  # type: ignore[dict-item]
