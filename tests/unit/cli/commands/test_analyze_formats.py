"""``reveal analyze`` on what tools write, and on tables whose columns the user names."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest

from reveal_cli.errors import DONE, USAGE
from support.analyze_command import run
from support.format_samples import FAULT, FormatSample, format_samples
from support.format_variants import format_variants

pytestmark = pytest.mark.usefixtures("own_signals")

Capture = pytest.CaptureFixture[str]


def long_form(path: Path, samples: int = 240, fault: range = range(150, 170)) -> Path:
    """Two GPUs a second, the second one with a fault, in the date form of the United States."""
    random = np.random.default_rng(2)
    with path.open("w") as file:
        file.write("when,unit,power,spare\n")
        for sample in range(samples):
            for unit in range(2):
                power = 300 + random.normal() - 120 * (unit == 1 and sample in fault)
                clock = f"10:{sample // 60:02d}:{sample % 60:02d}"
                file.write(f"05/06/2026 {clock},{unit},{power:.2f},{random.normal():.3f}\n")
    return path


FORM = ("--entity", "unit", "--value", "power", "--month-first")


def test_what_was_understood_is_a_line_before_the_judgement(
    tmp_path: Path, capsys: Capture
) -> None:
    assert run("analyze", long_form(tmp_path / "t.csv"), *FORM) == DONE
    output = capsys.readouterr()
    assert output.err.splitlines()[0] == (
        f"reveal: {tmp_path / 't.csv'}: read 480 rows as 240 samples, one every 1 s, from"
        " 2026-05-06T10:00:00Z to 2026-05-06T10:03:59Z; times in when (zone UTC); 2 entities by"
        " unit; 2 metrics of t; 1 column left out"
    )
    assert "10:02:29" in output.out  # the step itself is the first abnormal change
    # the samples, not the rows
    assert "240 samples of 2 metrics, one every 1 s" in " ".join(output.out.split())


def test_a_dry_run_prints_what_was_understood_and_judges_nothing(
    tmp_path: Path, capsys: Capture
) -> None:
    assert run("analyze", long_form(tmp_path / "t.csv"), *FORM, "--dry-run") == DONE
    output = capsys.readouterr()
    lines = output.out.splitlines()
    assert lines[0].startswith("rows: 480 rows as 240 samples, one every 1 s, from 2026-05-06T10")
    assert "clock: times in when (zone UTC)" in lines
    assert "entities: 2 by column unit" in lines
    assert "left out: spare (not a metric)" in lines
    assert "finding" not in output.out
    assert lines[-1].split()[0] == "1"
    assert not output.err


@pytest.mark.parametrize("flags", [("--json",), ("--scores", "s.csv"), ("--findings", "f.jsonl")])
def test_a_dry_run_has_no_findings(tmp_path: Path, capsys: Capture, flags: tuple[str, ...]) -> None:
    assert run("analyze", long_form(tmp_path / "t.csv"), "--dry-run", *flags) == USAGE
    assert "judges nothing" in capsys.readouterr().err


def test_an_unknown_format_lists_all_formats(tmp_path: Path, capsys: Capture) -> None:
    assert run("analyze", long_form(tmp_path / "t.csv"), "--format", "nothing") == USAGE
    assert "--format nothing is not known: sadf, pidstat" in capsys.readouterr().err


def test_times_of_day_are_spans_and_are_displayed(tmp_path: Path, capsys: Capture) -> None:
    lines = long_form(tmp_path / "t.csv").read_text().replace("05/06/2026 10:", "9:")
    path = tmp_path / "u.csv"
    path.write_text(lines)
    assert run("analyze", path, "--entity", "unit", "--value", "power") == DONE
    assert "09:02:29" in capsys.readouterr().out
    span = ("--span", "9:02:30/9:02:49")
    assert run("explain", path, *span, "--entity", "unit", "--value", "power") == DONE
    assert "9:02:30 to 9:02:49" in capsys.readouterr().out


@pytest.mark.parametrize(
    "sample", [*format_samples(), *format_variants()], ids=lambda sample: sample.format
)
def test_the_fault_in_a_file_of_a_tool_is_found(
    tmp_path: Path, capsys: Capture, sample: FormatSample
) -> None:
    path = tmp_path / "t.txt"
    path.write_text(sample.text)
    assert run("analyze", path, "--format", sample.format, "--json") == DONE
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    first = sample.first_ns / 1e9 + FAULT[0]
    about = [
        each
        for each in found
        if abs(datetime.fromisoformat(each["firstSeenTime"]).timestamp() - first) <= 2
        and each["evidence"][0]["metric"] == sample.metric
    ]
    assert about, found
