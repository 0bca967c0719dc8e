"""Findings read back from ``findings.jsonl``."""

from __future__ import annotations

import json
from pathlib import Path

from reveal_cli.errors import CliError
from reveal_contract.finding import Finding
from reveal_contract.kube.report_parser import parse_row


def read_findings(path: Path) -> list[Finding]:
    """Return the findings of a file, each in its last state; raises ``CliError``."""
    try:
        lines = path.read_text("utf-8").splitlines()
    except OSError as error:
        raise CliError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise CliError(f"{path} is not UTF-8: it holds no findings") from None
    found: dict[str, Finding] = {}
    for number, line in enumerate(lines, 1):
        finding = _parse(line)
        if finding is None:
            raise CliError(f"{path}: line {number} is not a finding")
        found[finding.id] = finding
    return [*found.values()]


def _parse(line: str) -> Finding | None:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return parse_row(row) if isinstance(row, dict) else None
