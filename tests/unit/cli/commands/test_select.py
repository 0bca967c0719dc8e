"""``reveal select``: what it prints, writes and refuses."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import pytest

from reveal_analyzer.selection.file import load
from reveal_cli.__main__ import main
from reveal_cli.commands.select import threshold
from reveal_cli.errors import DONE, ERROR, USAGE, CliError
from reveal_cli.metric_selection import by_workload
from reveal_contract.recording import RecordingWriter
from reveal_contract.wire import encode, gauges
from support.grouped_metrics import GROUPS, STILL, TABLE, record, slices

Capture = pytest.CaptureFixture[str]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder = tmp_path_factory.mktemp("select")
    return [record(folder / f"run{seed}.rvl", 30, seed) for seed in range(3)]


def test_the_curves_are_printed_and_the_file_written(
    runs: list[Path], tmp_path: Path, capsys: Capture
) -> None:
    output = tmp_path / "selection.yaml"
    assert main(["select", *map(str, runs), "-o", str(output)]) == DONE
    printed = capsys.readouterr()
    (used,) = [line for line in printed.out.splitlines() if "used" in line]
    assert used.split()[:2] == ["0.50", "40%"]
    assert "4 of 10 metrics that changed are kept (40%)" in " ".join(printed.out.split())
    assert "1 never changed and are kept" in " ".join(printed.out.split())
    assert printed.err == ""
    found = load(output)
    assert {(gone.metric, gone.by) for gone in found.dropped} == {
        (gone, by) for by, those in GROUPS for gone in those
    }
    assert [basis.name for basis in found.workloads] == ["run0", "run1", "run2"]
    assert [basis.rows for basis in found.workloads] == [300] * 3


def test_runs_of_a_workload_are_averaged(runs: list[Path], tmp_path: Path, capsys: Capture) -> None:
    output = tmp_path / "selection.yaml"
    flags = ["--workload", f"job={runs[0]}", str(runs[1]), "--every", "1s", "-o", str(output)]
    assert main(["select", str(runs[2]), *flags]) == DONE
    bases = [(each.name, each.recordings, each.rows) for each in load(output).workloads]
    assert bases == [("run2", 1, 30), ("job", 2, 60)]


def test_json_has_the_selection_and_the_curves(runs: list[Path], capsys: Capture) -> None:
    assert main(["select", str(runs[0]), "--json", "--threshold", "0.9"]) == DONE
    output = json.loads(capsys.readouterr().out)
    assert output["threshold"] == 0.9
    assert len(output["curves"]) == 19
    assert set(output["curves"][0]) == {"threshold", "keptShare", "unionShare", "multiR2", "maxR"}
    assert {row["metric"] for row in output["kept"]} >= {by for by, _ in GROUPS} | {*STILL}
    assert output["knee"] is None or 0 < output["knee"] < 1


def test_the_knee_can_be_the_threshold(runs: list[Path], capsys: Capture) -> None:
    code = main(["select", str(runs[0]), "--json", "--threshold", "knee"])
    output = capsys.readouterr()
    if code == DONE:
        found = json.loads(output.out)
        assert found["threshold"] == found["knee"]
    else:
        assert "has no knee" in output.err


def test_too_few_rows_are_a_warning(runs: list[Path], capsys: Capture) -> None:
    assert main(["select", str(runs[0]), "--every", "6s"]) == DONE
    assert "run0: 5 rows for" in capsys.readouterr().err


def test_an_incomplete_recording_is_used_up_to_its_end(
    runs: list[Path], tmp_path: Path, capsys: Capture
) -> None:
    truncated = tmp_path / "truncated.rvl"
    truncated.write_bytes(runs[0].read_bytes()[:-10])
    assert main(["select", str(truncated)]) == DONE
    assert "truncated.rvl is incomplete; it is used up to its end" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "code", "message"),
    [
        ([], USAGE, "nothing to select from"),
        (["{run}", "--plot", "curves.gif"], USAGE, "must end in .png or .svg"),
        (["--workload", "job"], USAGE, "write NAME=FILE"),
        (["--workload", "=file.rvl"], USAGE, "write NAME=FILE"),
        (["{folder}/none.rvl"], ERROR, "No such file"),
        (["{folder}/text.rvl"], ERROR, "is not a recording made by reveal"),
        (["{folder}/empty.rvl"], ERROR, "holds no slices"),
        (["{folder}/still.rvl"], ERROR, "no metric changed"),
        (["{run}", "-o", "{folder}/none/s.yaml"], ERROR, "cannot write"),
    ],
)
def test_an_error_is_a_single_sentence(
    flags: list[str], code: int, message: str, runs: list[Path], tmp_path: Path, capsys: Capture
) -> None:
    (tmp_path / "text.rvl").write_text("no recording")
    RecordingWriter(tmp_path / "empty.rvl").close()
    _still(tmp_path / "still.rvl")
    filled = [flag.format(run=runs[0], folder=tmp_path) for flag in flags]
    assert main(["select", *filled]) == code
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1


def _still(path: Path) -> None:
    """A recording in which every sample is the same."""
    (message,) = slices(1)
    message.fast[:] = message.fast[0]
    with RecordingWriter(path) as writer:
        writer.message(encode(message, gauges(TABLE)), TABLE)


def test_two_recordings_with_the_same_name_need_a_workload() -> None:
    with pytest.raises(CliError, match="two recordings are named run"):
        by_workload([Path("a/run.rvl"), Path("b/run.rvl")], [])
    found = by_workload([], [["run=a/run.rvl", "b/run.rvl"], ["run=c.rvl"]])
    assert found == {"run": [Path("a/run.rvl"), Path("b/run.rvl"), Path("c.rvl")]}


@pytest.mark.parametrize("text", ["0", "1", "-0.5", "nan", "much", ""])
def test_a_threshold_lies_between_0_and_1(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="between 0 and 1, or knee"):
        threshold(text)
    assert threshold("Knee") is None
    assert threshold(".25") == 0.25


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_the_plot_is_drawn(runs: list[Path], tmp_path: Path, suffix: str, capsys: Capture) -> None:
    pytest.importorskip("matplotlib")
    path = tmp_path / f"curves.{suffix}"
    assert main(["select", str(runs[0]), "--plot", str(path)]) == DONE
    start = {"png": b"\x89PNG", "svg": b"<?xml"}[suffix]
    assert path.read_bytes().startswith(start)


def test_a_plot_without_matplotlib_names_what_to_install(
    runs: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.delitem(sys.modules, "reveal_cli.knee_plot", raising=False)
    monkeypatch.setitem(sys.modules, "matplotlib.axes", None)
    assert main(["select", str(runs[0]), "--plot", str(tmp_path / "c.png")]) == ERROR
    output = capsys.readouterr()
    assert "pip install matplotlib" in output.err
    assert output.out == ""


def test_a_plot_that_cannot_be_written_is_an_error(
    runs: list[Path], tmp_path: Path, capsys: Capture
) -> None:
    pytest.importorskip("matplotlib")
    assert main(["select", str(runs[0]), "--plot", str(tmp_path / "no" / "c.png")]) == ERROR
    assert "cannot write" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("flags", "code", "message"),
    [
        (["--score-selected"], USAGE, "--score-selected needs a --selection"),
        (["--selection", "{folder}/none.yaml"], ERROR, "none.yaml: No such file"),
        (["--selection", "{folder}/s.yaml", "--mode", "paper"], USAGE, "--score-selected"),
    ],
)
def test_analyze_refuses_a_selection_it_cannot_use(
    flags: list[str], code: int, message: str, runs: list[Path], tmp_path: Path, capsys: Capture
) -> None:
    filled = [flag.format(folder=tmp_path) for flag in flags]
    assert main(["analyze", str(runs[0]), *filled]) == code
    assert message in capsys.readouterr().err


def test_analyze_takes_what_select_wrote(runs: list[Path], tmp_path: Path, capsys: Capture) -> None:
    written = tmp_path / "s.yaml"
    assert main(["select", str(runs[0]), "-o", str(written)]) == DONE
    for more in ([], ["--score-selected"], ["--score-selected", "--mode", "paper"]):
        assert main(["analyze", str(runs[1]), "--selection", str(written), *more]) == DONE
    capsys.readouterr()


def test_a_table_has_no_use_for_a_selection(tmp_path: Path, capsys: Capture) -> None:
    table = tmp_path / "table.csv"
    table.write_text("time,cpu\n1,2\n2,3\n")
    assert main(["analyze", str(table), "--selection", "s.yaml"]) == USAGE
    assert "is a table" in capsys.readouterr().err
