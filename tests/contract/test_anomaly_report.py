"""AnomalyReports: which field holds which part of a finding, within the bounds of the schema."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from reveal_contract.costs import Cost, PodCost
from reveal_contract.finding import (
    Confidence,
    Evidence,
    EvidenceRef,
    Finding,
    FindingKind,
    Hypothesis,
    Method,
    Pod,
    Resolution,
    Severity,
    State,
)
from reveal_contract.kube.anomaly_report import MAX_BYTES, ReportOwner, WindowLengths, report
from reveal_contract.kube.names import REPORTS
from reveal_contract.kube.report_parser import parse_report, parse_row
from reveal_contract.metric import Subsystem
from reveal_contract.verification import Effect, Verdict, Verification
from support.crd_schema import faults, schema
from support.finding_factory import ANY_FINDING, SECOND, START_NS, finding, largest
from support.property_tests import examples

OWNER = ReportOwner("p", "0b7ab99b-0c4f-4f2c-8f75-bd1f5b0f8c52", 3)


def size(document: Any) -> int:
    """Return the size in bytes of the JSON that the API server writes."""
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"))
    for letter in "<>&":
        text = text.replace(letter, f"\\u00{ord(letter):x}")
    return len(text.encode())


def test_the_spec_holds_the_identity_and_the_status_the_rest() -> None:
    result = report(finding(), "p", 7)
    assert result.name == "p-n1-cpu-1"
    assert result.spec == {
        "profileRef": {"name": "p"}, "nodeName": "n1", "findingID": "cpu-1", "scope": "Node",
        "kind": "Anomaly", "subsystem": "CPU", "firstSeenTime": "2023-11-14T22:13:20.123Z",
    }  # fmt: skip
    assert result.status == {
        "state": "Open", "severity": "Medium", "subsystem": "CPU", "subsystems": ["CPU"],
        "lastSeenTime": "2023-11-14T22:13:25.123Z", "claim": "CPU is slow",
        "scorePercent": 0, "confidencePercent": 0, "profileGeneration": 7,
        "windows": {
            "count": 5, "firstTime": "2023-11-14T22:13:20.123Z",
            "lastTime": "2023-11-14T22:13:25.123Z",
        },
    }  # fmt: skip


def test_fields_for_the_columns() -> None:
    pods = tuple(Pod("ns", f"p{n}", "u", "", 60, 55, Confidence.MEASURED) for n in range(5))
    observed = (Evidence("cpu.user", "mean", "", "1", "0", "ns", "up", "user"),)
    methods = (Method("A", True, 90), Method("B", False, 10), Method("C", True, 80))
    full = replace(finding(), pods=pods, evidence=observed, methods=methods)
    result = report(full, "p", 1).status
    assert result["cause"] == "cpu.user"
    assert result["agree"] == "2/3"
    assert result["podNames"] == "ns/p0,ns/p1,ns/p2,+2"
    known = replace(full, hypothesis=Hypothesis("CpuContention", 80, "move it"))
    assert report(known, "p", 1).status["cause"] == "CpuContention"
    assert not {"cause", "agree", "podNames"} & report(finding(), "p", 1).status.keys()


def test_empty_fields_are_omitted() -> None:
    observed = (Evidence("fact.x", "fact", "", "hpet", "", "", "", ""),)
    result = report(replace(finding(), evidence=observed), "p", 1).status
    assert result["evidence"] == [{"metric": "fact.x", "feature": "fact", "value": "hpet"}]


def test_labels_follow_what_is_known_now() -> None:
    result = report(finding(node_name="n" * 80), "p", 1)
    labels = result.labels()
    assert labels["reveal.dev/profile"] == "p"
    assert labels["reveal.dev/state"] == "Open"
    assert labels["reveal.dev/severity"] == "Medium"
    assert len(labels["reveal.dev/node"]) <= 63
    assert result.to_create()["metadata"]["labels"] == labels


def test_the_owner_does_not_control_and_blocks_no_deletion() -> None:
    (reference,) = report(finding(), "p", 1).to_create(OWNER)["metadata"]["ownerReferences"]
    assert reference == {
        "apiVersion": "reveal.dev/v1alpha1", "kind": "RevealProfile", "name": "p",
        "uid": OWNER.uid, "controller": False, "blockOwnerDeletion": False,
    }  # fmt: skip


def test_a_setting_has_no_windows() -> None:
    result = report(finding(kind=FindingKind.CONFIGURATION), "p", 1)
    assert not result.anomaly
    assert "windows" not in result.status


def test_windows_are_those_within_the_time() -> None:
    """Each second, or windows of 6 s that begin 2 s apart: 0 to 6, 2 to 8, ..., 54 to 60."""
    minute = finding(last_observed_ns=START_NS + 60 * SECOND)
    assert report(minute, "p", 1).status["windows"]["count"] == 60
    result = report(minute, "p", 1, WindowLengths(6, 2))
    assert result.status["windows"]["count"] == 28
    assert result.refreshed(START_NS + 120 * SECOND, WindowLengths(6, 2)).status["windows"] == {
        "count": 58, "firstTime": "2023-11-14T22:13:20.123Z",
        "lastTime": "2023-11-14T22:15:20.123Z",
    }  # fmt: skip


def test_a_refreshed_report_costs_what_was_lost_since() -> None:
    parts = PodCost("ml/a-0", 0.75), PodCost("ml/a-1", 0.25)
    result = report(finding(cost=Cost(8, 2.0, 1.0, 0.5, 1.5), pod_costs=parts), "p", 1)
    first = result.refreshed(START_NS + 5 * SECOND + 1800 * SECOND)
    again = first.refreshed(START_NS + 5 * SECOND + 3600 * SECOND)
    assert first.status["cost"]["lostGPUHours"] == "2.000"
    assert again.status["cost"] == {
        "gpus": 8, "lostGPUs": "2.00", "lostGPUHours": "3.000", "lowGPUHours": "1.500",
        "highGPUHours": "4.500",
    }  # fmt: skip
    assert [each["lostGPUHours"] for each in again.status["podCosts"]] == ["2.250", "0.750"]
    assert result.status["cost"]["lostGPUHours"] == "1.000"  # the original is unchanged


def test_a_cost_is_read_from_a_report_and_from_a_row() -> None:
    cost, parts = Cost(8, 0.5, 1.25, 0.75, 2.0, "2.00 EUR"), (PodCost("ml/a-0", 1.25),)
    costly = finding(cost=cost, pod_costs=parts)
    written = report(costly, "p", 1)
    read = parse_report(written.to_create(OWNER) | {"status": written.status})
    assert read is not None
    assert (read.finding.cost, read.finding.pod_costs) == (costly.cost, costly.pod_costs)
    assert not {"cost", "podCosts"} & read.extra.keys()
    row = parse_row(costly.to_dict())
    assert row is not None
    assert (row.cost, row.pod_costs) == (costly.cost, costly.pod_costs)
    assert written.status["cost"]["amount"] == "2.50 EUR"
    bare = parse_row({**costly.to_dict(), "cost": {"gpus": 8, "lostGPUHours": "1.250"}})
    assert bare is not None
    assert bare.cost == Cost(8, 0.0, 1.25, 1.25, 1.25)


@pytest.mark.parametrize("effect", [Effect(-2.5, -4.0, -1.0), None])
def test_a_verification_is_read_from_a_report_and_from_a_row(effect: Effect | None) -> None:
    time_ns = START_NS - START_NS % 10**6
    found = Verification(Verdict.WORSE, "cpu smt: on -> off", "ml/a-0", time_ns, effect)
    verified = finding(verification=found)
    written = report(verified, "p", 1)
    read = parse_report(written.to_create(OWNER) | {"status": written.status})
    assert read is not None
    assert read.finding.verification == found
    assert "verification" not in read.extra
    row = parse_row(verified.to_dict())
    assert row is not None
    assert row.verification == found
    assert written.to_apply_verification()["status"].keys() == {"verification"}


def test_a_report_resolved_by_the_sink_has_the_reason() -> None:
    result = report(finding(notes=("learned under load",)), "p", 1)
    over = result.resolved("its node is gone", START_NS + 90 * SECOND, Resolution.UNOBSERVED)
    assert not over.open
    assert over.status["resolvedTime"] == "2023-11-14T22:14:50.123Z"
    assert over.status["resolution"] == "Unobserved"
    assert over.status["notes"] == ["learned under load", "its node is gone"]
    assert over.core != result.core
    assert result.open  # the original is unchanged


def test_a_reference_to_samples_is_written_immediately() -> None:
    kept = finding(evidence_ref=EvidenceRef("Redis", "cpu-1"))
    assert report(kept, "p", 1).core != report(finding(), "p", 1).core


def test_it_is_not_resolved_before_it_was_last_observed() -> None:
    result = report(finding(), "p", 1)
    over = result.resolved("the clocks differ", START_NS - 90 * SECOND, Resolution.UNOBSERVED)
    assert over.status["resolvedTime"] == over.status["lastSeenTime"]


def test_the_largest_finding_fits_and_keeps_the_most_important_fields() -> None:
    result = report(largest(), "p" * 52, 1)
    whole = result.to_create(replace(OWNER, name="p" * 52)) | {"status": result.status}
    assert size(whole) <= MAX_BYTES
    assert size(whole) > MAX_BYTES - 2000
    for name in ("evidence", "pods", "methods", "subsystems", "impact", "hypothesis"):
        assert result.status[name], name
    assert result.status["claim"].endswith("…")


@given(ANY_FINDING)
@examples(300)
def test_any_finding_is_a_report_that_the_schema_takes(finding_drawn: Finding) -> None:
    result = report(finding_drawn, "p" * 52, 10**6)
    whole = result.to_create(replace(OWNER, name="p" * 52)) | {"status": result.status}
    assert size(whole) <= MAX_BYTES
    assert faults(schema(REPORTS, "spec"), result.spec) == []
    assert faults(schema(REPORTS, "status"), result.status) == []
    over = result.resolved("why", START_NS, Resolution.STOPPED)
    assert faults(schema(REPORTS, "status"), over.status) == []
    assert size(over.to_create() | {"status": over.status}) <= MAX_BYTES


def test_a_report_of_the_api_is_parsed_back() -> None:
    result = report(
        replace(finding(), state=State.RESOLVED, resolved_ns=START_NS, resolution=Resolution.ENDED),
        "p",
        1,
    )
    assert parse_report(result.to_create(OWNER) | {"status": result.status}) == result


@given(ANY_FINDING)
@examples(200)
def test_any_report_is_parsed_back_as_it_was_written(finding_drawn: Finding) -> None:
    result = report(finding_drawn, "p", 1)
    found = result.to_create(OWNER) | {"status": result.status}
    again = parse_report(found)
    assert again is not None
    assert (again.name, again.spec, again.status, again.core, again.labels()) == (
        result.name, result.spec, result.status, result.core, result.labels(),
    )  # fmt: skip


def test_fields_of_another_version_are_kept() -> None:
    result = report(finding(), "p", 1)
    status = {**result.status, "newField": {"a": 1}}
    again = parse_report(result.to_create(OWNER) | {"status": status})
    assert again is not None
    assert again.resolved("why", START_NS, Resolution.STOPPED).status["newField"] == {"a": 1}


@pytest.mark.parametrize("bad", [{"severity": "Huge"}, {"subsystem": "Moon"}, {"evidence": [{}]}])
def test_an_object_that_this_version_cannot_parse_is_no_report(bad: dict[str, Any]) -> None:
    result = report(finding(), "p", 1)
    assert parse_report(result.to_create(OWNER) | {"status": {**result.status, **bad}}) is None


def test_a_report_without_a_status_takes_state_and_severity_from_its_labels() -> None:
    result = report(finding(severity=Severity.HIGH), "p", 1)
    found = parse_report(result.to_create(OWNER))
    assert found is not None
    assert (found.open, found.severity, found.status["subsystem"]) == (True, Severity.HIGH, "CPU")
    assert parse_report({"metadata": {"name": "x"}, "spec": {"nodeName": "n"}}) is None
    assert parse_report({"metadata": {"name": "x"}}) is None


def test_the_core_changes_with_the_fields_that_need_an_immediate_write() -> None:
    first = report(finding(), "p", 1)
    same = report(finding(claim="other words", last_observed_ns=START_NS + 99 * SECOND), "p", 1)
    assert first.core == same.core
    for other in (
        {"severity": Severity.HIGH},
        {"state": State.RESOLVED},
        {"subsystem": Subsystem.GPU},
        {"hypothesis": Hypothesis("X", 1, "")},
    ):
        assert report(finding(**other), "p", 1).core != first.core, other
