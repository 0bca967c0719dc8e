"""A finding separates the cause from its symptoms, and the culprit from its victims."""

from __future__ import annotations

import numpy as np
import pytest

from reveal_analyzer.derive.columns import Column, column_plan
from reveal_analyzer.episodes import attribution
from reveal_analyzer.episodes.attribution import EpisodeRecord
from reveal_analyzer.episodes.episode import Episode
from reveal_analyzer.episodes.trace import ObservedSecond, Trace
from reveal_analyzer.hypotheses.loader import load
from reveal_analyzer.hypotheses.signature_matcher import SignatureMatch
from reveal_analyzer.subjects.case_subjects import CaseSubjects
from reveal_analyzer.subjects.history import SubjectHistory
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.finding import Finding, State, finding_id
from reveal_contract.metric import Kind, Subsystem
from reveal_contract.time_units import NS_PER_SECOND
from support.subject_timeline import SubjectTimeline, cpus, ns, pod

RULES = {rule.name: rule for rule in load()}
SWAPPING = (
    "memory.vm.workingset_refault_anon", "memory.vm.pswpin", "memory.vm.pswpout",
    "memory.pressure.some",
)  # fmt: skip
SYMPTOMS = ("cpu.interrupts.external", "memory.tlb_shootdowns")
OTHER = ("cpu.steal",)
TABLE = ChannelTable(
    tuple(Channel(name, "", Kind.COUNTER) for name in (*SYMPTOMS, *OTHER, *SWAPPING)), ()
)
PLAN = column_plan(TABLE)


def column(metric: str) -> Column:
    return next(c for c in PLAN.columns if c.metric.name == metric)


def signature(name: str) -> SignatureMatch:
    certain = RULES[name].certain
    assert certain is not None
    first, *_ = (*certain.conditions, *certain.any)
    return SignatureMatch(RULES[name], (column(first.metric),))


def finding_of(matched: list[str], moved: dict[str, float]) -> Finding:
    """The finding of an episode of the CPU; ``moved`` is the weighted excess by metric."""
    width = len(PLAN.columns)
    weight = np.array([moved.get(c.metric.name, 0.0) for c in PLAN.columns])
    excess = np.stack([weight, np.zeros(width)])
    trace = Trace()
    for second in range(5):
        values = 1e4 * (weight > 0)
        observed = ObservedSecond(
            second * NS_PER_SECOND, PLAN, values, excess, weight, np.zeros(width)
        )
        trace.add(observed)
    matches = {name: signature(name) for name in matched}
    episode = Episode(0, 5 * NS_PER_SECOND, Subsystem.CPU, [Subsystem.CPU], matches=matches)
    history = SubjectHistory()
    record = EpisodeRecord(
        "n1", episode, trace, (), State.OPEN, notes=("learned under load",),
        subjects=CaseSubjects.begin(history, 0),
    )  # fmt: skip
    return attribution.finding(
        record, attribution.attribute(record, list(RULES.values()), history), history
    )


def test_the_cause_is_named_with_its_own_evidence_before_its_symptoms() -> None:
    moved = {"cpu.interrupts.external": 40.0, "memory.tlb_shootdowns": 30.0, "cpu.steal": 5.0}
    matched = ["InterruptPressure", "Swapping"]
    finding = finding_of(matched, moved | dict.fromkeys(SWAPPING, 12.0))
    assert finding.hypothesis is not None
    assert finding.hypothesis.name == "Swapping"
    assert finding.subsystem is Subsystem.MEMORY
    assert finding.subsystems == (Subsystem.CPU, Subsystem.MEMORY)
    assert finding.id == finding_id(
        "n1", Subsystem.CPU, 0
    )  # that of the subsystem in which it opened
    listed = [evidence.metric for evidence in finding.evidence]
    assert listed[:4] == [item.metric for item in RULES["Swapping"].expects]
    assert listed[4:] == [*OTHER, *SYMPTOMS]
    assert finding.notes == (
        "learned under load",
        "also observed, as its symptom: InterruptPressure",
    )


def test_a_signature_alone_is_its_own_cause() -> None:
    finding = finding_of(["InterruptPressure"], {"cpu.interrupts.external": 40.0})
    assert finding.hypothesis is not None
    assert finding.hypothesis.name == "InterruptPressure"
    assert finding.subsystem is Subsystem.CPU
    assert finding.notes == ("learned under load",)
    assert finding.claim.startswith("10 k interrupts a second")


@pytest.mark.parametrize(("baseline", "named"), [(2e4, "ml/gone"), (0.0, "")])
def test_who_does_less_is_named_only_where_the_evidence_fell(baseline: float, named: str) -> None:
    node = SubjectTimeline(pod("trainer"), pod("gone"))
    node.play(60, cpus(trainer=1.0, gone=3.0))
    node.play(12, cpus(trainer=1.0, gone=0.0))
    weight = np.array([20.0 * (c.metric.name in OTHER) for c in PLAN.columns])
    zeros, values = np.zeros(weight.size), 1e4 * (weight > 0)
    excess, before = np.stack([zeros, weight]), np.full(weight.size, baseline)
    trace, active = Trace(), [ns(second) for second in range(60, 72)]
    for start_ns in active:
        trace.add(ObservedSecond(start_ns, PLAN, values, excess, weight, before))
    record = EpisodeRecord(
        "n1", Episode(ns(60), ns(72), Subsystem.CPU, [Subsystem.CPU]), trace, (), State.OPEN,
        subjects=node.case(60), active=active,
    )  # fmt: skip
    assert attribution.attribute(record, [], node.history).culprits.first == named
