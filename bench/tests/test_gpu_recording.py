"""Faults beside a training job on a real H100, as recorded, are judged again.

``bench/faults --replay tests/fixtures/gpu_faults`` prints the same.  Columns that no finding needs
were taken out, and ``gpu.contention`` was computed from the use by each process.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from faultbench.evaluation import Judged, judge
from faultbench.sessions import sessions
from reveal_contract.settings import AnalyzerSettings

RECORDED = Path(__file__).parents[2] / "tests/fixtures/gpu_faults"
# fault -> cause, and the share of its pace that the job lost by its own log, about
FOUND = {
    "gpu_shared": ("GPUShared", 0.50),
    "cpu_beside": ("CPUContention", 0.13),
    "stalled_one": ("StalledSubject", 0.85),
    "sync_storm": ("FlushStorm", 0.0),
}
HARMLESS = {"gpu_memory": 0.0, "gpu_pcie": 0.02, "gpu_shared_weak": 0.07}


@pytest.fixture(scope="module")
def judged() -> Judged:
    (session,) = sessions(RECORDED)
    return judge(session, AnalyzerSettings(), chained=True)


def test_what_slows_a_job_on_a_gpu_is_found_and_its_subject_named(judged: Judged) -> None:
    outcomes = {each.case.fault: each for each in judged.outcomes}
    assert outcomes.keys() == FOUND.keys() | HARMLESS.keys()
    for fault, (cause, lost) in FOUND.items():
        outcome = outcomes[fault]
        assert (outcome.by, outcome.subsystem_right, outcome.subject_right) == (cause, True, True)
        assert outcome.found is not None and outcome.found < 9
        assert outcome.case.lost == pytest.approx(lost, abs=0.03)


def test_what_costs_the_job_little_is_no_finding(judged: Judged) -> None:
    outcomes = {each.case.fault: each for each in judged.outcomes}
    for fault, lost in HARMLESS.items():
        assert (fault, outcomes[fault].found) == (fault, None)
        assert outcomes[fault].case.lost == pytest.approx(lost, abs=0.03)


def test_a_card_that_its_power_limits_and_checkpoints_are_no_finding(judged: Judged) -> None:
    assert judged.healthy_seconds > 90
    assert (judged.false, judged.in_warmup) == ((), ())
