"""The OpenTelemetry sink: what is sent, kept, refused and dropped, without its thread."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from reveal_analyzer.sinks.otlp import sink as module
from reveal_analyzer.sinks.otlp.client import OtlpError
from reveal_analyzer.sinks.otlp.sink import LOGS, METRICS, STATUS_SECONDS, OtlpSink, sink_of
from reveal_analyzer.telemetry.snapshot import SILENT_SECONDS, NodeSnapshot, Snapshot
from reveal_contract.finding import FindingChange, FindingUpdate, Severity, State
from reveal_contract.settings import AnalyzerSettings
from support.finding_factory import finding


@dataclass
class Receiver:
    """A client that keeps messages; ``error`` is raised instead."""

    endpoint: str = "http://receiver:4318"
    error: OtlpError | None = None
    sent: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)

    def send(self, path: str, message: Mapping[str, Any]) -> None:
        if self.error is not None:
            raise self.error
        self.sent.append((path, message))

    @property
    def claims(self) -> list[str]:
        """The texts of all records."""
        return [
            record["body"]["stringValue"]
            for path, message in self.sent
            if path == LOGS
            for resource in message["resourceLogs"]
            for record in resource["scopeLogs"][0]["logRecords"]
        ]


class Bench:
    """A sink whose clock and receiver are the test's."""

    def __init__(self, least: Severity = Severity.LOW) -> None:
        self.now_s = 0.0
        self.receiver = Receiver()
        self.sink = OtlpSink(self.receiver, "p", least, lambda: self.now_s)

    def update(self, change: FindingChange, id_: str = "a", **fields: Any) -> None:
        state = State.RESOLVED if change is FindingChange.RESOLVED else State.OPEN
        changed = replace(finding(id_), state=state, **fields)
        self.sink.write(FindingUpdate(change, changed))


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_changes_are_sent_in_order_and_suspicions_are_not(bench: Bench) -> None:
    bench.update(FindingChange.SUSPECTED, claim="none")
    bench.update(FindingChange.OPENED, claim="one")
    bench.update(FindingChange.RESOLVED, claim="two")
    assert bench.sink.step()
    assert bench.receiver.claims == ["one", "two"]
    assert bench.sink.counts == {"sent": 2, "refused": 0, "dropped": 0}


def test_an_outage_loses_nothing_and_is_a_degradation(bench: Bench) -> None:
    bench.receiver.error = OtlpError("/v1/logs: connection refused")
    bench.update(FindingChange.OPENED, claim="one")
    assert not bench.sink.step()
    [found] = bench.sink.degradations()
    assert found.reason == "OtlpNotSent"
    assert "http://receiver:4318" in found.message
    bench.receiver.error = None
    bench.update(FindingChange.CHANGED, claim="two")
    assert bench.sink.step()
    assert bench.receiver.claims == ["one", "two"]
    assert list(bench.sink.degradations()) == []


def test_what_the_receiver_never_takes_holds_up_nothing(bench: Bench) -> None:
    bench.receiver.error = OtlpError("/v1/logs: 400 bad", is_final=True)
    bench.update(FindingChange.OPENED, claim="one")
    bench.now_s = -1.0  # before the first status
    assert bench.sink.step()
    bench.receiver.error = None
    bench.update(FindingChange.CHANGED, claim="two")
    bench.sink.step()
    assert bench.receiver.claims == ["two"]
    assert bench.sink.counts == {"sent": 1, "refused": 1, "dropped": 0}


def test_the_oldest_are_dropped_and_counted(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_KEPT", 2)
    for claim in ("one", "two", "three"):
        bench.update(FindingChange.OPENED, claim, claim=claim)
    bench.sink.step()
    assert bench.receiver.claims == ["two", "three"]
    assert bench.sink.counts["dropped"] == 1


def test_minor_findings_are_left_out_unless_they_were_worse_before() -> None:
    bench = Bench(Severity.HIGH)
    bench.update(FindingChange.OPENED, "minor", claim="minor", severity=Severity.MEDIUM)
    bench.update(FindingChange.OPENED, claim="grave", severity=Severity.HIGH)
    bench.update(FindingChange.CHANGED, claim="less", severity=Severity.LOW)
    bench.update(FindingChange.RESOLVED, claim="over", severity=Severity.LOW)
    bench.sink.step()
    assert bench.receiver.claims == ["grave", "less", "over"]


def test_the_status_of_watched_nodes_is_sent_by_the_minute(bench: Bench) -> None:
    bench.sink.observe(Snapshot(1000.0, nodes={
        "n1": NodeSnapshot(999.0, 0.0), "gone": NodeSnapshot(1000.0 - SILENT_SECONDS, 0.0),
    }))  # fmt: skip
    bench.update(FindingChange.OPENED)
    for now_s, messages in ((0.0, 1), (STATUS_SECONDS - 1, 1), (STATUS_SECONDS, 2)):
        bench.now_s = now_s
        bench.sink.step()
        found = [message for path, message in bench.receiver.sent if path == METRICS]
        assert len(found) == messages
    [resource] = found[-1]["resourceMetrics"]
    name = {"key": "host.name", "value": {"stringValue": "n1"}}
    assert name in resource["resource"]["attributes"]
    assert "degraded" in str(resource)


def test_the_thread_sends_the_rest_when_it_ends(bench: Bench) -> None:
    bench.sink.start()
    bench.update(FindingChange.OPENED, claim="one")
    bench.sink.close()
    assert bench.receiver.claims == ["one"]


def test_there_is_no_sink_without_an_endpoint_or_where_findings_are_only_counted() -> None:
    endpoint = "http://receiver:4318"
    assert sink_of(AnalyzerSettings()) is None
    assert sink_of(AnalyzerSettings(otlp_endpoint=endpoint, publish="observe")) is None
