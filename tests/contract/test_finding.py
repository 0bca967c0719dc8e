"""Findings: the JSON row that other programs parse, stable identities, times as RFC 3339."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveal_contract.costs import Cost
from reveal_contract.finding import (
    Confidence,
    DelayedJob,
    Evidence,
    Finding,
    Hypothesis,
    Impact,
    JobLoss,
    Method,
    Peers,
    Pod,
    Resolution,
    Severity,
    State,
    Subject,
    finding_id,
    rfc3339,
)
from reveal_contract.metric import Subsystem

NOW_NS = 1_700_000_000_123_456_789
BARE = Finding(
    "cpu-1", "n1", Subsystem.CPU, Severity.HIGH, State.OPEN, NOW_NS, NOW_NS + 10**9, "CPU is slow"
)
FULL = replace(
    BARE,
    subsystems=(Subsystem.CPU, Subsystem.MEMORY),
    hypothesis=Hypothesis("CpuContention", 80, "move the neighbour"),
    methods=(Method("Forest", True, 97),),
    evidence=(Evidence("cpu.user", "mean", "3", "0.5", "0.1", "ns/s", "up", "user"),),
    pods=(Pod("ns", "p", "uid", "c", 60, 55, Confidence.MEASURED),),
    subjects=(Subject("Unit", "a.service", 60, 55, Confidence.CO_LOCATED),),
    score_percent=90,
    confidence_percent=80,
    resolved_ns=NOW_NS + 5 * 10**9,
    notes=("learned under load",),
    peers=Peers(9, "0", "4294967296"),
    impact=Impact(
        "/train", 9.14, 8.04, 10.24, 1716.4, 1572.7, NOW_NS, 30, "cpu.subject.usage.fine", 88
    ),
    resolution=Resolution.ENDED,
)


def test_the_row_has_the_fields_of_an_anomaly_report() -> None:
    row = json.loads(json.dumps(FULL.to_dict()))
    assert row == {
        "id": "cpu-1", "kind": "Anomaly", "nodeName": "n1", "scope": "Node",
        "subsystem": "CPU", "subsystems": ["CPU", "Memory"], "severity": "High", "state": "Open",
        "firstSeenTime": "2023-11-14T22:13:20.123Z", "lastSeenTime": "2023-11-14T22:13:21.123Z",
        "resolvedTime": "2023-11-14T22:13:25.123Z", "resolution": "Ended", "claim": "CPU is slow",
        "hypothesis": {
            "name": "CpuContention", "confidencePercent": 80, "remediation": "move the neighbour",
        },
        "methods": [{"name": "Forest", "agrees": True, "scorePercent": 97}],
        "evidence": [{
            "metric": "cpu.user", "feature": "mean", "instance": "3", "value": "0.5",
            "baseline": "0.1", "unit": "ns/s", "direction": "up", "knownAs": "user",
        }],
        "pods": [{
            "namespace": "ns", "name": "p", "uid": "uid", "container": "c",
            "sharePercent": 60, "changePercent": 55, "confidence": "Measured",
        }],
        "subjects": [{
            "kind": "Unit", "name": "a.service", "sharePercent": 60, "changePercent": 55,
            "confidence": "CoLocated",
        }],
        "scorePercent": 90, "confidencePercent": 80, "notes": ["learned under load"],
        "peers": {"compared": 9, "median": "0", "value": "4294967296"},
        "impact": {
            "subject": "/train", "slowdownPercent": "9.1", "lowPercent": "8.0",
            "highPercent": "10.2", "periodMilliseconds": 1716, "usualMilliseconds": 1573,
            "since": "2023-11-14T22:13:20.123Z", "windowSeconds": 30,
            "channel": "cpu.subject.usage.fine", "confidencePercent": 88,
        },
    }  # fmt: skip


def test_all_texts_are_printable() -> None:
    """Whoever chose a name in them: it reaches reports, Events, metrics, logs and terminals."""
    name = "a\x1b[2J\u202e\n"
    hostile = replace(
        FULL,
        node_name=name,
        claim=name,
        notes=(name,),
        victims=(name,),
        evidence=(replace(FULL.evidence[0], instance=name),),
        pods=(Pod(name, name, name, name, 1, 1, Confidence.MEASURED),),
        subjects=(replace(FULL.subjects[0], name=name),),
        impact=replace(FULL.impact, subject=name) if FULL.impact else None,
        lost_time=(JobLoss(name, 1.0, 1),),
        delayed_job=DelayedJob(name, 2, 1.0, 1.0, 1.0),
    )
    assert json.dumps(hostile.to_dict(), ensure_ascii=False).isprintable()


def test_a_bare_finding_has_every_field_but_its_end_peers_and_impact() -> None:
    row = BARE.to_dict()
    assert set(row) == set(FULL.to_dict()) - {"resolvedTime", "resolution", "peers", "impact"}
    assert row["hypothesis"] is None
    assert row["pods"] == row["evidence"] == []


def test_the_row_has_the_cost_as_decimal_strings() -> None:
    costly = replace(BARE, cost=Cost(8, 0.857142, 1.8004, 1.2, 2.4))
    assert costly.to_dict()["cost"] == {
        "gpus": 8, "lostGPUs": "0.86", "lostGPUHours": "1.800", "lowGPUHours": "1.200",
        "highGPUHours": "2.400",
    }  # fmt: skip
    assert (costly.lost_gpu_hours, BARE.lost_gpu_hours) == (1.8004, 0.0)


def test_a_cost_goes_on_with_its_rate_and_its_interval_grows_in_proportion() -> None:
    cost = Cost(8, 0.9, 1.8, 1.2, 2.4)
    later = cost.extended(3600.0)
    assert (later.gpus, later.lost_gpus) == (8, 0.9)
    assert (later.lost_gpu_hours, later.low, later.high) == pytest.approx((2.7, 1.8, 3.6))
    assert cost.extended(0.0) == cost.extended(-9.0) == cost


def test_a_cost_without_any_hours_yet_is_between_nothing_and_all() -> None:
    later = Cost(8, 2.0, 0.0, 0.0, 0.0).extended(1800.0)
    assert (later.lost_gpu_hours, later.low, later.high) == (1.0, 0.0, 1.0)


def test_the_row_holds_no_floats() -> None:
    """Reports are Kubernetes objects: integers and decimal strings only."""

    def check(part: object) -> None:
        assert not isinstance(part, float)
        if isinstance(part, dict | list):
            for inner in part.values() if isinstance(part, dict) else part:
                check(inner)

    check(replace(FULL, cost=Cost(8, 0.9, 1.8, 1.2, 2.4)).to_dict())


def test_an_identity_is_stable_and_a_name_kubernetes_takes() -> None:
    name = finding_id("n1", Subsystem.CPU, NOW_NS)
    assert name == "cpu-b775d90229"
    assert name.replace("-", "").isalnum()
    assert name == name.lower()


@given(
    st.text(max_size=9), st.sampled_from(Subsystem), st.integers(0, NOW_NS), st.integers(1, 10**9)
)
def test_other_episodes_have_other_identities(
    node: str, subsystem: Subsystem, opened_ns: int, later: int
) -> None:
    if node.isprintable():
        name = finding_id(node, subsystem, opened_ns)
        assert name == finding_id(node, subsystem, opened_ns)
        assert name != finding_id(node, subsystem, opened_ns + later)
        assert name != finding_id(f"{node}x", subsystem, opened_ns)


@given(st.integers(0, 4_000_000_000_000_000_000))
def test_times_parse_back_to_the_millisecond(ns: int) -> None:
    parsed = datetime.fromisoformat(rfc3339(ns))
    assert round(parsed.timestamp() * 1000) == ns // 1_000_000


def test_severities_are_ordered() -> None:
    ranks = [severity.rank for severity in Severity]
    assert ranks == [0, 1, 2, 3]
    assert Severity.CRITICAL.rank > Severity.HIGH.rank > Severity.LOW.rank
