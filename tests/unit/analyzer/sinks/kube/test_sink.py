"""The sink and its API: outages, refusals and restarts; each change is reported once."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from reveal_analyzer.sinks.kube.api import SinkApi
from reveal_analyzer.sinks.kube.spool import FILE
from reveal_analyzer.telemetry.snapshot import Snapshot
from reveal_contract.finding import Confidence, Pod, Severity
from reveal_contract.kube.errors import (
    SERVER_ERROR,
    ForbiddenError,
    InvalidObjectError,
    UnavailableError,
)
from support.fake_kube import FakeKube
from support.finding_factory import changed, finding, opened, resolved
from support.kube_sink_harness import SinkHarness

pytestmark = pytest.mark.usefixtures("hurried")


def test_a_finding_has_a_report_and_an_event_and_is_resolved(bench: SinkHarness) -> None:
    bench.update(opened())
    bench.until(lambda: bench.api.reasons() == ["AnomalyDetected"])
    stored = bench.api.reports["p-n1-cpu-1"]
    assert stored["metadata"]["ownerReferences"][0]["uid"] == "puid"
    assert stored["status"]["profileGeneration"] == 3
    (event,) = bench.api.events.values()
    assert event["regarding"] == {
        "apiVersion": "v1", "kind": "Node", "name": "n1", "uid": "n1-uid",
    }  # fmt: skip
    assert event["related"]["name"] == "p-n1-cpu-1"
    assert event["reportingInstance"] == "pod-0"
    bench.update(resolved())
    bench.until(lambda: bench.api.reasons() == ["AnomalyDetected", "AnomalyResolved"])
    assert bench.state == "Resolved"
    assert stored["metadata"]["labels"]["reveal.dev/state"] == "Resolved"
    assert bench.sink.counts()["report created"] == 1


def test_an_event_on_the_pod_too(bench: SinkHarness) -> None:
    bench.update(opened(pods=(Pod("ns", "train-0", "pod-uid", "", 80, 50, Confidence.MEASURED),)))
    bench.until(lambda: len(bench.api.events) == 2)
    on_pod = next(e for e in bench.api.events.values() if e["regarding"]["kind"] == "Pod")
    assert on_pod["metadata"]["namespace"] == "ns"
    assert on_pod["regarding"]["uid"] == "pod-uid"


def test_a_node_that_the_api_does_not_know_has_its_event_all_the_same(bench: SinkHarness) -> None:
    bench.update(opened("gpu-1", node_name="elsewhere"))
    bench.until(lambda: len(bench.api.events) == 1)
    (event,) = bench.api.events.values()
    assert event["regarding"] == {"apiVersion": "v1", "kind": "Node", "name": "elsewhere"}


@pytest.mark.parametrize(
    "call", ["create_report", "apply_report_status", "create_event", "node", "profile",
             "open_reports"],
)  # fmt: skip
def test_an_outage_in_any_step_repeats_nothing(call: str, tmp_path: Path) -> None:
    api = FakeKube()
    failures = iter(range(3))

    def fail(name: str, about: str) -> Exception | None:
        return (
            UnavailableError("503") if name == call and next(failures, None) is not None else None
        )

    api.fail = fail
    bench = SinkHarness(tmp_path, api)
    bench.update(opened())
    bench.until(lambda: api.reasons() == ["AnomalyDetected"] and bench.idle())
    assert [name for name, _ in api.calls].count("create_report") == 1 + 3 * (
        call == "create_report"
    )
    assert bench.state == "Open"
    bench.until(lambda: not (tmp_path / FILE).exists())
    bench.sink.close()


def test_a_persistent_error_of_an_event_stops_no_other_and_is_given_up(bench: SinkHarness) -> None:
    """A broken webhook of a namespace answers an Event with 500 for days."""
    bad = Pod("broken", "train-0", "u", "", 80, 50, Confidence.MEASURED)
    post = bench.api.create_event

    def fail_there(namespace: str, body: Any) -> None:
        if namespace == "broken":
            raise UnavailableError("500 InternalError: failed calling webhook", SERVER_ERROR)
        post(namespace, body)

    bench.api.create_event = fail_there  # type: ignore[method-assign]
    bench.update(opened("bad", pods=(bad,), severity=Severity.CRITICAL), opened())
    bench.until(lambda: len(bench.api.reports) == 2 and len(bench.api.events) == 2)
    assert bench.sink.counts()["up"] == 1
    bench.until(bench.idle)
    assert bench.sink.counts()["event dropped"] == 1
    bench.update(resolved("bad", severity=Severity.CRITICAL))
    bench.until(lambda: bench.api.reasons().count("AnomalyResolved") == 1)


def test_the_api_is_unavailable_when_every_request_fails(bench: SinkHarness) -> None:
    bench.until(lambda: ("open_reports", "p") in bench.api.calls)
    bench.api.fail = lambda name, about: UnavailableError("500 etcd", SERVER_ERROR)
    bench.update(*(opened(f"cpu-{n}") for n in range(20)))
    bench.until(lambda: bench.sink.counts()["up"] == 0)
    bench.api.fail = lambda name, about: None
    bench.until(lambda: bench.idle() and len(bench.api.reports) == 20)
    assert len(bench.api.events) == 20


def test_a_lost_response_creates_no_duplicate(bench: SinkHarness) -> None:
    """The request arrives, but its response does not."""
    done: set[str] = set()
    create, post = bench.api.create_report, bench.api.create_event

    def lost(name: str) -> None:
        if name not in done:
            done.add(name)
            raise UnavailableError("timed out")

    def create_and_lose(body: Any) -> Any:
        created = create(body)
        lost("report")
        return created

    def post_and_lose(namespace: str, body: Any) -> None:
        post(namespace, body)
        lost("event")

    bench.api.create_report = create_and_lose  # type: ignore[method-assign]
    bench.api.create_event = post_and_lose  # type: ignore[method-assign]
    bench.update(opened())
    bench.until(lambda: bench.idle() and bench.state == "Open")
    assert bench.api.reasons() == ["AnomalyDetected"]
    assert bench.sink.counts()["event repeated"] == 1
    assert "series" not in next(iter(bench.api.events.values()))


def test_while_it_is_away_the_latest_state_wins(bench: SinkHarness) -> None:
    bench.until(lambda: ("open_reports", "p") in bench.api.calls)
    bench.api.fail = lambda name, about: UnavailableError("connection refused")
    bench.update(opened(), changed(severity=Severity.HIGH))
    bench.update(*(changed(severity=Severity.HIGH, claim=f"{n}") for n in range(50)))
    bench.update(resolved(severity=Severity.HIGH))
    bench.until(lambda: bench.sink.counts()["up"] == 0)
    before = len(bench.api.calls)
    bench.api.fail = lambda name, about: None
    bench.until(bench.idle)
    statuses = [n for n, _ in bench.api.calls[before:] if n == "apply_report_status"]
    assert len(statuses) == 1
    assert bench.state == "Resolved"
    assert bench.api.reasons() == ["AnomalyDetected", "AnomalyEscalated", "AnomalyResolved"]
    assert bench.sink.counts()["up"] == 1


def test_a_restart_delivers_what_waited_once(tmp_path: Path) -> None:
    away = FakeKube()
    away.fail = lambda name, about: UnavailableError("connection refused")
    first = SinkHarness(tmp_path, away)
    first.update(opened())
    first.until((tmp_path / FILE).exists)
    first.sink.close()
    assert (tmp_path / FILE).exists()
    second = SinkHarness(tmp_path)
    second.until(lambda: second.api.reasons() == ["AnomalyDetected"] and second.idle())
    assert list(second.api.reports) == ["p-n1-cpu-1"]
    second.until(lambda: not (tmp_path / FILE).exists())
    second.sink.close()


def test_a_restart_between_report_and_event_sends_the_event(tmp_path: Path) -> None:
    api = FakeKube()
    api.fail = lambda name, about: UnavailableError("503") if name == "create_event" else None
    first = SinkHarness(tmp_path, api)
    first.update(opened())
    first.until(lambda: "apply_report_status" in first.api.writes)
    first.until((tmp_path / FILE).exists)
    first.sink.close()
    api.fail = lambda name, about: None
    second = SinkHarness(tmp_path, api)
    second.until(lambda: api.reasons() == ["AnomalyDetected"] and second.idle())
    second.update(opened())  # the next run finds the same again
    second.until(second.idle)
    second.sink.close()
    assert api.reasons() == ["AnomalyDetected"]


def test_a_take_over_between_report_and_event_sends_the_event(tmp_path: Path) -> None:
    api = FakeKube()
    api.fail = lambda name, about: UnavailableError("503") if name == "create_event" else None
    first = SinkHarness(tmp_path / "a", api)
    first.update(opened())
    first.until(lambda: "apply_report_status" in api.writes)
    first.sink.close()
    api.fail = lambda name, about: None
    for number in range(2):  # the second one does not repeat what the first one reported
        second = SinkHarness(tmp_path / f"b{number}", api)
        second.update(opened(f"cpu-next-{number}"))
        second.until(second.idle)
        second.until(lambda: api.reasons() == ["AnomalyDetected"])
        second.sink.close()
    assert list(api.reports) == ["p-n1-cpu-1"]


def test_the_end_delivers_what_is_left(tmp_path: Path) -> None:
    bench = SinkHarness(tmp_path)
    bench.until(lambda: ("open_reports", "p") in bench.api.calls)
    bench.update(opened())
    bench.sink.close()
    assert bench.state == "Open"
    assert bench.api.closed
    assert not (tmp_path / FILE).exists()


def test_a_missing_permission_is_logged_once_and_retried(
    bench: SinkHarness, caplog: pytest.LogCaptureFixture
) -> None:
    bench.until(lambda: ("open_reports", "p") in bench.api.calls)
    bench.api.fail = lambda name, about: ForbiddenError(
        "403 Forbidden: cannot create anomalyreports"
    )
    bench.update(opened())
    bench.until(lambda: len([1 for name, _ in bench.api.calls if name == "create_report"]) > 3)
    assert caplog.text.count("cannot create anomalyreports") == 1
    bench.api.fail = lambda name, about: None
    bench.until(lambda: bench.api.reasons() == ["AnomalyDetected"])


def test_a_profile_that_is_not_there_is_waited_for(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    api = FakeKube()
    profile = api.profiles.pop("p")
    bench = SinkHarness(tmp_path, api)
    bench.update(opened())
    bench.until(lambda: "there is no RevealProfile p" in caplog.text)
    assert api.writes == []
    api.profiles["p"] = profile
    bench.until(lambda: api.reasons() == ["AnomalyDetected"])
    bench.sink.close()


def test_a_report_that_is_not_taken_is_dropped_and_stops_no_other(
    bench: SinkHarness, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(name: str, about: str) -> Exception | None:
        bad = name == "apply_report_status" and about == "p-n1-bad"
        return InvalidObjectError("422 Invalid: status.evidence") if bad else None

    bench.api.fail = fail
    bench.update(opened("bad", severity=Severity.CRITICAL), opened())
    bench.until(lambda: bench.sink.counts().get("report invalid") == 1)
    bench.until(lambda: bench.api.reasons() == ["AnomalyDetected"])
    assert caplog.text.count("rejects report p-n1-bad") == 1


def test_events_that_are_not_taken_stop_no_report(
    bench: SinkHarness, caplog: pytest.LogCaptureFixture
) -> None:
    bench.api.fail = lambda name, about: (
        ForbiddenError("403 Forbidden: events") if name == "create_event" else None
    )
    bench.update(opened(), opened("cpu-2"))
    bench.until(lambda: bench.idle() and len(bench.api.reports) == 2)
    assert bench.sink.counts()["event dropped"] == 2
    assert caplog.text.count("403 Forbidden: events") == 1


def test_a_deleted_report_is_created_again(bench: SinkHarness) -> None:
    bench.update(opened())
    bench.until(lambda: bench.idle() and "p-n1-cpu-1" in bench.api.reports)
    bench.api.reports.clear()
    bench.update(changed(severity=Severity.HIGH))
    bench.until(lambda: bench.idle() and bench.api.reports)
    assert bench.state == "Open"


def test_another_analyzer_goes_on_with_the_same_report(tmp_path: Path) -> None:
    api = FakeKube()
    first = SinkHarness(tmp_path / "a", api)
    first.update(opened())
    first.until(lambda: api.reasons() == ["AnomalyDetected"])
    second = SinkHarness(tmp_path / "b", api)
    second.observe(shards=frozenset())
    second.observe()
    second.update(
        opened("cpu-next", severity=Severity.HIGH),
    )
    second.until(
        lambda: second.idle() and api.reports["p-n1-cpu-1"]["status"]["severity"] == "High"
    )
    second.update(resolved("cpu-next", severity=Severity.HIGH))
    second.until(lambda: api.reports["p-n1-cpu-1"]["status"]["state"] == "Resolved")
    assert list(api.reports) == ["p-n1-cpu-1"]
    for bench in (first, second):
        bench.sink.close()


def test_observing_writes_no_report(tmp_path: Path) -> None:
    bench = SinkHarness(tmp_path, publish="observe")
    bench.update(opened())
    bench.sink.close()
    assert bench.api.writes == []


def test_the_condition_of_a_node_comes_and_goes(tmp_path: Path) -> None:
    bench = SinkHarness(tmp_path, node_conditions=True)
    bench.update(opened())
    bench.until(lambda: bench.api.reports and bench.idle())
    assert bench.api.conditions == []
    bench.update(changed(severity=Severity.HIGH))
    bench.until(lambda: bench.api.conditions)
    (node, there) = bench.api.conditions[0]
    assert (node, there["type"], there["status"], there["reason"]) == (
        "n1", "RevealAnomaly", "True", "CPUHigh",
    )  # fmt: skip
    bench.update(changed(severity=Severity.HIGH, claim="other words"))
    bench.update(resolved(severity=Severity.HIGH))
    bench.until(lambda: bench.idle() and len(bench.api.conditions) == 2)
    assert bench.api.conditions[1] == ("n1", {"type": "RevealAnomaly", "$patch": "delete"})
    bench.sink.close()


def test_a_condition_that_an_earlier_run_left_is_taken_away(tmp_path: Path) -> None:
    api = FakeKube()
    first = SinkHarness(None, api, node_conditions=True)
    first.update(opened(severity=Severity.HIGH))
    first.until(lambda: api.conditions and first.idle())
    first.sink.close()
    second = SinkHarness(None, api, node_conditions=True)
    second.update(resolved(severity=Severity.HIGH))
    second.until(lambda: len(api.conditions) == 2)
    assert api.conditions[1][1]["$patch"] == "delete"
    second.sink.close()


def test_a_write_never_waits_for_the_api(bench: SinkHarness) -> None:
    def slow(name: str, about: str) -> Exception | None:
        time.sleep(0.3)
        return UnavailableError("timed out")

    bench.api.fail = slow
    bench.update(opened())
    began = time.monotonic()
    for number in range(100):
        bench.update(changed(claim=f"{number}"))
    assert time.monotonic() - began < 0.25
    bench.api.fail = lambda name, about: None


def test_an_unexpected_exception_costs_an_iteration_and_is_logged(
    bench: SinkHarness, caplog: pytest.LogCaptureFixture
) -> None:
    bench.api.fail = lambda name, about: ZeroDivisionError("a defect")
    bench.update(opened())
    bench.until(lambda: "a round of the Kubernetes sink failed" in caplog.text)
    bench.until(lambda: bench.sink.counts()["up"] == 0)
    bench.api.fail = lambda name, about: None
    bench.until(lambda: bench.api.reasons() == ["AnomalyDetected"])
    assert finding().id == "cpu-1"


class BrokenTelemetry:
    """A part of each round that fails by a defect."""

    def step(self, api: SinkApi, snapshot: Snapshot) -> None:
        raise OverflowError("cannot convert float infinity to integer")

    def close(self) -> None:
        """Do nothing."""


def test_a_defect_in_the_telemetry_stops_no_report_and_is_a_metric() -> None:
    bench = SinkHarness(telemetry=BrokenTelemetry())
    bench.update(opened())
    bench.until(lambda: bench.api.reasons() == ["AnomalyDetected"])
    bench.until(lambda: bench.sink.counts()["up"] == 0)
    bench.sink.close()
