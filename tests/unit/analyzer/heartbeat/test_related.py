"""What other findings cost: only slowdowns that began with them, and only while that is known."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reveal_analyzer.heartbeat.related import RelatedFindings
from reveal_analyzer.heartbeat.slowdown_state import STEADY_S, SlowdownEnd, SlowdownState
from reveal_contract.finding import (
    Finding,
    FindingChange,
    FindingUpdate,
    Impact,
    Resolution,
    Severity,
    State,
)
from reveal_contract.metric import Subsystem
from reveal_contract.time_units import NS_PER_SECOND

JOB, SECOND = "/train", NS_PER_SECOND
BEGIN = 1_700_000_000 * SECOND
OPENED, CHANGED, RESOLVED = FindingChange.OPENED, FindingChange.CHANGED, FindingChange.RESOLVED


def impact(percent: float, since: int, window: int = 60, subject: str = JOB) -> Impact:
    return Impact(
        subject, percent, percent - 1, percent + 1, 1000 + 10 * percent, 1000.0,
        BEGIN + since * SECOND, window, "cpu.subject.usage", 90,
    )  # fmt: skip


def slow(percent: float, since: int, window: int = 60, subject: str = JOB) -> SlowdownState:
    state = SlowdownState(subject)
    state.impact = impact(percent, since, window, subject)
    state.since_ns = state.impact.since_ns
    return state


def finding(first: int, name: str = "network-1") -> Finding:
    first_ns = BEGIN + first * SECOND
    return Finding(
        name, "n1", Subsystem.NETWORK, Severity.LOW, State.OPEN, first_ns, first_ns, "drops"
    )  # fmt: skip


def opened(
    related: RelatedFindings, first: int, states: dict[str, SlowdownState], later: int = 5
) -> Finding:
    update = FindingUpdate(OPENED, finding(first))
    return related.with_cost(update, states, BEGIN + (first + later) * SECOND).finding


def test_a_finding_whose_job_has_its_baseline_steps_again_has_recovered() -> None:
    states, related = {JOB: slow(20, since=1000)}, RelatedFindings()
    opened(related, 1000, states)
    assert not related.has_recovered("network-1")
    state = states[JOB]
    state.impact, state.since_ns = None, None
    state.end = SlowdownEnd(BEGIN + 1000 * SECOND, BEGIN + 1060 * SECOND, Resolution.ENDED)
    related.refresh([], states, BEGIN + 1070 * SECOND)
    assert related.has_recovered("network-1")
    assert not related.has_recovered("network-2")


def test_an_old_slowdown_is_no_cost_of_a_later_finding() -> None:
    states = {JOB: slow(20, since=1000)}
    related = RelatedFindings()
    assert opened(related, 4600, states).impact is None
    end = FindingUpdate(RESOLVED, replace(finding(4600), state=State.RESOLVED))
    assert related.with_cost(end, states, BEGIN + 4620 * SECOND).finding.impact is None


@pytest.mark.parametrize(
    ("since", "belongs"),
    [(-120, False), (-50, False), (-40, True), (0, True), (14, True), (20, False), (300, False)],
)
def test_a_slowdown_belongs_to_a_finding_that_began_when_it_did(since: int, belongs: bool) -> None:
    related = RelatedFindings()
    first = 1000
    assert (opened(related, first, {JOB: slow(9, first + since)}).impact is not None) is belongs
    assert related.explains(impact(9, first + since)) is belongs


def test_the_cost_is_that_of_the_job_that_loses_most_by_it_and_was_not_slow_before() -> None:
    states = {
        JOB: slow(5, 1002),
        "/eval": slow(8, 1003, subject="/eval"),
        "/old": slow(70, 10, subject="/old"),
    }
    cost = opened(RelatedFindings(), 1000, states).impact
    assert cost is not None
    assert cost.subject == "/eval"


def test_a_cost_that_becomes_known_later_is_reported_once() -> None:
    related, states = RelatedFindings(), {JOB: SlowdownState(JOB)}
    assert opened(related, 1000, states).impact is None
    assert related.refresh((), states, BEGIN + 1010 * SECOND) == []
    states[JOB] = slow(12, 1001, window=10)
    (update,) = related.refresh((), states, BEGIN + 1015 * SECOND)
    assert (update.change, update.finding.impact) == (CHANGED, states[JOB].impact)
    assert related.refresh((), states, BEGIN + 1016 * SECOND) == []
    states[JOB].impact = impact(12.4, 1001, window=30)
    assert len(related.refresh((), states, BEGIN + 1040 * SECOND)) == 1


def test_a_cost_that_is_clearly_another_now_is_reported() -> None:
    related, states = RelatedFindings(), {JOB: slow(12, 1001)}
    opened(related, 1000, states)
    states[JOB].impact = impact(40, 1001)
    (update,) = related.refresh((), states, BEGIN + 1100 * SECOND)
    assert update.finding.impact == states[JOB].impact


def test_a_job_that_recovered_is_noted_and_its_cost_stays() -> None:
    related, states = RelatedFindings(), {JOB: slow(12, 1001)}
    opened(related, 1000, states)
    state = SlowdownState(JOB)
    state.end = SlowdownEnd(BEGIN + 1001 * SECOND, BEGIN + 1100 * SECOND, Resolution.ENDED)
    (update,) = related.refresh((), {JOB: state}, BEGIN + 1101 * SECOND)
    assert update.finding.impact is not None
    assert update.finding.notes == ("steps of /train are back at their baseline since 22:31:40Z",)
    assert related.refresh((), {JOB: state}, BEGIN + 1102 * SECOND) == []


def test_a_job_that_is_no_longer_read_did_not_recover() -> None:
    related = RelatedFindings()
    opened(related, 1000, {JOB: slow(12, 1001)})
    state = SlowdownState(JOB)
    state.end = SlowdownEnd(BEGIN + 1001 * SECOND, BEGIN + 1100 * SECOND, Resolution.UNOBSERVED)
    assert related.refresh((), {JOB: state}, BEGIN + 1101 * SECOND) == []


def test_nothing_is_added_to_a_finding_that_is_over() -> None:
    related = RelatedFindings()
    opened(related, 1000, {})
    end = FindingUpdate(RESOLVED, replace(finding(1000), state=State.RESOLVED))
    related.with_cost(end, {}, BEGIN + 1050 * SECOND)
    states = {JOB: slow(12, 1010)}
    assert related.refresh((), states, BEGIN + 1060 * SECOND) == []
    again = related.with_cost(end, states, BEGIN + 1070 * SECOND)
    assert again.finding.impact is None


def test_a_finding_explains_a_slowdown_for_a_minute_after_its_end() -> None:
    related = RelatedFindings()
    opened(related, 1000, {})
    end = FindingUpdate(RESOLVED, replace(finding(1000), state=State.RESOLVED))
    related.with_cost(end, {}, BEGIN + 1050 * SECOND)
    related.refresh((), {}, BEGIN + 1110 * SECOND)
    assert related.explains(impact(12, 1001))
    related.refresh((), {}, BEGIN + 1111 * SECOND)
    assert not related.explains(impact(12, 1001))


def test_a_finding_is_young_for_a_minute() -> None:
    related = RelatedFindings()
    opened(related, 1000, {})
    assert related.any_young(BEGIN + 1059 * SECOND)
    assert not related.any_young(BEGIN + 1060 * SECOND)


def test_a_restart_keeps_costs_and_reports_no_finding_that_is_not_observed_yet() -> None:
    related, states = RelatedFindings(), {JOB: slow(12, 1001)}
    opened(related, 1000, states)
    after = RelatedFindings.restored({"related": related.save()}, "related")
    calm = {JOB: SlowdownState(JOB)}
    assert (related.open_ids(), after.open_ids()) == (("network-1",), ())
    assert after.refresh((), calm, BEGIN + 1100 * SECOND) == []
    assert after.explains(impact(12, 1001))
    update = FindingUpdate(CHANGED, finding(1000))
    assert after.with_cost(update, calm, BEGIN + 1101 * SECOND).finding.impact == impact(12, 1001)
    assert after.open_ids() == ("network-1",)


def test_jobs_that_keep_their_steps_are_noted_after_a_minute() -> None:
    related, steady = RelatedFindings(), SlowdownState(JOB)
    steady.steady = STEADY_S
    opened(related, 1000, {JOB: steady})
    assert related.refresh((), {JOB: steady}, BEGIN + 1059 * SECOND) == []
    (update,) = related.refresh((), {JOB: steady}, BEGIN + 1060 * SECOND)
    (note,) = update.finding.notes
    assert note == "changed, job not slowed: for 60 s /train kept the baseline step time"


def test_a_finding_refers_to_slowdowns_that_are_open_with_it() -> None:
    related = RelatedFindings()
    update = FindingUpdate(OPENED, finding(1000))
    first = related.with_cost(update, {}, BEGIN + 1005 * SECOND, ["cpu-1"]).finding
    assert first.notes == ("open on this node at the same time: cpu-1",)
    related.refer_to("cpu-2")
    after = RelatedFindings.restored({"related": related.save()}, "related")
    noted = replace(finding(1000), notes=("open on this node at the same time: disk-1", "more"))
    second = after.with_cost(FindingUpdate(CHANGED, noted), {}, BEGIN + 1010 * SECOND).finding
    assert second.notes == ("more", "open on this node at the same time: disk-1, cpu-1, cpu-2")


def test_a_finding_that_is_over_refers_to_no_later_slowdown() -> None:
    related = RelatedFindings()
    opened(related, 1000, {})
    end = FindingUpdate(RESOLVED, replace(finding(1000), state=State.RESOLVED))
    related.with_cost(end, {}, BEGIN + 1050 * SECOND)
    related.refer_to("cpu-1")
    assert related.with_cost(end, {}, BEGIN + 1051 * SECOND).finding.notes == ()


@pytest.mark.parametrize(
    ("percent", "resumed", "expected"),
    [(35, False, Severity.CRITICAL), (35, True, Severity.MEDIUM), (2, False, Severity.LOW)],
)
def test_a_finding_is_as_severe_as_the_slowdown_that_is_its_impact(
    percent: float, resumed: bool, expected: Severity
) -> None:
    state = slow(percent, since=1001)
    state.resumed = resumed
    assert opened(RelatedFindings(), 1000, {JOB: state}).severity is expected


def test_the_severity_of_a_slowdown_ends_with_it_and_outlasts_a_restart() -> None:
    related, states = RelatedFindings(), {JOB: slow(35, 1001)}
    opened(related, 1000, states)
    after = RelatedFindings.restored({"related": related.save()}, "related")
    changed = FindingUpdate(CHANGED, finding(1000))
    lost = {JOB: SlowdownState(JOB)}  # nobody knows whether the job is still slower
    assert after.with_cost(changed, lost, BEGIN + 1100 * SECOND).finding.severity is (
        Severity.CRITICAL
    )
    well = {JOB: SlowdownState(JOB)}
    well[JOB].end = SlowdownEnd(BEGIN + 1001 * SECOND, BEGIN + 1110 * SECOND, Resolution.ENDED)
    (update,) = after.refresh((), well, BEGIN + 1111 * SECOND)
    assert update.finding.severity is Severity.LOW
