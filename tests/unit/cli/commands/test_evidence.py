"""``reveal evidence`` from a folder; from Redis it is tested on a real one (integration)."""

from __future__ import annotations

from pathlib import Path

import pytest

from reveal_analyzer.evidence.store import FolderEvidence
from reveal_cli.errors import DONE, USAGE
from support.analyze_command import run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "samples"
    for name in ("cpu-1", "cpu-2"):
        FolderEvidence(folder, 86_400).put(name, name.encode(), None)
    return folder


def test_the_samples_of_a_finding_are_written(folder: Path, tmp_path: Path) -> None:
    output = tmp_path / "slow.rvl"
    assert run("evidence", "cpu-1", "--folder", folder, "-o", output) == DONE
    assert output.read_bytes() == b"cpu-1"


def test_samples_of_another_finding_are_not_overwritten(folder: Path) -> None:
    output = folder / "cpu-2.rvl"
    assert run("evidence", "cpu-1", "--folder", folder, "-o", output) == USAGE
    assert output.read_bytes() == b"cpu-2"


def test_flags_that_exclude_each_other_and_a_missing_folder_are_errors(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "slow.rvl"
    for more in (["--profile", "gpu"], ["--redis", "redis://localhost"]):
        assert run("evidence", "cpu-1", "--folder", folder, "-o", output, *more) == USAGE
        assert "--folder excludes" in capsys.readouterr().err
    assert run("evidence", "cpu-1", "--folder", tmp_path / "none", "-o", output) == USAGE
    assert "is not a directory" in capsys.readouterr().err
