"""The files of a scan: a directory of its own, each file complete."""

import errno
import json
import os
from pathlib import Path

import pytest

from reveal_cli.errors import CliError
from reveal_cli.output_files import (
    FindingsFile,
    claim_directory,
    missing_sources,
    write_atomically,
)
from support.finding_factory import scan_finding


def fail_full(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_directory_belongs_to_the_first_scan(tmp_path: Path) -> None:
    claim_directory(tmp_path / "a" / "b")
    with pytest.raises(CliError, match="exists already"):
        claim_directory(tmp_path / "a" / "b")
    (tmp_path / "file").touch()
    with pytest.raises(CliError, match="is not a directory"):
        claim_directory(tmp_path / "file")


def test_a_file_is_replaced_completely_or_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "f"
    write_atomically(path, ["o", "ld"])
    with monkeypatch.context() as broken:
        broken.setattr(Path, "replace", fail_full)
        with pytest.raises(CliError, match="cannot write"):
            write_atomically(path, ["new"])
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_the_findings_file_is_updated_and_reports_a_failure_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = FindingsFile(tmp_path / "f.jsonl")
    file.write([])
    assert (tmp_path / "f.jsonl").read_text() == ""
    file.write([scan_finding()])
    assert json.loads((tmp_path / "f.jsonl").read_text())["id"] == scan_finding().id
    monkeypatch.setattr(Path, "replace", fail_full)
    with pytest.raises(CliError):
        file.write([])
    file.write([scan_finding("another claim")])


def test_missing_sources_are_read_from_any_state_of_a_collector() -> None:
    row = {"source": "perf", "reason": "r", "remedy": ""}
    assert missing_sources({"missing": [row, "odd"]}) == [row]
    assert missing_sources({"missing": "odd"}) == missing_sources({}) == []
