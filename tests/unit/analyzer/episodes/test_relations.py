"""Which case a signature or a score belongs to: symptoms, causes, what the ledger measures."""

from __future__ import annotations

import pytest

from reveal_analyzer.hypotheses.signature_matcher import Harmed, SignatureMatch
from reveal_contract.finding import FindingChange
from support.case_clock import (
    BLOCKED,
    CPU,
    LOSS,
    MEMORY,
    NETWORK,
    PRESSURE,
    RULES,
    STORAGE,
    Clock,
)


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
    """Contention can be an effect of taken time: not if it began first."""
    taken = SignatureMatch(RULES["CPUTakenByNeighbor"], (), "a", 5e8, (Harmed("b", 0.4),))
    crowded = SignatureMatch(RULES["CPUContention"], (), "", 5e8)
    crowded_first, together = Clock(RULES.values()), Clock(RULES.values())
    crowded_first.run(10, sustained=[crowded])
    changes = crowded_first.run(20, sustained=[crowded, taken])
    assert [(change, case.rules) for change, case in changes] == [
        (FindingChange.OPENED, {"CPUTakenByNeighbor"})
    ]
    together.run(3, sustained=[crowded])
    together.run(20, sustained=[crowded, taken])
    assert together.changes_of(FindingChange.OPENED) == [(0, CPU)]


@pytest.mark.parametrize("cause", ["CPUTakenByNeighbor", "CPUContention", "CPUQuotaThrottling"])
@pytest.mark.parametrize("is_first", [True, False])
def test_who_waits_for_a_cpu_loses_no_packets(cause: str, is_first: bool) -> None:
    harmed = (Harmed("b", 0.06),) if cause == "CPUTakenByNeighbor" else ()
    waits = SignatureMatch(RULES[cause], (), "a", 6e7, harmed)
    clock, first = Clock(RULES.values()), waits if is_first else LOSS
    clock.run(3, sustained=[first])
    clock.run(20, sustained=[waits, LOSS])
    clock.run(20, sustained=[LOSS])
    opened = clock.changes_of(FindingChange.OPENED)
    assert [subsystem for _, subsystem in opened].count(NETWORK) == 1
    assert NETWORK not in [subsystem for _, subsystem in clock.changes_of(FindingChange.RESOLVED)]


def test_a_symptom_follows_its_cause_within_seconds() -> None:
    soon, late = Clock(RULES.values()), Clock(RULES.values())
    soon.run(10, sustained=[PRESSURE])
    soon.run(20, sustained=[PRESSURE, BLOCKED])
    assert soon.changes_of(FindingChange.OPENED) == [(0, MEMORY)]
    late.run(300, sustained=[PRESSURE])
    late.run(20, sustained=[PRESSURE, BLOCKED])
    assert late.changes_of(FindingChange.OPENED) == [(0, MEMORY), (300, STORAGE)]


def test_a_symptom_that_comes_and_goes_from_the_onset_on_belongs_to_its_cause() -> None:
    clock = Clock(RULES.values())
    clock.run(2, sustained=[PRESSURE])
    for _ in range(5):
        clock.run(1, sustained=[PRESSURE], present=[BLOCKED])
        clock.run(9, sustained=[PRESSURE])
    clock.run(5, sustained=[PRESSURE, BLOCKED])
    assert clock.changes_of(FindingChange.OPENED) == [(0, MEMORY)]


def test_a_symptom_that_was_absent_for_long_has_another_cause_when_it_comes_back() -> None:
    clock = Clock(RULES.values())
    clock.run(2, sustained=[PRESSURE])
    clock.run(5, sustained=[PRESSURE, BLOCKED])
    clock.run(60, sustained=[PRESSURE])
    clock.run(5, sustained=[PRESSURE, BLOCKED])
    assert clock.changes_of(FindingChange.OPENED) == [(0, MEMORY), (67, STORAGE)]


def test_the_signature_of_a_symptom_outlives_its_cause_as_a_case_of_its_own() -> None:
    clock = Clock(RULES.values())
    clock.run(10, sustained=[PRESSURE])
    clock.run(5, sustained=[PRESSURE, BLOCKED])
    clock.run(30, sustained=[BLOCKED])
    assert clock.changes_of(FindingChange.RESOLVED) == [(24, MEMORY)]
    assert clock.changes_of(FindingChange.OPENED) == [(0, MEMORY), (24, STORAGE)]
