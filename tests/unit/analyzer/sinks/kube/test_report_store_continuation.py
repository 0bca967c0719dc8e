"""What continues: reminders of lasting findings, and reports that were deleted or adopted."""

from __future__ import annotations

import pytest

from reveal_contract.finding import FindingKind, Hypothesis, Severity
from reveal_contract.kube.anomaly_report import report
from support.finding_factory import SECOND, START_NS, changed, finding, opened
from support.report_store_harness import StoreHarness

HOUR = 3600


def caused(name: str) -> Hypothesis | None:
    return Hypothesis(name, 80, "") if name else None


def lasting(hours: int) -> StoreHarness:
    """A finding that opened now and is observed for so long."""
    harness = StoreHarness()
    begin = harness.now_ns
    harness.update(opened(first_observed_ns=begin, last_observed_ns=begin))
    harness.run(hours * HOUR + 60, step=60)
    return harness


def test_a_lasting_finding_is_repeated_ever_more_rarely() -> None:
    harness = lasting(49)
    assert harness.reasons == ["AnomalyDetected", *["AnomalyContinues"] * 5]
    assert {each.status["severity"] for each in harness.written} == {"Medium"}
    assert {each.status["state"] for each in harness.written} == {"Open"}


def test_another_analyzer_repeats_no_reminder() -> None:
    first = lasting(2)
    heir = StoreHarness(listed=False)
    heir.now = first.now
    heir.list(first.written[-1])
    began_ns = first.written[-1].identity.first_observed_ns
    heir.update(changed(first_observed_ns=began_ns, last_observed_ns=heir.now_ns))
    heir.run(3 * HOUR, step=60)
    assert heir.reasons == []
    heir.run(HOUR, step=60)
    assert heir.reasons == ["AnomalyContinues"]


@pytest.mark.parametrize("listed_first", [True, False])
def test_a_young_report_of_another_analyzer_repeats_its_event(listed_first: bool) -> None:
    """The other analyzer may have died before its Event; the API ignores a repeated name."""
    harness = StoreHarness(listed=False)
    # where the report is not known yet, its Event has the severity of now
    escalated = ["AnomalyEscalated"] if listed_first else []
    there = report(finding(first_observed_ns=START_NS - 14 * 60 * SECOND), "p", 1)
    if listed_first:
        harness.list(there)
    harness.update(changed(severity=Severity.HIGH))
    if not listed_first:
        harness.list(there)
    for claim in ("", "words"):
        harness.update(changed(severity=Severity.HIGH, claim=claim))
        harness.deliver()
        assert harness.reasons == ["AnomalyDetected", *escalated]


def test_a_finding_that_nobody_observes_and_a_setting_are_not_repeated() -> None:
    harness = StoreHarness()
    harness.update(opened("setting", kind=FindingKind.CONFIGURATION))
    harness.run(2 * HOUR, step=60)
    assert harness.reasons == []
    harness.update(opened())
    harness.deliver()
    harness.run(8 * HOUR, step=60, connected=False)
    assert harness.reasons == ["AnomalyDetected"]


@pytest.mark.parametrize(
    ("before", "after", "continued"),
    [
        ("CPUContention", "CPUContention", True),
        ("", "CPUContention", True),
        ("CPUContention", "", True),
        ("CPUQuotaThrottling", "CPUContention", False),
    ],
)
def test_an_orphan_is_continued_by_a_finding_of_the_same_cause(
    before: str, after: str, continued: bool
) -> None:
    there = report(finding("cpu-before", hypothesis=caused(before)), "p", 1)
    harness = StoreHarness(listed=False)
    harness.list(there)
    harness.observe()
    harness.update(opened("cpu-after", hypothesis=caused(after)))
    (written,) = harness.deliver()
    assert (written.name == there.name) == continued


def test_of_two_orphans_that_of_the_same_cause_is_continued() -> None:
    unknown = report(finding("cpu-a"), "p", 1)
    same = report(finding("cpu-b", hypothesis=caused("CPUContention")), "p", 1)
    harness = StoreHarness(listed=False)
    harness.list(unknown, same)
    harness.observe()
    harness.update(opened("cpu-after", hypothesis=caused("CPUContention")))
    assert harness.deliver()[0].name == same.name


@pytest.mark.parametrize("listed_first", [True, False])
def test_an_open_report_stays_open_under_a_higher_minimum_severity(listed_first: bool) -> None:
    """``minSeverity`` was raised: the analyzer restarted, and the finding goes on."""
    there = report(finding(), "p", 1)
    harness = StoreHarness(listed=False, min_severity="High")
    if listed_first:
        harness.list(there)
    harness.update(changed())
    harness.list(there)
    harness.run(HOUR)
    assert {each.status["state"] for each in harness.written} == {"Open"}
    assert harness.written[-1].name == there.name


def test_a_report_is_never_resolved_before_it_was_last_observed() -> None:
    """The clock of the node is ahead of the analyzer's."""
    ahead = START_NS + 10 * HOUR * SECOND
    there = report(finding(first_observed_ns=ahead, last_observed_ns=ahead), "p", 1)
    harness = StoreHarness(listed=False)
    harness.list(there)
    harness.run(200)
    over = harness.written[-1]
    assert over.status["resolvedTime"] == over.status["lastSeenTime"]
    assert over.status["resolvedTime"] >= over.spec["firstSeenTime"]


def test_a_deleted_report_is_created_again_while_it_is_open() -> None:
    harness = StoreHarness()
    harness.update(opened())
    harness.run(30)
    harness.list()
    (entry,) = harness.store
    assert entry.written_core is None
    assert [each.name for each in harness.deliver()] == ["p-n1-cpu-1"]


def test_a_deleted_orphan_is_forgotten() -> None:
    harness = StoreHarness(listed=False)
    harness.list(report(finding(), "p", 1))
    harness.list()
    assert len(harness.store) == 0
