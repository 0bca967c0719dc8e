"""Reports as JSON: for scripts, in ASCII, so that no name can act on a terminal."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from reveal_cli.jobs import affected_job
from reveal_cli.kubectl.reports import ClusterReport
from reveal_contract.finding import rfc3339


def print_items(items: Sequence[ClusterReport], now_ns: int) -> None:
    """Print a list of reports, in the order of the text."""
    _print({"items": [document(item, now_ns) for item in items]})


def print_item(item: ClusterReport, now_ns: int) -> None:
    """Print one report."""
    _print(document(item, now_ns))


def document(item: ClusterReport, now_ns: int) -> dict[str, Any]:
    """Return a report: its name, its job, the active silence, and spec and status of the API."""
    silence = item.active_silence(now_ns)
    return {
        "name": item.name,
        "job": affected_job(item.finding) or None,
        "silence": silence and {"until": rfc3339(silence.until_ns), "reason": silence.reason},
        "spec": item.source["spec"],
        "status": item.source.get("status") or {},
    }


def _print(found: dict[str, Any]) -> None:
    print(json.dumps(found, indent=1, ensure_ascii=True))
