"""Which case a signature or a score belongs to: symptoms, causes, what the ledger measures."""

from __future__ import annotations

from reveal_analyzer.hypotheses.signature_matcher import Harmed, SignatureMatch
from reveal_contract.finding import FindingChange
from support.case_clock import CPU, LOSS, NETWORK, RETRANSMITTED, RULES, THROTTLED, Clock, match_of


def test_each_throttled_pod_is_a_case_of_its_own_unless_they_began_together() -> None:
    first, second = (
        SignatureMatch(RULES["CPUQuotaThrottling"], (), pod, 5e8) for pod in ("a", "b")
    )
    apart, together = Clock(RULES.values()), Clock(RULES.values())
    apart.run(30, sustained=[first])
    apart.run(30, sustained=[first, second])
    apart.run(30, sustained=[second])
    assert apart.changes_of(FindingChange.OPENED) == [(0, CPU), (30, CPU)]
    assert apart.changes_of(FindingChange.RESOLVED) == [(69, CPU)]
    together.run(1, sustained=[first])
    together.run(30, sustained=[first, second])
    assert together.changes_of(FindingChange.OPENED) == [(0, CPU)]


def test_what_the_ledger_measures_names_a_score_that_began_with_it() -> None:
    """The score may open first, with a guess at its cause."""
    taken = SignatureMatch(RULES["CPUTakenByNeighbor"], (), "a", 5e8, (Harmed("b", 0.4),))
    together, apart = Clock(RULES.values()), Clock(RULES.values())
    together.run(2, {CPU: 2.0})
    together.run(9, {CPU: 2.0}, present=[taken])
    changes = together.run(20, {CPU: 2.0}, sustained=[taken])
    assert together.changes_of(FindingChange.OPENED) == [(4, CPU)]
    assert [case.rules for _, case in changes] == [{"CPUTakenByNeighbor"}]
    apart.run(8, {CPU: 2.0})
    apart.run(5, {CPU: 2.0}, present=[taken])
    apart.run(20, {CPU: 2.0}, sustained=[taken])
    assert apart.changes_of(FindingChange.OPENED) == [(4, CPU), (13, CPU)]


def test_what_the_ledger_measures_later_does_not_explain_what_was_there() -> None:
    """Loss can be an effect of taken time: not if it began first."""
    taken = SignatureMatch(RULES["CPUTakenByNeighbor"], (), "a", 5e8, (Harmed("b", 0.4),))
    loss_first, together = Clock(RULES.values()), Clock(RULES.values())
    loss_first.run(10, sustained=[LOSS])
    changes = loss_first.run(20, sustained=[LOSS, taken])
    assert [(change, case.rules) for change, case in changes] == [
        (FindingChange.OPENED, {"CPUTakenByNeighbor"})
    ]
    together.run(3, sustained=[LOSS])
    together.run(20, sustained=[LOSS, taken])
    assert together.changes_of(FindingChange.OPENED) == [(0, NETWORK)]


def test_a_symptom_follows_its_cause_within_seconds() -> None:
    throttled = SignatureMatch(RULES["CPUQuotaThrottling"], (), "a", 5e8)
    loss = match_of("PacketLoss", RETRANSMITTED)
    soon, late = Clock(RULES.values()), Clock(RULES.values())
    soon.run(10, sustained=[throttled])
    soon.run(20, sustained=[throttled, loss])
    assert soon.changes_of(FindingChange.OPENED) == [(0, CPU)]
    late.run(300, sustained=[throttled])
    late.run(20, sustained=[throttled, loss])
    assert late.changes_of(FindingChange.OPENED) == [(0, CPU), (300, NETWORK)]


def test_a_symptom_that_comes_and_goes_from_the_onset_on_belongs_to_its_cause() -> None:
    throttled, loss, clock = THROTTLED, LOSS, Clock(RULES.values())
    clock.run(2, sustained=[throttled])
    for _ in range(5):
        clock.run(1, sustained=[throttled], present=[loss])
        clock.run(9, sustained=[throttled])
    clock.run(5, sustained=[throttled, loss])
    assert clock.changes_of(FindingChange.OPENED) == [(0, CPU)]


def test_a_symptom_that_was_absent_for_long_has_another_cause_when_it_comes_back() -> None:
    throttled, loss, clock = THROTTLED, LOSS, Clock(RULES.values())
    clock.run(2, sustained=[throttled])
    clock.run(5, sustained=[throttled, loss])
    clock.run(60, sustained=[throttled])
    clock.run(5, sustained=[throttled, loss])
    assert clock.changes_of(FindingChange.OPENED) == [(0, CPU), (67, NETWORK)]


def test_the_signature_of_a_symptom_outlives_its_cause_as_a_case_of_its_own() -> None:
    throttled, loss, clock = THROTTLED, LOSS, Clock(RULES.values())
    clock.run(10, sustained=[throttled])
    clock.run(5, sustained=[throttled, loss])
    clock.run(30, sustained=[loss])
    assert clock.changes_of(FindingChange.RESOLVED) == [(24, CPU)]
    assert clock.changes_of(FindingChange.OPENED) == [(0, CPU), (24, NETWORK)]
