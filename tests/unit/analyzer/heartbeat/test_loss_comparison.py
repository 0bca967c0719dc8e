"""Whether the slowdown of a job by its steps and that by its lost time agree."""

from __future__ import annotations

from reveal_analyzer.heartbeat.loss_comparison import comparison_note
from reveal_contract.finding import Impact, JobLoss

JOB = "/job"


def impact(percent: float) -> Impact:
    return Impact(JOB, percent, percent - 3, percent + 3, 1000.0, 800.0, 0, 30, "cpu", 90)


def lost(percent: float, subject: str = JOB) -> JobLoss:
    return JobLoss(subject, percent, 30)


def test_slowdowns_that_agree_need_no_note() -> None:
    assert comparison_note(impact(25), [lost(20)]) == ""  # 20 % lost is 25 % longer
    assert comparison_note(impact(25), [lost(50, "/another")]) == ""
    assert comparison_note(impact(25), []) == ""


def test_steps_that_lost_time_does_not_explain_run_slower() -> None:
    note = comparison_note(impact(60), [lost(20)])
    assert note == (
        "steps of /job take 60 % longer, lost time is worth 25 %:"
        " it also runs slower, or its threads wait for each other"
    )


def test_lost_time_may_delay_no_step() -> None:
    note = comparison_note(impact(10), [lost(50)])
    assert note == (
        "steps of /job take 10 % longer, lost time is worth 100 %:"
        " not all of what it lost delays its steps"
    )
