"""``reveal analyze`` on recordings, called as users do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reveal_cli.errors import DONE, FOUND, USAGE
from support.analyze_command import recording, rows, run

pytestmark = pytest.mark.usefixtures("own_signals")

Capture = pytest.CaptureFixture[str]


def test_the_live_score_of_a_recording_is_a_row_a_second(tmp_path: Path, capsys: Capture) -> None:
    path = recording(tmp_path / "r.rvl", 150, range(100, 115))
    assert run("analyze", path, "--scores", tmp_path / "s.csv") == DONE
    written = rows(tmp_path / "s.csv")
    assert len(written) == 150
    assert written[0]["time"] == "2023-11-14T22:13:20.000Z"
    assert (written[0]["score"], written[0]["anomalous"]) == ("", "0")  # while it is learned
    assert {row["threshold"] for row in written} == {"1"}
    alarms = [second for second, row in enumerate(written) if row["anomalous"] == "1"]
    assert set(range(103, 112)) <= set(alarms)
    assert float(written[105]["Network"]) == float(written[105]["score"])
    assert not [second for second in alarms if not 98 <= second <= 130]


def test_a_baseline_recording_replaces_the_warm_up(tmp_path: Path, capsys: Capture) -> None:
    short = recording(tmp_path / "r.rvl", 30, range(10, 25))
    healthy = recording(tmp_path / "h.rvl", 90)
    assert run("analyze", short, "--fail-on", "low", "--json") == DONE
    assert run("analyze", short, "--baseline", healthy, "--fail-on", "low", "--json") == FOUND
    assert "Network" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--time", "x"), "--time is for tables"),
        (("--period", "1s"), "--period is for tables"),
        (("--entity", "x"), "--entity is for tables"),
        (("--format", "sadf"), "--format is for tables"),
        (("--day-first",), "--day-first is for tables"),
        (("--dry-run",), "--dry-run is for tables"),
        (("--stride", "1500ms"), "--stride of a recording must be whole seconds"),
        (("--stride", "5s"), "not below strideSeconds"),
        (("--window", "1500ms"), "must be whole seconds"),
        (("--window", "90s"), "windowSeconds: must be 1 to 60"),
        (("--mode", "paper", "--scores", "s.csv"), "writes the live score"),
        (("--mode", "offline", "--baseline", "r.rvl"), "compares a recording with itself"),
    ],
)
def test_flags_of_tables_are_refused_for_recordings(
    tmp_path: Path, capsys: Capture, flags: tuple[str, ...], message: str
) -> None:
    assert run("analyze", recording(tmp_path / "r.rvl", 20), *flags) == USAGE
    assert message in capsys.readouterr().err


def test_windows_and_strides_are_those_of_the_flags(tmp_path: Path, capsys: Capture) -> None:
    path = recording(tmp_path / "r.rvl", 200, range(150, 170))

    def begins(*flags: str) -> list[str]:
        assert run("analyze", path, "--mode", "paper", "--json", *flags) == DONE
        rows = map(json.loads, capsys.readouterr().out.splitlines())
        return [row["firstSeenTime"] for row in rows if row["kind"] == "Anomaly"]

    plain, wide = begins(), begins("--window", "6s", "--stride", "3s")
    assert plain
    assert wide
    assert plain != wide


def test_offline_mode_ignores_the_live_judgement(tmp_path: Path, capsys: Capture) -> None:
    path = recording(tmp_path / "r.rvl", 200, range(20, 32))
    assert run("analyze", path, "--mode", "offline", "--json") == DONE
    (finding,) = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert finding["subsystem"] == "Network"
