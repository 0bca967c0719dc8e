"""What a scan writes: ``--output DIR`` with findings, recording and summary, each whole."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from reveal_cli.errors import CliError
from reveal_cli.live_session import Plan, Watched
from reveal_contract import VERSION
from reveal_contract.finding import Finding, rfc3339

FINDINGS, RECORDING, SUMMARY = "findings.jsonl", "recording.rvl", "summary.json"


def claim_directory(directory: Path) -> Path:
    """Make the directory and, in it, the recording: whoever makes that file owns the rest."""
    recording = directory / RECORDING
    try:
        directory.mkdir(parents=True, exist_ok=True)
        os.close(os.open(recording, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o644))
    except FileExistsError:
        raise CliError(
            f"{recording} exists already: name another directory or remove it"
            if recording.exists()
            else f"{directory} is not a directory: name one for --output"
        ) from None
    except OSError as error:
        raise CliError(f"cannot write to {directory}: {error.strerror}") from None
    return recording


def jsonl(findings: Iterable[Finding]) -> str:
    return "".join(json.dumps(finding.to_dict()) + "\n" for finding in findings)


def write_whole(path: Path, text: str) -> None:
    """The new content or the old one, never a part."""
    write_parts(path, [text])


def write_parts(path: Path, parts: Iterable[str]) -> None:
    """As ``write_whole``, of more than fits in memory: written beside, then renamed."""
    beside = path.with_name(f".{path.name}.new")
    try:
        with beside.open("w") as file:
            file.writelines(parts)
        beside.replace(path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise CliError(f"cannot write {path}: {error.strerror}") from None


class FindingsFile:
    """``findings.jsonl`` kept up to date while a scan runs; one failure ends the keeping."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._text: str | None = None

    def keep(self, findings: Iterable[Finding]) -> None:
        """Write if anything changed; raises ``CliError`` once if that fails."""
        if self._path is None or (text := jsonl(findings)) == self._text:
            return
        path, self._path = self._path, None
        write_whole(path, text)
        self._path, self._text = path, text


def print_findings(findings: Sequence[Finding]) -> None:
    sys.stdout.write(jsonl(findings))
    sys.stdout.flush()


def summary(
    plan: Plan, watched: Watched, findings: Sequence[Finding], interrupted: bool
) -> dict[str, Any]:
    """What ``summary.json`` holds: enough to know how far the findings can be trusted."""
    settings = plan.settings
    return {
        "node": plan.node,
        "startTime": rfc3339(watched.started_ns),
        "endTime": rfc3339(watched.ended_ns),
        "interrupted": interrupted,
        "mode": settings.mode,
        "sensitivity": settings.sensitivity,
        "warmupSeconds": settings.warmup_seconds,
        "watchedSeconds": round(watched.seconds, 1),
        "judgedSeconds": round(judged_seconds(plan, watched), 1),
        "slices": {"received": watched.slices, "lost": watched.lost, "refused": watched.refused},
        "channels": watched.channels,
        "redisAwaySeconds": round(watched.away_seconds, 1),
        "collectorRestarts": watched.restarts,
        "warmupLoad": {name: round(load, 3) for name, load in watched.warmup_load.items()},
        "missingSources": missing(watched.collector),
        "degraded": watched.collector.get("degraded", []),
        "troubles": watched.troubles,
        "findings": {"total": len(findings), "bySubsystem": _counts(findings)},
        "configuration": {
            "total": len(watched.hints.findings),
            "bySubsystem": _counts(watched.hints.findings),
        },
        "versions": {
            "reveal": VERSION,
            "python": platform.python_version(),
            "kernel": platform.release(),
        },
    }


def judged_seconds(plan: Plan, watched: Watched) -> float:
    """How long was judged, after the time it took to learn."""
    if not watched.judged:
        return 0.0
    return max(0.0, watched.seconds - plan.settings.warmup_seconds)


def missing(collector: Mapping[str, Any]) -> list[Mapping[str, str]]:
    """The sources this host does not give, as the collector said: source, reason, remedy."""
    said = collector.get("missing", [])
    return [row for row in said if isinstance(row, dict)] if isinstance(said, list) else []


def _counts(findings: Sequence[Finding]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for finding in findings:
        counts[finding.subsystem.value] = counts.get(finding.subsystem.value, 0) + 1
    return counts
