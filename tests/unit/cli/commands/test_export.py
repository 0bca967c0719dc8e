"""``reveal export``, called as users do, and the tables that ``reveal analyze`` reads back."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from reveal_cli.errors import DONE, ERROR, USAGE
from support.analyze_command import recording, rows, run

pytestmark = pytest.mark.usefixtures("own_signals")

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return recording(tmp_path_factory.mktemp("export") / "r.rvl", 300, range(200, 215))


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_analyze_finds_in_the_table_what_is_in_the_recording(
    faulty: Path, tmp_path: Path, capsys: Capture, ending: str
) -> None:
    table = tmp_path / f"n1.{ending}"
    assert run("export", faulty, "-o", table) == DONE
    assert run("analyze", table, "--json") == DONE
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    [loss] = [each for each in found if each["subsystem"] == "Network"]
    assert "network.tcp.retrans_segs" in {each["metric"] for each in loss["evidence"]}
    assert loss["firstSeenTime"] in (f"2023-11-14T22:16:{second}.000Z" for second in (39, 40, 41))


def test_a_row_is_a_second_and_a_column_a_metric_of_an_instance(
    faulty: Path, tmp_path: Path
) -> None:
    table = tmp_path / "t.csv"
    assert run("export", faulty, "-o", table) == DONE
    written = rows(table)
    assert len(written) == 300
    assert written[0]["time"] == "2023-11-14T22:13:20.000Z"
    assert {"cpu.user", "cpu.user{0}", "network.nic.rx_bytes{eth0}", "cpu.busy"} <= written[
        0
    ].keys()
    assert "node" not in written[0]
    assert float(written[200]["network.tcp.retrans_segs"]) == pytest.approx(80, rel=0.2)
    assert float(written[0]["memory.mem_total"]) == pytest.approx(16 << 30, rel=0.1)  # bytes


def test_globs_select_metrics_and_instances(faulty: Path, tmp_path: Path, capsys: Capture) -> None:
    table = tmp_path / "t.csv"
    flags = ("--metric", "network.tcp.*_segs", "--metric", "*{eth0}")
    assert run("export", faulty, "-o", table, *flags) == DONE
    assert list(rows(table)[0]) == [
        "time", "network.tcp.out_segs", "network.tcp.retrans_segs", "network.nic.rx_bytes{eth0}",
    ]  # fmt: skip
    assert run("export", faulty, "-o", table, "--metric", "tape.*") == ERROR
    assert "--metric tape.*" in capsys.readouterr().err


def test_the_ending_selects_the_format(faulty: Path, tmp_path: Path, capsys: Capture) -> None:
    assert run("export", faulty, "-o", tmp_path / "t.xlsx") == USAGE
    assert "must end in .csv or .parquet" in capsys.readouterr().err


def test_without_pyarrow_there_is_a_sentence_with_the_remedy(
    faulty: Path, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert run("export", faulty, "-o", tmp_path / "t.parquet") == ERROR
    assert capsys.readouterr().err.splitlines() == [
        "reveal: writing Parquet needs pyarrow: pip install pyarrow, or write FILE.csv"
    ]
    assert list(tmp_path.iterdir()) == []


def test_a_directory_of_a_scan_stands_for_its_recording(tmp_path: Path) -> None:
    recording(tmp_path / "recording.rvl", 20)
    assert run("export", tmp_path, "-o", tmp_path / "t.csv") == DONE
    assert len(rows(tmp_path / "t.csv")) == 20
