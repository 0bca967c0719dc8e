"""What a collector says of itself: in Redis while it runs, and in a recording."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reveal_contract import ledger


def missing_sources(collector: Mapping[str, Any]) -> list[Mapping[str, str]]:
    """Return the sources missing on the host, as its collector reports them.

    Each has ``source``, ``reason`` and ``remedy``.
    """
    reported = collector.get("missing", [])
    return [row for row in reported if isinstance(row, dict)] if isinstance(reported, list) else []


def unanswered_sources(collector: Mapping[str, Any]) -> list[str]:
    """Return the sources that cannot be read although the host has them, each with the reason."""
    reported = collector.get("failing", [])
    rows = reported if isinstance(reported, list) else []
    return [f"{row.get('source')}: {row.get('reason')}" for row in rows if isinstance(row, dict)]


def no_ledger(collector: Mapping[str, Any]) -> str:
    """Return why the host has no lost-time ledger, as its collector reports; "" if it has one."""
    missing = missing_sources(collector)
    return next(
        (row.get("reason", "") for row in missing if row.get("source") == ledger.SOURCE), ""
    )
