"""The findings of a folder of scans."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reveal_cli.errors import CliError
from reveal_cli.output_files import jsonl
from reveal_cli.scan_directory import FINDINGS, RECORDING, REPORT, SUMMARY
from reveal_cli.ui.scan_folder import ScanFolder
from support.analyze_command import recording
from support.finding_factory import scan_finding


def scan(directory: Path, claim: str) -> Path:
    directory.mkdir()
    recording(directory / RECORDING, 30)
    (directory / FINDINGS).write_text(jsonl([scan_finding(claim)]))
    (directory / SUMMARY).write_text(json.dumps({"node": "n1", "slices": {"received": 30}}))
    return directory


def test_findings_of_all_scans_are_listed_and_a_damaged_scan_is_a_warning(tmp_path: Path) -> None:
    scan(tmp_path / "a", "first")
    scan(tmp_path / "b", "second")
    (tmp_path / "c").mkdir()
    (tmp_path / "c" / FINDINGS).write_text("damaged")
    (tmp_path / "other").mkdir()
    listing = ScanFolder(tmp_path).listing()
    assert {(each.origin, each.finding.claim) for each in listing.findings} == {
        ("a", "first"), ("b", "second"),
    }  # fmt: skip
    assert list(listing.nodes) == ["n1"]
    [warning] = listing.warnings
    assert "line 1 is not a finding" in warning


def test_the_page_is_that_of_the_scan_or_comes_from_its_files(tmp_path: Path) -> None:
    directory = scan(tmp_path / "a", "the claim")
    source = ScanFolder(directory)
    [listed] = source.listing().findings
    assert "the claim" in source.page(listed.key)
    (directory / REPORT).write_text("its own page")
    assert source.page(listed.key) == "its own page"


@pytest.mark.parametrize("key", ["../a#x", "none#x", "", "#"])
def test_a_key_of_no_scan_is_an_error(tmp_path: Path, key: str) -> None:
    scan(tmp_path / "a", "first")
    with pytest.raises(CliError, match="no such scan"):
        ScanFolder(tmp_path).page(key)


def test_a_folder_without_scans_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CliError, match="has no scans"):
        ScanFolder(tmp_path)
    with pytest.raises(CliError, match="cannot read"):
        ScanFolder(tmp_path / "none")
