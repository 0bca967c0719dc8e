"""Cases of a node: suspected, opened, extended, lasting, side by side, and resolved."""

from __future__ import annotations

import pytest

from reveal_analyzer.episodes.case import Case
from reveal_analyzer.episodes.relations import Relations
from reveal_analyzer.hypotheses.signature_matcher import SignatureMatch
from reveal_contract.finding import FindingChange, Resolution
from reveal_contract.time_units import NS_PER_SECOND
from support.case_clock import (
    CPU,
    DELAY,
    GPU,
    MEMORY,
    NETWORK,
    OOM_KILL,
    RETRANSMITTED,
    RULES,
    STEAL,
    Clock,
    Learned,
    match_of,
    weights,
)


def test_a_score_above_its_threshold_is_suspected_then_opened_then_resolved() -> None:
    clock = Clock()
    clock.run(6, {CPU: 2.0})
    clock.run(15)
    assert clock.log == [(1, "Suspected", CPU), (4, "Opened", CPU), (15, "Resolved", CPU)]


def test_a_score_far_above_its_threshold_needs_fewer_seconds() -> None:
    clock = Clock()
    clock.run(5, {CPU: 4.0})
    assert clock.changes_of(FindingChange.OPENED) == [(3, CPU)]


def test_a_score_equal_to_its_threshold_is_not_anomalous() -> None:
    clock = Clock()
    clock.run(30, {CPU: 1.0})
    assert clock.log == []


def test_seconds_need_not_be_adjacent() -> None:
    clock = Clock()
    for _ in range(5):
        clock.run(1, {CPU: 2.0})
        clock.run(1)
    assert (8, "Opened", CPU) in clock.log


@pytest.mark.parametrize(("calm", "first_s"), [(1, 0), (2, 3)])
def test_a_second_that_stands_alone_before_the_fault_is_not_its_onset(
    calm: int, first_s: int
) -> None:
    clock = Clock()
    clock.run(1, {CPU: 2.0})
    clock.run(calm)
    clock.run(6, {CPU: 2.0})
    (case,) = clock.tracker.open
    assert case.episode.first_ns == first_s * NS_PER_SECOND


def test_what_a_pause_separates_from_the_fault_is_not_its_onset() -> None:
    """Two bad seconds, and a fault of the same kind five seconds later."""
    clock = Clock()
    clock.run(2, {CPU: 2.0})
    clock.run(3)
    clock.run(6, {CPU: 2.0})
    (case,) = clock.tracker.open
    assert case.episode.first_ns == 5 * NS_PER_SECOND


def test_a_pause_in_a_fault_does_not_move_its_onset() -> None:
    clock = Clock()
    clock.run(4, {CPU: 2.0})
    clock.run(3)
    clock.run(3, {CPU: 2.0})
    (case,) = clock.tracker.open
    assert case.episode.first_ns == 0


def test_a_suspicion_is_reported_again_only_after_a_calm_second() -> None:
    clock = Clock()
    clock.run(2, {CPU: 2.0})
    clock.run(3)
    clock.run(2, {CPU: 2.0})
    assert [entry[:2] for entry in clock.log] == [(1, "Suspected"), (6, "Suspected")]


def test_a_sustained_signature_opens_immediately() -> None:
    clock = Clock()
    ((change, case),) = clock.run(1, sustained=[OOM_KILL])
    assert (change, case.episode.subsystem) == (FindingChange.OPENED, MEMORY)
    assert list(case.episode.matches) == ["OOMKill"]


def test_a_subsystem_joins_soon_after_the_opening_and_opens_its_own_later() -> None:
    early, late = Clock(), Clock()
    early.run(6, {CPU: 2.0})
    early.run(10, {CPU: 2.0, GPU: 2.0})
    assert early.log[-1] == (6, "Changed", CPU)
    late.run(20, {CPU: 2.0})
    late.run(10, {CPU: 2.0, GPU: 2.0})
    assert late.log[-1] == (24, "Opened", GPU)


def test_consequences_of_a_moment_belong_to_it() -> None:
    clock = Clock()
    clock.run(1, sustained=[OOM_KILL])
    clock.run(8, {CPU: 2.0})
    assert clock.changes_of(FindingChange.OPENED) == [(0, MEMORY)]
    (case,) = clock.tracker.open
    assert case.episode.subsystems == [MEMORY, CPU]


def test_the_subsystem_of_most_weight_is_primary() -> None:
    clock = Clock()
    clock.run(5, {CPU: 1.5, GPU: 3.0})
    assert clock.tracker.open[0].episode.subsystem is GPU


def test_a_learned_level_stays_open_until_the_earlier_level_returns() -> None:
    baselines = Learned()
    clock = Clock(baselines=baselines)
    baselines.deviations = weights({STEAL: 40.0})
    clock.run(5, {CPU: 4.0}, moved={STEAL: 40.0})
    # the live score has learned it: nothing is above a threshold any more
    clock.run(3600)
    assert [change for _, change, _ in clock.log] == ["Suspected", "Opened"]
    assert clock.tracker.open[0].is_learned
    baselines.deviations = weights({})
    assert clock.run(9) == []
    ((change, case),) = clock.run(1)
    assert (change, case.lifecycle.resolution) == (FindingChange.RESOLVED, Resolution.ENDED)
    assert case.episode.last_ns == 3605 * NS_PER_SECOND


def test_a_second_fault_of_the_same_subsystem_opens_and_ends_alone() -> None:
    clock = Clock()
    clock.run(60, {CPU: 2.0}, moved={STEAL: 20.0})
    clock.run(40, {CPU: 4.0}, moved={STEAL: 20.0, DELAY: 30.0})
    assert clock.changes_of(FindingChange.OPENED) == [(4, CPU), (64, CPU)]
    first, second = clock.tracker.open
    clock.run(20, {CPU: 2.0}, moved={STEAL: 20.0})
    assert clock.tracker.open == [first]
    assert second.episode.last_ns == 100 * NS_PER_SECOND
    clock.run(10)
    assert first.episode.last_ns == 120 * NS_PER_SECOND


def test_the_first_fault_ends_while_the_second_goes_on() -> None:
    clock = Clock()
    clock.run(60, {CPU: 2.0}, moved={STEAL: 20.0})
    clock.run(30, {CPU: 4.0}, moved={STEAL: 20.0, DELAY: 30.0})
    first, second = clock.tracker.open
    clock.run(20, {CPU: 3.0}, moved={DELAY: 30.0})
    assert clock.tracker.open == [second]
    assert first.episode.last_ns == 90 * NS_PER_SECOND


def test_the_same_fault_again_is_another_case() -> None:
    clock = Clock()
    for _ in range(3):
        clock.run(20, {CPU: 2.0})
        clock.run(30)
    assert clock.changes_of(FindingChange.OPENED) == [(4, CPU), (54, CPU), (104, CPU)]
    assert clock.changes_of(FindingChange.RESOLVED) == [(29, CPU), (79, CPU), (129, CPU)]


def test_a_short_gap_is_not_calm_and_a_long_gap_closes_as_unobserved() -> None:
    clock = Clock()
    clock.run(6, {CPU: 2.0})
    clock.second += 30
    assert clock.run(1, {CPU: 2.0}) == []
    clock.second += 60
    ((change, case),) = clock.run(1)
    assert change is FindingChange.RESOLVED
    assert case.lifecycle.resolution is Resolution.UNOBSERVED


def test_what_is_not_read_any_more_closes_as_unobserved() -> None:
    clock = Clock()
    clock.run(30, {CPU: 2.0})
    assert clock.run(59, unobserved=True) == []
    ((change, case),) = clock.run(1, unobserved=True)
    assert (change, case.lifecycle.resolution) == (FindingChange.RESOLVED, Resolution.UNOBSERVED)
    assert case.episode.last_ns == 30 * NS_PER_SECOND


def test_a_clock_that_was_set_back_gives_no_case_that_ends_before_it_began() -> None:
    clock = Clock()
    clock.run(20)
    clock.run(4, {CPU: 2.0})
    clock.second -= 20
    clock.run(5, {CPU: 2.0})
    (case,) = clock.tracker.open
    assert case.episode.first_ns == 4 * NS_PER_SECOND
    assert case.episode.first_ns < case.episode.last_ns


def test_open_cases_are_returned_when_watching_ends() -> None:
    clock = Clock()
    clock.run(5, {CPU: 2.0})
    ((change, case),) = clock.tracker.finish()
    assert (change, case.trace.seconds) == (FindingChange.CHANGED, 5)


class CulpritsBack(Relations):
    """The culprits of all cases are back at their levels from before."""

    def is_culprit_back(self, case: Case) -> bool:
        return True


def test_a_case_ends_if_its_culprit_is_back_and_another_cause_describes_its_columns() -> None:
    clock = Clock(RULES.values(), kind=CulpritsBack)
    clock.run(60, {CPU: 2.0}, moved={DELAY: 20.0})
    contention = SignatureMatch(RULES["CPUContention"], ())
    clock.run(30, {CPU: 2.0}, moved={DELAY: 20.0}, sustained=[contention])
    assert clock.changes_of(FindingChange.OPENED) == [(4, CPU), (60, CPU)]
    assert clock.changes_of(FindingChange.RESOLVED) == [(70, CPU)]


def test_a_case_goes_on_if_no_other_cause_describes_its_columns() -> None:
    clock = Clock(RULES.values(), kind=CulpritsBack)
    clock.run(60, {CPU: 2.0})
    contention = SignatureMatch(RULES["CPUContention"], ())
    clock.run(30, {CPU: 2.0}, sustained=[contention])
    assert clock.changes_of(FindingChange.RESOLVED) == []


def test_what_moved_by_chance_when_a_signature_began_is_another_case_when_it_moves_again() -> None:
    loss = match_of("PacketLoss", RETRANSMITTED)
    steal, lost = {STEAL: 20.0}, {RETRANSMITTED: 20.0}
    clock = Clock(RULES.values())
    clock.run(4, {NETWORK: 2.0, CPU: 2.0}, [loss], {**lost, **steal})
    clock.run(20, {NETWORK: 2.0}, [loss], lost)
    clock.run(20, {NETWORK: 2.0, CPU: 2.0}, [loss], {**lost, **steal})
    clock.run(20, {NETWORK: 2.0}, [loss], lost)
    assert clock.changes_of(FindingChange.OPENED) == [(0, NETWORK), (28, CPU)]
    assert clock.changes_of(FindingChange.RESOLVED) == [(53, CPU)]


def test_what_moves_as_long_as_a_signature_belongs_to_it() -> None:
    loss = match_of("PacketLoss", RETRANSMITTED)
    clock = Clock(RULES.values())
    moved = {RETRANSMITTED: 20.0, STEAL: 20.0}
    for _ in range(6):  # not back for long enough
        clock.run(4, {NETWORK: 2.0, CPU: 2.0}, [loss], moved)
        clock.run(9, {NETWORK: 2.0}, [loss], {RETRANSMITTED: 20.0})
    assert clock.changes_of(FindingChange.OPENED) == [(0, NETWORK)]
