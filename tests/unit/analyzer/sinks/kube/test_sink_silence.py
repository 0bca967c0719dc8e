"""A silenced report: no new Events and no node condition, until the silence ends."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from reveal_analyzer.sinks.kube import backoff, sink
from reveal_contract.finding import Severity
from reveal_contract.kube.errors import UnavailableError
from reveal_contract.kube.silence import NO_SILENCE, Silence
from support.finding_factory import SECOND, changed, opened, resolved
from support.kube_sink_harness import SinkHarness

NAME = "p-n1-cpu-1"
HIGH = {"severity": Severity.HIGH}
CRITICAL = {"severity": Severity.CRITICAL}


@pytest.fixture(autouse=True)
def _hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backoff, "FIRST_S", 0.01)
    monkeypatch.setattr(sink, "ROUND_SECONDS", 0.01)
    monkeypatch.setattr(sink, "SILENCE_SECONDS", 0.02)


@pytest.fixture
def harness() -> Iterator[SinkHarness]:
    created = SinkHarness(node_conditions=True)
    yield created
    created.sink.close()


def silence(harness: SinkHarness, seconds: float = 3600.0, name: str = NAME) -> None:
    until_ns = time.time_ns() + int(seconds * SECOND)
    harness.api.annotate(name, Silence(until_ns, "new memory").to_annotations())


def open_finding(harness: SinkHarness) -> None:
    harness.update(opened(**HIGH))
    harness.until(lambda: harness.api.reasons() == ["AnomalyDetected"])


def severity(harness: SinkHarness) -> str:
    return str(harness.api.reports[NAME]["status"]["severity"])


def test_a_silenced_report_is_written_without_events(harness: SinkHarness) -> None:
    open_finding(harness)
    silence(harness)
    harness.update(changed(**CRITICAL))
    harness.until(lambda: severity(harness) == "Critical" and harness.idle())
    harness.update(resolved(**CRITICAL))
    harness.until(lambda: harness.state == "Resolved" and harness.idle())
    assert harness.api.reasons() == ["AnomalyDetected"]
    assert harness.sink.counts()["event silenced"] == 2


def test_after_the_end_there_are_events_again(harness: SinkHarness) -> None:
    open_finding(harness)
    silence(harness, seconds=-1.0)
    harness.update(changed(**CRITICAL))
    harness.until(lambda: harness.api.reasons() == ["AnomalyDetected", "AnomalyEscalated"])


def test_a_silence_that_was_removed_is_over(harness: SinkHarness) -> None:
    open_finding(harness)
    silence(harness)
    harness.update(changed(**CRITICAL))
    harness.until(lambda: severity(harness) == "Critical" and harness.idle())
    harness.api.annotate(NAME, NO_SILENCE)
    harness.update(resolved(**CRITICAL))
    harness.until(lambda: harness.api.reasons() == ["AnomalyDetected", "AnomalyResolved"])


def test_the_silence_is_read_before_a_reminder() -> None:
    """The core of the report is the same, so without it nothing would be written before."""
    harness = SinkHarness()  # without node conditions silences are not read by themselves
    try:
        open_finding(harness)
        silence(harness)
        [entry] = list(harness.sink._store)
        with harness.sink._changed:
            entry.reminders = -1  # the next is due
        harness.until(lambda: harness.sink.counts().get("event silenced"))
        assert harness.api.reasons() == ["AnomalyDetected"]
    finally:
        harness.sink.close()


def test_a_failed_event_does_not_write_the_report_again(harness: SinkHarness) -> None:
    failures = iter([True, True, True])
    harness.api.fail = lambda name, about: (
        UnavailableError("webhook", 500)
        if name == "create_event" and next(failures, False)
        else None
    )
    open_finding(harness)
    assert harness.api.calls.count(("apply_report_status", NAME)) == 1


def test_a_silence_removes_the_condition_and_its_end_brings_it_back(harness: SinkHarness) -> None:
    open_finding(harness)
    harness.until(lambda: harness.api.condition("n1"))
    silence(harness)
    harness.until(lambda: harness.api.condition("n1") is None)
    silence(harness, seconds=0.2)
    harness.until(lambda: harness.api.condition("n1"))


def test_the_condition_stays_for_another_report_of_the_node(harness: SinkHarness) -> None:
    open_finding(harness)
    harness.update(opened("gpu-2", claim="GPU is slow", **CRITICAL))
    harness.until(lambda: (harness.api.condition("n1") or {}).get("reason") == "CPUCritical")
    silence(harness, name="p-n1-gpu-2")
    harness.until(lambda: (harness.api.condition("n1") or {}).get("reason") == "CPUHigh")


def test_silences_are_not_read_where_nothing_depends_on_them(harness: SinkHarness) -> None:
    harness.update(opened(severity=Severity.LOW))
    harness.until(lambda: harness.api.reasons() == ["AnomalyDetected"])
    time.sleep(0.1)
    assert ("urgent_metadata", "p") not in harness.api.calls


def test_an_analyzer_that_restarts_reads_the_silence_from_the_list(harness: SinkHarness) -> None:
    open_finding(harness)
    harness.sink.close()
    silence(harness)
    second = SinkHarness(api=harness.api, node_conditions=True)
    try:
        second.until(lambda: list(second.sink._store))
        [entry] = list(second.sink._store)
        assert entry.is_silenced(time.time_ns())
        second.update(changed(**CRITICAL))
        second.until(lambda: severity(second) == "Critical" and second.idle())
        assert second.api.reasons() == ["AnomalyDetected"]
    finally:
        second.sink.close()
