"""AnomalyReports: what of a finding goes where, within bounds that the schema shares."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from reveal_contract.finding import (
    Confidence,
    Evidence,
    Finding,
    FindingKind,
    Hypothesis,
    Method,
    Pod,
    Severity,
    State,
)
from reveal_contract.kube.anomaly_report import MAX_BYTES, Owner, report
from reveal_contract.kube.names import REPORTS
from reveal_contract.kube.report_parser import parse_report
from reveal_contract.metric import Subsystem
from support.crd_schema import faults, schema
from support.finding_factory import ANY_FINDING, AT, SECOND, finding, largest
from support.property_tests import examples

OWNER = Owner("p", "0b7ab99b-0c4f-4f2c-8f75-bd1f5b0f8c52", 3)


def size(one: Any) -> int:
    """As the API server writes it."""
    text = json.dumps(one, ensure_ascii=False, separators=(",", ":"))
    for letter in "<>&":
        text = text.replace(letter, f"\\u00{ord(letter):x}")
    return len(text.encode())


def test_identity_is_in_the_spec_and_all_else_in_the_status() -> None:
    made = report(finding(), "p", 7)
    assert made.name == "p-n1-cpu-1"
    assert made.spec == {
        "profileRef": {"name": "p"}, "nodeName": "n1", "findingID": "cpu-1", "scope": "Node",
        "kind": "Anomaly", "subsystem": "CPU", "firstSeenTime": "2023-11-14T22:13:20.123Z",
    }  # fmt: skip
    assert made.status == {
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
    seen = (Evidence("cpu.user", "mean", "", "1", "0", "ns", "up", "user"),)
    methods = (Method("A", True, 90), Method("B", False, 10), Method("C", True, 80))
    full = replace(finding(), pods=pods, evidence=seen, methods=methods)
    made = report(full, "p", 1).status
    assert made["cause"] == "cpu.user"
    assert made["agree"] == "2/3"
    assert made["podNames"] == "ns/p0,ns/p1,ns/p2,+2"
    known = replace(full, hypothesis=Hypothesis("CpuContention", 80, "move it"))
    assert report(known, "p", 1).status["cause"] == "CpuContention"
    assert not {"cause", "agree", "podNames"} & report(finding(), "p", 1).status.keys()


def test_what_is_empty_is_left_out_as_the_schema_knows_no_empty_direction() -> None:
    seen = (Evidence("fact.x", "fact", "", "hpet", "", "", "", ""),)
    made = report(replace(finding(), evidence=seen), "p", 1).status
    assert made["evidence"] == [{"metric": "fact.x", "feature": "fact", "value": "hpet"}]


def test_labels_follow_what_is_known_now() -> None:
    made = report(finding(node_name="n" * 80), "p", 1)
    labels = made.labels()
    assert labels["reveal.dev/profile"] == "p"
    assert labels["reveal.dev/state"] == "Open"
    assert labels["reveal.dev/severity"] == "Medium"
    assert len(labels["reveal.dev/node"]) <= 63
    assert made.to_create()["metadata"]["labels"] == labels


def test_the_owner_does_not_control_and_blocks_no_deletion() -> None:
    (reference,) = report(finding(), "p", 1).to_create(OWNER)["metadata"]["ownerReferences"]
    assert reference == {
        "apiVersion": "reveal.dev/v1alpha1", "kind": "RevealProfile", "name": "p",
        "uid": OWNER.uid, "controller": False, "blockOwnerDeletion": False,
    }  # fmt: skip


def test_a_setting_has_no_windows() -> None:
    made = report(finding(kind=FindingKind.CONFIGURATION), "p", 1)
    assert not made.anomaly
    assert "windows" not in made.status


def test_a_stride_of_two_seconds_has_half_the_windows() -> None:
    made = report(finding(last_seen_ns=AT + 60 * SECOND), "p", 1, stride_seconds=2)
    assert made.status["windows"]["count"] == 30
    assert made.refreshed(AT + 120 * SECOND, 2).status["windows"] == {
        "count": 60, "firstTime": "2023-11-14T22:13:20.123Z",
        "lastTime": "2023-11-14T22:15:20.123Z",
    }  # fmt: skip


def test_resolved_by_us_it_says_why() -> None:
    made = report(finding(notes=("learned under load",)), "p", 1)
    over = made.resolved("its node is gone", AT + 90 * SECOND)
    assert not over.open
    assert over.status["resolvedTime"] == "2023-11-14T22:14:50.123Z"
    assert over.status["notes"] == ["learned under load", "its node is gone"]
    assert over.core != made.core
    assert made.open  # the one before is untouched


def test_the_largest_finding_fits_and_keeps_what_says_most() -> None:
    made = report(largest(), "p" * 52, 1)
    whole = made.to_create(replace(OWNER, name="p" * 52)) | {"status": made.status}
    assert size(whole) <= MAX_BYTES
    assert size(whole) > MAX_BYTES - 2000
    for name in ("evidence", "pods", "methods", "subsystems", "impact", "hypothesis"):
        assert made.status[name], name
    assert made.status["claim"].endswith("…")


@given(ANY_FINDING)
@examples(300)
def test_any_finding_is_a_report_that_the_schema_takes(one: Finding) -> None:
    made = report(one, "p" * 52, 10**6)
    whole = made.to_create(replace(OWNER, name="p" * 52)) | {"status": made.status}
    assert size(whole) <= MAX_BYTES
    assert faults(schema(REPORTS, "spec"), made.spec) == []
    assert faults(schema(REPORTS, "status"), made.status) == []
    over = made.resolved("why", AT)
    assert faults(schema(REPORTS, "status"), over.status) == []
    assert size(over.to_create() | {"status": over.status}) <= MAX_BYTES


def test_what_the_api_has_is_read_back() -> None:
    made = report(replace(finding(), state=State.RESOLVED, resolved_ns=AT), "p", 1)
    assert parse_report(made.to_create(OWNER) | {"status": made.status}) == made


@given(ANY_FINDING)
@examples(200)
def test_any_report_is_read_back_as_it_was_written(one: Finding) -> None:
    made = report(one, "p", 1)
    found = made.to_create(OWNER) | {"status": made.status}
    again = parse_report(found)
    assert again is not None
    assert (again.name, again.spec, again.status, again.core, again.labels()) == (
        made.name, made.spec, made.status, made.core, made.labels(),
    )  # fmt: skip


def test_fields_of_another_version_are_kept() -> None:
    made = report(finding(), "p", 1)
    status = {**made.status, "newField": {"a": 1}}
    again = parse_report(made.to_create(OWNER) | {"status": status})
    assert again is not None
    assert again.resolved("why", AT).status["newField"] == {"a": 1}


@pytest.mark.parametrize("bad", [{"severity": "Huge"}, {"subsystem": "Moon"}, {"evidence": [{}]}])
def test_what_this_version_cannot_read_is_no_report(bad: dict[str, Any]) -> None:
    made = report(finding(), "p", 1)
    assert parse_report(made.to_create(OWNER) | {"status": {**made.status, **bad}}) is None


def test_one_without_a_status_is_open_as_its_labels_say() -> None:
    made = report(finding(severity=Severity.HIGH), "p", 1)
    found = parse_report(made.to_create(OWNER))
    assert found is not None
    assert (found.open, found.severity, found.status["subsystem"]) == (True, Severity.HIGH, "CPU")
    assert parse_report({"metadata": {"name": "x"}, "spec": {"nodeName": "n"}}) is None
    assert parse_report({"metadata": {"name": "x"}}) is None


def test_the_core_is_what_is_worth_a_write() -> None:
    one = report(finding(), "p", 1)
    same = report(finding(claim="other words", last_seen_ns=AT + 99 * SECOND), "p", 1)
    assert one.core == same.core
    for other in (
        {"severity": Severity.HIGH},
        {"state": State.RESOLVED},
        {"subsystem": Subsystem.GPU},
        {"hypothesis": Hypothesis("X", 1, "")},
    ):
        assert report(finding(**other), "p", 1).core != one.core, other
