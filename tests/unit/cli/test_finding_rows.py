"""Findings read back from the file that a scan wrote."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given

from reveal_cli.errors import CliError
from reveal_cli.finding_rows import read_findings
from reveal_cli.output_files import jsonl
from reveal_contract.finding import Finding, State
from reveal_contract.kube.report_parser import parse_row
from support.finding_factory import ANY_FINDING, finding_with_all_fields, scan_finding


@given(ANY_FINDING)
def test_any_finding_comes_back_with_all_of_its_fields(finding: Finding) -> None:
    row = json.loads(json.dumps(finding.to_dict()))
    parsed = parse_row(row)
    assert parsed is not None
    assert json.loads(json.dumps(parsed.to_dict())) == row


def test_impact_and_peers_come_back() -> None:
    finding = finding_with_all_fields(1_700_000_000_000_000_000)
    parsed = parse_row(finding.to_dict())
    assert parsed is not None
    assert (parsed.impact, parsed.peers) == (finding.impact, finding.peers)


def test_the_last_state_of_a_finding_counts(tmp_path: Path) -> None:
    first, other = scan_finding(), replace(scan_finding(), id="cpu-2")
    last = replace(first, state=State.RESOLVED)
    path = tmp_path / "f.jsonl"
    path.write_text(jsonl([first, other, last]))
    assert [(each.id, each.state) for each in read_findings(path)] == [
        ("cpu-1", State.RESOLVED), ("cpu-2", State.OPEN),
    ]  # fmt: skip


@pytest.mark.parametrize("line", ["", "[]", "{}", '{"id": 1}', "not JSON", "[" * 100_000])
def test_a_line_that_is_no_finding_is_named(tmp_path: Path, line: str) -> None:
    path = tmp_path / "f.jsonl"
    path.write_text(f"{jsonl([scan_finding()])}{line}\n")
    with pytest.raises(CliError, match=r"f\.jsonl: line 2 is not a finding"):
        read_findings(path)
