"""What a change did for a job reaches its report, also when that is over."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reveal_contract.finding import FindingChange, FindingUpdate
from reveal_contract.kube.errors import InvalidObjectError, UnavailableError
from reveal_contract.verification import Effect, Verdict, Verification
from support.fake_kube import FakeKube
from support.finding_factory import START_NS, opened, resolved
from support.kube_sink_harness import SinkHarness

NAME = "p-n1-cpu-1"
FOUND = Verification(
    Verdict.IMPROVED, "cpu smt: on -> off", "ml/train-0", START_NS, Effect(20.0, 18.5, 21.5)
)


pytestmark = pytest.mark.usefixtures("hurried")


def verified(update: FindingUpdate, found: Verification = FOUND) -> FindingUpdate:
    return FindingUpdate(FindingChange.VERIFIED, replace(update.finding, verification=found))


def written(api: FakeKube) -> list[dict[str, Any]]:
    return list(api.verified.values())


def test_a_resolved_report_gets_the_effect_and_no_event(bench: SinkHarness) -> None:
    bench.update(opened())
    bench.update(resolved())
    bench.until(lambda: bench.api.reasons() == ["AnomalyDetected", "AnomalyResolved"])
    bench.update(verified(resolved()))
    bench.until(lambda: bench.api.verified)
    assert bench.api.verified[NAME] == {
        "verdict": "Improved", "change": "cpu smt: on -> off", "subject": "ml/train-0",
        "effectPercent": "20.0", "lowPercent": "18.5", "highPercent": "21.5",
        "time": "2023-11-14T22:13:20.123Z",
    }  # fmt: skip
    assert bench.state == "Resolved"
    assert bench.api.reasons() == ["AnomalyDetected", "AnomalyResolved"]
    assert list(bench.api.reports) == [NAME]
    assert bench.sink.counts()["report verified"] == 1


def test_an_open_report_gets_it_and_stays_open(bench: SinkHarness) -> None:
    bench.update(opened())
    bench.update(verified(opened()))
    bench.until(lambda: bench.api.verified)
    assert bench.state == "Open"


def test_a_report_that_another_finding_continues_gets_it_under_its_name(tmp_path: Path) -> None:
    api = FakeKube()
    first = SinkHarness(tmp_path / "a", api)
    first.update(opened())
    first.until(lambda: api.reasons() == ["AnomalyDetected"])
    first.sink.close()
    second = SinkHarness(tmp_path / "b", api)
    second.update(opened("cpu-next"))
    second.until(second.idle)
    second.update(resolved("cpu-next"))
    second.until(lambda: api.reports[NAME]["status"]["state"] == "Resolved")
    second.update(verified(resolved("cpu-next")))
    second.until(lambda: api.verified)
    assert list(api.verified) == [NAME]
    second.sink.close()


def test_a_finding_without_a_report_is_left_alone(bench: SinkHarness) -> None:
    bench.update(verified(resolved("mild-1")))
    bench.until(lambda: ("apply_verification", "p-n1-mild-1") in bench.api.calls)
    bench.until(bench.idle)
    assert (written(bench.api), bench.api.reports) == ([], {})


def test_an_outage_delays_it(bench: SinkHarness) -> None:
    bench.update(opened())
    bench.until(lambda: bench.api.reasons() == ["AnomalyDetected"])
    bench.api.fail = lambda name, about: UnavailableError("503")
    bench.update(verified(opened()))
    bench.until(lambda: bench.sink.counts()["up"] == 0)
    bench.api.fail = lambda name, about: None
    bench.until(lambda: bench.api.verified)
    assert bench.sink.counts()["report verified"] == 1


def test_a_verification_that_the_api_rejects_stops_no_other(
    bench: SinkHarness, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(name: str, about: str) -> Exception | None:
        bad = name == "apply_verification" and about == "p-n1-bad"
        return InvalidObjectError("422 Invalid: status.verification") if bad else None

    bench.api.fail = fail
    bench.update(opened("bad"), opened())
    bench.update(verified(opened("bad")), verified(opened()))
    bench.until(lambda: NAME in bench.api.verified)
    assert caplog.text.count("rejects the verification of p-n1-bad") == 1
