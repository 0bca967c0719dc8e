"""The effect of a change in a report, on a real API server: it has a manager of its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cluster.plane import ControlPlane
from reveal_analyzer.sinks.kube import sink
from reveal_contract.finding import FindingChange, FindingUpdate, Severity
from reveal_contract.verification import Effect, Verdict, Verification
from support.api_server import Kube, wait_for
from support.api_server_sink import DEFINITIONS, ApiServerSink
from support.finding_factory import START_NS, changed, opened, resolved

FOUND = Verification(
    Verdict.NO_EFFECT, "cpu smt: on -> off", "ml/train-0", START_NS, Effect(0.4, -0.9, 1.7)
)
LATER = replace(FOUND, verdict=Verdict.UNKNOWN, change="the cause ended", effect=None)


@pytest.fixture
def bench(
    control_plane: ControlPlane, kube: Kube, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ApiServerSink]:
    monkeypatch.setattr(sink, "ROUND_SECONDS", 0.05)
    kube.install(*DEFINITIONS)
    created = ApiServerSink(control_plane, kube, tmp_path)
    yield created
    created.sink.close()


def verified(update: FindingUpdate, found: Verification) -> FindingUpdate:
    return FindingUpdate(FindingChange.VERIFIED, replace(update.finding, verification=found))


def status(bench: ApiServerSink) -> dict[str, Any]:
    (found,) = bench.reports
    return dict(found["status"])


def test_the_effect_of_a_change_stays_while_the_report_is_written_again(
    bench: ApiServerSink,
) -> None:
    bench.update(opened())
    bench.idle()
    bench.update(verified(opened(), FOUND))
    wait_for(lambda: "verification" in status(bench), 20, "the verification")
    assert status(bench)["verification"] == {
        "verdict": "NoEffect", "change": "cpu smt: on -> off", "subject": "ml/train-0",
        "time": "2023-11-14T22:13:20.123Z",
        "effectPercent": "0.4", "lowPercent": "-0.9", "highPercent": "1.7",
    }  # fmt: skip
    assert (status(bench)["state"], status(bench)["severity"]) == ("Open", "Medium")
    bench.update(changed(severity=Severity.HIGH))
    wait_for(lambda: status(bench)["severity"] == "High", 20, "the severity")
    assert status(bench)["verification"]["verdict"] == "NoEffect"


def test_a_later_effect_replaces_the_earlier_in_a_report_that_is_over(
    bench: ApiServerSink,
) -> None:
    bench.update(opened(), verified(opened(), FOUND))
    bench.idle()
    wait_for(lambda: "verification" in status(bench), 20, "the verification")
    bench.update(resolved())
    wait_for(lambda: status(bench).get("state") == "Resolved", 20, "it is resolved")
    bench.idle()
    bench.update(verified(resolved(), LATER))
    wait_for(lambda: status(bench)["verification"]["verdict"] == "Unknown", 20, "the later one")
    assert "effectPercent" not in status(bench)["verification"]
    assert status(bench)["state"] == "Resolved"
