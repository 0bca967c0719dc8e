"""The files of a scan as the input of a page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from reveal_cli.errors import CliError
from reveal_cli.output_files import jsonl
from reveal_cli.page_data.scan_files import scanned
from reveal_cli.scan_directory import FINDINGS, RECORDING, SUMMARY
from support.finding_factory import ONSET_NS, idle_huge_pages, scan_finding

SUMMARY_ROW = {
    "node": "n", "watchedSeconds": 120.5, "judgedSeconds": 60, "warmupSeconds": 60,
    "slices": {"received": 120, "lost": 3}, "channels": 500, "warmupLoad": {"cpu.busy": 1.5},
    "missingSources": [{"source": "ledger", "reason": "no BPF", "remedy": "be root"}],
    "troubles": ["Redis was away"],
    "lostTime": [{"subject": "/job", "desiredCPUs": 1.0, "lostShare": 0.4, "losses": []}],
}  # fmt: skip


def files(directory: Path, summary: object = SUMMARY_ROW) -> Path:
    (directory / RECORDING).touch()
    (directory / FINDINGS).write_text(jsonl([scan_finding(), idle_huge_pages(ONSET_NS)]))
    (directory / SUMMARY).write_text(json.dumps(summary))
    return directory


def test_findings_hints_and_what_they_are_based_on_are_those_of_the_scan(tmp_path: Path) -> None:
    judged = scanned(files(tmp_path))
    assert [each.id for each in judged.findings] == ["cpu-1"]
    assert len(judged.hints) == 1
    assert (judged.coverage.judged, judged.coverage.slices, judged.coverage.lost) == (60, 120, 3)
    assert judged.coverage.no_ledger == "no BPF"
    assert judged.notes == ["Redis was away"]
    assert [each.share for each in judged.coverage.lost_time["n"]] == [0.4]


@pytest.mark.parametrize("name", [FINDINGS, RECORDING, SUMMARY])
def test_a_missing_file_is_named(tmp_path: Path, name: str) -> None:
    (files(tmp_path) / name).unlink()
    with pytest.raises(CliError, match=f"has no {name}"):
        scanned(tmp_path)


def test_a_summary_of_another_shape_gives_a_sentence_or_nothing(tmp_path: Path) -> None:
    with pytest.raises(CliError, match="it is not the summary of a scan"):
        scanned(files(tmp_path, []))
    odd = scanned(files(tmp_path, {"slices": [], "troubles": 3, "warmupLoad": {"cpu.busy": "x"}}))
    assert (odd.coverage.slices, odd.notes, odd.coverage.load) == (0, [], {"cpu.busy": 0.0})
