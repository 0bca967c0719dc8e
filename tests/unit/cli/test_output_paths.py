"""Outputs that are inputs, by whatever name: refused before any work begins."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from reveal_cli.__main__ import main
from reveal_cli.errors import USAGE, CliError
from reveal_cli.output_paths import check_outputs

CONTENT = "time,cpu_user\n1,2\n2,3\n"
pytestmark = pytest.mark.usefixtures("own_signals")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "web-1.csv"
    path.write_text(CONTENT)
    return path


def same(path: Path) -> Path:
    return path


def spelled_differently(path: Path) -> Path:
    return path.parent / ".." / path.parent.name / path.name


def symbolic_link(path: Path) -> Path:
    link = path.with_name("link.csv")
    link.symlink_to(path)
    return link


def hard_link(path: Path) -> Path:
    link = path.with_name("hard.csv")
    link.hardlink_to(path)
    return link


NAMES = [same, spelled_differently, symbolic_link, hard_link]


@pytest.mark.parametrize("other_name", NAMES)
@pytest.mark.parametrize("flag", ["--scores", "--findings"])
def test_analyze_never_overwrites_its_input(
    table: Path,
    capsys: pytest.CaptureFixture[str],
    flag: str,
    other_name: Callable[[Path], Path],
) -> None:
    output = other_name(table)
    assert main(["analyze", str(table), flag, str(output)]) == USAGE
    assert capsys.readouterr().err == (
        f"reveal: {flag} {output} is also an input and would be overwritten: name another file\n"
    )
    assert table.read_text() == CONTENT


@pytest.mark.parametrize("flag", ["--baseline", "--selection", "--hypotheses"])
def test_the_other_inputs_of_analyze_are_kept_too(table: Path, tmp_path: Path, flag: str) -> None:
    other = tmp_path / "other"
    other.write_text("precious")
    flags = [flag, str(other), "--findings", str(other)]
    assert main(["analyze", str(table), *flags]) == USAGE
    assert other.read_text() == "precious"


def test_a_folder_of_causes_stands_for_its_files(tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text("precious")
    with pytest.raises(CliError, match="is also an input"):
        check_outputs({"--findings": tmp_path / "own.yaml"}, [tmp_path])
    check_outputs({"--findings": tmp_path / "new.jsonl"}, [tmp_path])


@pytest.mark.parametrize("flag", ["--output", "--plot"])
@pytest.mark.parametrize("named", [False, True])
def test_select_never_overwrites_a_recording(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], flag: str, named: bool
) -> None:
    recording = tmp_path / "run.svg"  # any suffix: a recording is known by its content
    recording.write_text("precious")
    inputs = ["--workload", f"job={recording}"] if named else [str(recording)]
    assert main(["select", *inputs, flag, str(recording)]) == USAGE
    assert "is also an input" in capsys.readouterr().err
    assert recording.read_text() == "precious"


def test_two_outputs_are_two_files(tmp_path: Path) -> None:
    outputs: dict[str, Path | None] = {"--findings": tmp_path / "a", "--scores": tmp_path / "a"}
    with pytest.raises(CliError, match=r"--scores .* is also the file of --findings"):
        check_outputs(outputs, [])
    outputs["--scores"] = tmp_path / "b"
    check_outputs(outputs, [])


def test_what_nothing_overwrites_can_be_named_twice(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (pipe, Path(os.devnull)):
        check_outputs({"--findings": path, "--scores": path}, [path])
