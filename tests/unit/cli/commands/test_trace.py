"""``reveal trace``, called as users do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reveal_cli.errors import DONE, ERROR, USAGE
from support.analyze_command import recording, run
from support.finding_factory import finding
from support.perfetto_trace import decoded

pytestmark = pytest.mark.usefixtures("own_signals")

Capture = pytest.CaptureFixture[str]
START_NS = 1_700_000_000 * 1_000_000_000


def test_a_recording_becomes_a_trace_of_absolute_times(tmp_path: Path) -> None:
    path, output = recording(tmp_path / "r.rvl", 150, range(100, 115)), tmp_path / "x.pftrace"
    assert run("trace", path, "-o", output) == DONE
    trace = decoded(output.read_bytes())
    assert trace.pids.keys() == {"n1"}
    assert len(trace.of("finding")) == 1
    assert trace.clocks == {6: START_NS, 1: START_NS}  # of another boot: 0 is 1970


def test_the_origin_is_that_of_another_trace(tmp_path: Path, capsys: Capture) -> None:
    path, output = recording(tmp_path / "r.rvl", 20), tmp_path / "x.pftrace"
    assert run("trace", path, "--origin", START_NS - 7, "-o", output) == DONE
    assert decoded(output.read_bytes()).clocks == {6: 7, 1: START_NS}
    assert run("trace", path, "--origin", START_NS + 1, "-o", output) == USAGE
    assert "is after the recording begins (2023-11-14T22:13:20.000Z)" in capsys.readouterr().err
    assert run("trace", path, "--findings", tmp_path / "none", "-o", output) == ERROR


def test_an_origin_that_is_no_time_is_refused(tmp_path: Path, capsys: Capture) -> None:
    with pytest.raises(SystemExit, match="2"):
        run("trace", tmp_path, "--origin", "-1.5", "-o", tmp_path / "x")
    assert "nanoseconds" in capsys.readouterr().err


def test_a_directory_of_a_scan_is_drawn_with_the_findings_of_the_scan(tmp_path: Path) -> None:
    recording(tmp_path / "recording.rvl", 20)
    (tmp_path / "findings.jsonl").write_text(json.dumps(finding().to_dict()) + "\n")
    assert run("trace", tmp_path, "-o", tmp_path / "x.pftrace") == DONE
    [found] = decoded((tmp_path / "x.pftrace").read_bytes()).of("finding")
    assert found.details["claim"] == "CPU is slow"


def test_the_findings_of_the_flag_are_drawn(tmp_path: Path) -> None:
    path, findings = recording(tmp_path / "r.rvl", 20), tmp_path / "f.jsonl"
    findings.write_text(json.dumps(finding(claim="mine").to_dict()) + "\n")
    assert run("trace", path, "--findings", findings, "-o", tmp_path / "x") == DONE
    [found] = decoded((tmp_path / "x").read_bytes()).of("finding")
    assert found.details["claim"] == "mine"


def test_an_input_is_never_overwritten(tmp_path: Path, capsys: Capture) -> None:
    path = recording(tmp_path / "recording.rvl", 20)
    before = path.read_bytes()
    assert run("trace", tmp_path, "-o", path) == USAGE
    assert path.read_bytes() == before


def test_a_directory_without_a_recording_is_named(tmp_path: Path, capsys: Capture) -> None:
    assert run("trace", tmp_path, "-o", tmp_path / "x") == ERROR
    assert "has no recording.rvl" in capsys.readouterr().err
