"""Configuration findings survive their analyzer: opened once, resolved by whoever sees the fix."""

from dataclasses import replace

from reveal_analyzer.configuration.watch import ConfigurationTracker
from reveal_contract.facts import Cpu, Facts, Kernel
from reveal_contract.finding import FindingChange

SLOW_CLOCK = Facts(
    node="n",
    cpu=Cpu(clock_flags=("constant_tsc",)),
    kernel=Kernel(clocksource="hpet", clocksources=("hpet",)),
)


def restored() -> ConfigurationTracker:
    first = ConfigurationTracker()
    assert [each.change for each in first.update(SLOW_CLOCK, 5)] == [FindingChange.OPENED]
    second = ConfigurationTracker()
    second.restore(first.save())
    return second


def test_a_finding_that_another_analyzer_opened_is_not_opened_again() -> None:
    tracker = restored()
    updates = tracker.update(SLOW_CLOCK, 900)
    assert [each.change for each in updates] == [FindingChange.CHANGED]
    assert updates[0].finding.first_observed_ns == 5
    assert tracker.update(SLOW_CLOCK, 901) == [], "it is reported once"


def test_a_setting_that_was_corrected_meanwhile_is_resolved() -> None:
    fixed = replace(SLOW_CLOCK, kernel=replace(SLOW_CLOCK.kernel, clocksource="tsc"))
    updates = restored().update(fixed, 900)
    assert [each.change for each in updates] == [FindingChange.RESOLVED]
    assert updates[0].finding.claim
    assert (updates[0].finding.first_observed_ns, updates[0].finding.resolved_ns) == (5, 900)


def test_a_setting_that_nobody_can_read_after_a_restart_is_still_broken() -> None:
    tracker = restored()
    updates = tracker.update(Facts(node="n"), 900)
    assert [each.change for each in updates] == [FindingChange.CHANGED]
    assert tracker.update(Facts(node="n"), 901) == []
    assert [each.first_observed_ns for each in tracker.findings] == [5]
