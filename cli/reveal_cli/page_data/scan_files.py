"""The files of ``reveal scan --output DIR`` as the input of a page."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from reveal_cli.collector_state import no_ledger
from reveal_cli.errors import CliError
from reveal_cli.finding_rows import read_findings
from reveal_cli.lost_time_text import lost_time_of
from reveal_cli.page_data.finding_parts import Judged
from reveal_cli.scan_directory import FINDINGS, RECORDING, SUMMARY
from reveal_cli.summary_text import Coverage
from reveal_contract.finding import FindingKind


def scanned(directory: Path) -> Judged:
    """Return what a scan has found, from its files; raises ``CliError`` where one is missing."""
    for name in (FINDINGS, RECORDING, SUMMARY):
        if not (directory / name).is_file():
            raise CliError(
                f"{directory} has no {name}: name the --output directory of a scan, or a recording"
            )
    summary = _summary(directory / SUMMARY)
    findings = read_findings(directory / FINDINGS)
    return Judged(
        path=directory / RECORDING,
        title=str(summary.get("node", "")),
        findings=[each for each in findings if each.kind is FindingKind.ANOMALY],
        hints=[each for each in findings if each.kind is FindingKind.CONFIGURATION],
        coverage=_coverage(summary),
        notes=[str(line) for line in _list(summary, "troubles")],
    )


def _summary(path: Path) -> Mapping[str, Any]:
    try:
        content = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        content = None
    if not isinstance(content, dict):
        raise CliError(f"{path} cannot be read as JSON: it is not the summary of a scan")
    return content


def _coverage(summary: Mapping[str, Any]) -> Coverage:
    slices, load = _map(summary, "slices"), _map(summary, "warmupLoad")
    missing = _list(summary, "missingSources")
    return Coverage(
        watched=_number(summary, "watchedSeconds"),
        judged=_number(summary, "judgedSeconds"),
        warmup=_number(summary, "warmupSeconds"),
        slices=int(_number(slices, "received")),
        channels=int(_number(summary, "channels")),
        lost=int(_number(slices, "lost")),
        redis_away=_number(summary, "redisAwaySeconds"),
        load={str(name): _number(load, name) for name in load},
        lost_time={str(summary.get("node", "")): lost_time_of(_list(summary, "lostTime"))},
        no_ledger=no_ledger({"missing": missing}),
        missing_sources=len(missing),
        recorded=True,
    )


def _map(row: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = row.get(key)
    return value if isinstance(value, dict) else {}


def _list(row: Mapping[str, Any], key: str) -> list[Any]:
    value = row.get(key)
    return value if isinstance(value, list) else []


def _number(row: Mapping[str, Any], key: str) -> float:
    value = row.get(key)
    return float(value) if isinstance(value, int | float) else 0.0
