"""What a job lost, by its own log of steps."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from faultbench.recording_index import CaseRow
from faultbench.step_loss import lost, read_steps

ONSET, OFFSET = 10.0, 20.0


def case() -> CaseRow:
    times = [int(moment * 1e9) for moment in (0.0, ONSET, OFFSET, 30.0)]
    return CaseRow("x", "x", False, [], None, 0.0, *times)


def log(folder: Path, rows: list[dict[str, float | str]]) -> Path:
    path = folder / "steps.jsonl"
    path.write_text("not of the job\n" + "".join(json.dumps(row) + "\n" for row in rows))
    return path


def steps(begin: float, end: float, period: float) -> list[dict[str, float | str]]:
    count = int((end - begin) / period)
    return [
        {"time": begin + period * index, "event": "step", "seconds": 0.01} for index in range(count)
    ]


def test_a_job_of_half_its_pace_lost_half(tmp_path: Path) -> None:
    read = read_steps(log(tmp_path, steps(0.0, ONSET, 0.05) + steps(ONSET, OFFSET, 0.1)))
    assert lost(read, case()) == pytest.approx(0.5, abs=0.02)


def test_a_job_that_kept_its_pace_lost_nothing(tmp_path: Path) -> None:
    assert lost(read_steps(log(tmp_path, steps(0.0, 30.0, 0.03))), case()) == pytest.approx(
        0.0, abs=0.03
    )


def test_evaluations_and_checkpoints_are_no_loss(tmp_path: Path) -> None:
    rows = steps(0.0, 12.0, 0.05) + steps(15.4, 17.0, 0.05) + steps(17.4, OFFSET, 0.05)
    rows += [
        {"time": 15.0, "event": "evaluation", "accuracy": 0.5},
        {"time": 15.4, "event": "checkpoint", "seconds": 0.4},  # right after it
        {"time": 17.4, "event": "checkpoint", "seconds": 0.4},
    ]
    assert lost(read_steps(log(tmp_path, rows)), case()) == pytest.approx(0.0, abs=0.03)


def test_a_job_that_stood_still_for_half_the_time_lost_half(tmp_path: Path) -> None:
    rows = steps(0.0, ONSET, 0.05) + steps(ONSET, 15.25, 0.05)
    assert lost(read_steps(log(tmp_path, rows)), case()) == pytest.approx(0.5, abs=0.01)


def test_a_job_that_stood_still_lost_all(tmp_path: Path) -> None:
    assert lost(read_steps(log(tmp_path, steps(0.0, ONSET, 0.05))), case()) == 1.0


def test_the_loss_is_unknown_without_earlier_steps(tmp_path: Path) -> None:
    assert lost(read_steps(log(tmp_path, steps(ONSET + 1, OFFSET, 0.05))), case()) == 0.0
