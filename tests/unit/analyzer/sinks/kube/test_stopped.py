"""Mode Observe: what an earlier run left open is resolved, and conditions are removed."""

from __future__ import annotations

import pytest

from reveal_analyzer.sinks.kube import backoff, sink
from reveal_contract.finding import FindingKind, Severity
from reveal_contract.kube.errors import UnavailableError
from support.fake_kube import FakeKube
from support.finding_factory import opened
from support.kube_sink_harness import SinkHarness


@pytest.fixture(autouse=True)
def _hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backoff, "FIRST_S", 0.01)
    monkeypatch.setattr(sink, "ROUND_SECONDS", 0.01)


def reported() -> FakeKube:
    """The API after an analyzer reported an anomaly and a configuration finding, and ended."""
    api = FakeKube()
    bench = SinkHarness(None, api, node_conditions=True)
    hint = opened("hint", kind=FindingKind.CONFIGURATION)
    bench.update(opened(severity=Severity.HIGH), hint)
    bench.until(lambda: api.condition("n1") and len(api.reports) == 2 and bench.idle())
    bench.sink.close()
    return api


def test_the_leader_resolves_what_is_open_and_removes_the_condition() -> None:
    api = reported()
    observing = SinkHarness(None, api, publish="observe", node_conditions=True)
    observing.observe(leads=True)
    observing.until(lambda: api.condition("n1") is None)
    for stored in api.reports.values():
        assert stored["status"]["state"] == "Resolved"
        assert stored["status"]["resolution"] == "Stopped"
        assert "reporting was switched off" in stored["status"]["notes"][-1]
        assert stored["metadata"]["labels"]["reveal.dev/state"] == "Resolved"
    assert api.reasons() == ["AnomalyDetected", "ReportingStopped"]
    observing.sink.close()


def test_an_outage_in_between_leaves_nothing_behind() -> None:
    api = reported()
    failures = iter(range(3))

    def fail(name: str, about: str) -> Exception | None:
        failing = name in ("label_report", "open_reports_on", "patch_node_conditions")
        return UnavailableError("503") if failing and next(failures, None) is not None else None

    api.fail = fail
    observing = SinkHarness(None, api, publish="observe")
    observing.observe(leads=True)
    observing.until(lambda: api.condition("n1") is None)
    assert {each["status"]["resolution"] for each in api.reports.values()} == {"Stopped"}
    observing.sink.close()


def test_an_analyzer_that_does_not_lead_writes_nothing() -> None:
    api = reported()
    before = list(api.writes)
    observing = SinkHarness(None, api, publish="observe")
    observing.observe(leads=False)
    observing.sink.close()
    assert api.writes == before
