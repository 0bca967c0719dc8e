"""Findings as JSON, and the summary of a scan."""

from __future__ import annotations

import json
import platform
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reveal_cli.atomic_file import write_atomically
from reveal_cli.collector_state import missing_sources
from reveal_cli.lost_time_text import lost_time_rows
from reveal_contract import VERSION
from reveal_contract.finding import Finding, rfc3339
from reveal_contract.time_units import NS_PER_SECOND

if TYPE_CHECKING:
    from reveal_cli.live_session import ScanPlan, ScanState


def jsonl(findings: Iterable[Finding]) -> str:
    """Return findings as JSON, one a line."""
    return "".join(json.dumps(finding.to_dict()) + "\n" for finding in findings)


class FindingsFile:
    """``findings.jsonl``, kept up to date while a scan runs.

    ``incomplete`` is true while the last write failed.
    """

    def __init__(self, path: Path | None) -> None:
        self.incomplete = False
        self._path = path
        self._text: str | None = None

    def write(self, findings: Iterable[Finding], *, retry: bool = False) -> None:
        """Write the findings if they changed, with ``retry`` also if the last write failed.

        Raises ``CliError``.
        """
        text = jsonl(findings)
        if self._path is None or (text == self._text and not (retry and self.incomplete)):
            return
        self._text, self.incomplete = text, True
        write_atomically(self._path, [text])
        self.incomplete = False


def print_findings(findings: Sequence[Finding]) -> None:
    """Print findings to stdout as JSON, one a line."""
    sys.stdout.write(jsonl(findings))
    sys.stdout.flush()


def summary(
    plan: ScanPlan, state: ScanState, findings: Sequence[Finding], interrupted: bool
) -> dict[str, Any]:
    """Return the content of ``summary.json``: how far the findings can be trusted."""
    settings = plan.settings
    return {
        "node": plan.node,
        "startTime": rfc3339(state.started_ns),
        "endTime": rfc3339(state.ended_ns),
        "interrupted": interrupted,
        "mode": settings.mode,
        "sensitivity": settings.sensitivity,
        "warmupSeconds": plan.warmup,
        **_baseline(plan),
        "watchedSeconds": round(state.seconds, 1),
        "judgedSeconds": round(judged_seconds(plan, state), 1),
        "slices": {"received": state.slices, "lost": state.lost, "refused": state.refused},
        "channels": state.channels,
        "redisAwaySeconds": round(state.redis_away_seconds, 1),
        "collectorRestarts": state.restarts,
        "warmupLoad": {name: round(load, 3) for name, load in state.warmup_load.items()},
        "lostTime": lost_time_rows(state.lost_time),
        "missingSources": missing_sources(state.collector),
        "degraded": state.collector.get("degraded", []),
        "troubles": state.warnings,
        "findings": {"total": len(findings), "bySubsystem": _counts(findings)},
        "configuration": {
            "total": len(state.hints.findings),
            "bySubsystem": _counts(state.hints.findings),
        },
        "versions": {
            "reveal": VERSION,
            "python": platform.python_version(),
            "kernel": platform.release(),
        },
    }


def _baseline(plan: ScanPlan) -> dict[str, str]:
    """Return when the baseline was saved that the scan started from, if it did."""
    baseline = plan.baseline
    return {"baselineTime": rfc3339(baseline.saved_s * NS_PER_SECOND)} if baseline else {}


def judged_seconds(plan: ScanPlan, state: ScanState) -> float:
    """Return how long was judged: the time after the warm-up, all with a baseline."""
    if not state.judged:
        return 0.0
    return max(0.0, state.seconds - plan.warmup)


def _counts(findings: Sequence[Finding]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for finding in findings:
        counts[finding.subsystem.value] = counts.get(finding.subsystem.value, 0) + 1
    return counts
