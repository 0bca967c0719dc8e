"""Silence of an AnomalyReport: two annotations that a user sets and that analyzers follow.

A silenced report is written as before.  It causes no new Event and no node condition until the
silence ends.  A user may write the annotations by hand, so any text must be readable.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from reveal_contract.finding import rfc3339
from reveal_contract.kube.names import (
    ANNOTATION_SILENCED_BECAUSE,
    ANNOTATION_SILENCED_UNTIL,
    clipped,
)
from reveal_contract.time_units import NS_PER_SECOND

MAX_REASON_BYTES = 256


@dataclass(frozen=True, slots=True)
class Silence:
    """When a silence ends, in nanoseconds since the epoch, and why there is one."""

    until_ns: int
    reason: str = ""

    def is_active(self, now_ns: int) -> bool:
        """Whether the silence has not ended yet."""
        return now_ns < self.until_ns

    def to_annotations(self) -> dict[str, str]:
        """Return the annotations of a silenced report."""
        return {
            ANNOTATION_SILENCED_UNTIL: f"{rfc3339(self.until_ns)[:19]}Z",
            ANNOTATION_SILENCED_BECAUSE: clipped(self.reason, MAX_REASON_BYTES),
        }


# of a merge patch that ends a silence
NO_SILENCE: Mapping[str, None] = dict.fromkeys(
    (ANNOTATION_SILENCED_UNTIL, ANNOTATION_SILENCED_BECAUSE)
)


def silence_of(found: Mapping[str, Any]) -> Silence | None:
    """Return the silence of an AnomalyReport, active or over.

    None without one, and where the end is not a time with a zone: then nothing is silenced.
    """
    annotations = (found.get("metadata") or {}).get("annotations") or {}
    try:
        until = datetime.fromisoformat(annotations[ANNOTATION_SILENCED_UNTIL])
        if until.tzinfo is None:
            return None
        until_ns = int(until.astimezone(UTC).timestamp()) * NS_PER_SECOND
    except (KeyError, ValueError, TypeError, OverflowError):
        return None
    reason = str(annotations.get(ANNOTATION_SILENCED_BECAUSE, ""))
    return Silence(until_ns, clipped(reason, MAX_REASON_BYTES))


def is_silenced(found: Mapping[str, Any], now_ns: int) -> bool:
    """Whether an AnomalyReport is silenced now."""
    silence = silence_of(found)
    return silence is not None and silence.is_active(now_ns)
