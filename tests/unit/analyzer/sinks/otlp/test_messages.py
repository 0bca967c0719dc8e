"""Messages of OTLP: what a receiver gets of a finding, and of the health of nodes."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from google.protobuf import json_format
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)

from reveal_analyzer.sinks.otlp.messages import log_record, logs_message, status_message
from reveal_contract.finding import FindingChange, FindingUpdate, Resolution, Severity, State
from reveal_contract.metric import Subsystem
from support.finding_factory import ONSET_NS, SECOND, finding_with_all_fields

NOW = ONSET_NS + 100 * SECOND
FINDING = finding_with_all_fields(ONSET_NS)


def test_messages_are_those_of_the_protocol() -> None:
    """Its own schema takes them, without a field that it does not know."""
    update = FindingUpdate(FindingChange.OPENED, FINDING)
    text = json.dumps(logs_message([("n1", log_record(update, "p", NOW))]))
    logs = json_format.Parse(text, ExportLogsServiceRequest())
    [record] = logs.resource_logs[0].scope_logs[0].log_records
    assert record.time_unix_nano == FINDING.first_observed_ns
    assert record.body.string_value == FINDING.claim
    text = json.dumps(status_message({"n1": {Subsystem.CPU}}, ONSET_NS, NOW))
    metrics = json_format.Parse(text, ExportMetricsServiceRequest())
    [metric] = metrics.resource_metrics[0].scope_metrics[0].metrics
    assert sum(point.as_int for point in metric.sum.data_points) == len(Subsystem)


def plain(attributes: list[dict[str, Any]]) -> dict[str, Any]:
    """Return attributes as a mapping; each value has one kind."""
    found = {}
    for each in attributes:
        [(kind, value)] = each["value"].items()
        is_list = kind == "arrayValue"
        found[each["key"]] = [v["stringValue"] for v in value["values"]] if is_list else value
    return found


def test_a_finding_is_a_record_with_what_people_route_by() -> None:
    record = log_record(FindingUpdate(FindingChange.OPENED, FINDING), "training", NOW)
    assert record["timeUnixNano"] == str(FINDING.first_observed_ns)
    assert record["observedTimeUnixNano"] == str(NOW)
    assert record["eventName"] == "reveal.finding.opened"
    assert record["body"] == {"stringValue": FINDING.claim}
    found = plain(record["attributes"])
    assert found["reveal.profile"] == "training"
    assert found["reveal.finding.id"] == FINDING.id
    assert found["reveal.finding.subsystem"] == FINDING.subsystem.value
    assert FINDING.hypothesis is not None
    assert found["reveal.finding.cause"] == FINDING.hypothesis.name
    assert found["reveal.victims"] == list(FINDING.victims)
    assert float(found["reveal.slowdown_percent"]) > 0


@pytest.mark.parametrize(
    ("severity", "number"),
    [(Severity.LOW, 9), (Severity.MEDIUM, 13), (Severity.HIGH, 17), (Severity.CRITICAL, 21)],
)
def test_severities_are_those_of_the_log_data_model(severity: Severity, number: int) -> None:
    still_open = replace(FINDING, severity=severity, state=State.OPEN, resolved_ns=None)
    update = FindingUpdate(FindingChange.CHANGED, still_open)
    assert log_record(update, "p", NOW)["severityNumber"] == number


def test_an_end_is_informational_and_has_its_reason() -> None:
    ended = replace(
        FINDING, state=State.RESOLVED, resolution=Resolution.ENDED, resolved_ns=NOW - SECOND
    )
    record = log_record(FindingUpdate(FindingChange.RESOLVED, ended), "p", NOW)
    assert (record["severityText"], record["timeUnixNano"]) == ("INFO", str(NOW - SECOND))
    assert plain(record["attributes"])["reveal.finding.resolution"] == "Ended"


def test_records_are_grouped_by_node() -> None:
    message = logs_message([("n1", {"a": 1}), ("n2", {"b": 2}), ("n1", {"c": 3})])
    found = {
        plain(each["resource"]["attributes"])["host.name"]: each["scopeLogs"][0]["logRecords"]
        for each in message["resourceLogs"]
    }
    assert found == {"n1": [{"a": 1}, {"c": 3}], "n2": [{"b": 2}]}


def test_a_part_with_an_open_finding_is_degraded_and_all_others_are_ok() -> None:
    message = status_message({"n1": {Subsystem.GPU}, "n2": ()}, ONSET_NS, NOW)
    on = set()
    for resource in message["resourceMetrics"]:
        [metric] = resource["scopeMetrics"][0]["metrics"]
        assert (metric["name"], metric["unit"]) == ("hw.status", "1")
        assert metric["sum"]["isMonotonic"] is False
        points = metric["sum"]["dataPoints"]
        assert len(points) == 2 * len(Subsystem)
        values = [plain(point["attributes"]) | {"value": point["asInt"]} for point in points]
        on |= {(each["hw.id"], each["hw.state"]) for each in values if each["value"] == "1"}
    assert ("n1/gpu", "degraded") in on
    assert {state for part, state in on if part != "n1/gpu"} == {"ok"}
    assert len(on) == 2 * len(Subsystem)
