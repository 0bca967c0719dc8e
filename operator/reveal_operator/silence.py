"""How long nodes of a profile have been silent: a moment is normal, a longer time is an error.

A collector that just became available is counted by the analyzer up to a minute later, and the
telemetry of a new analyzer grows while it takes the nodes over.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

from reveal_operator.conditions import FALSE, UNKNOWN

PATIENCE_S = 120.0


class Settling(NamedTuple):
    """The status that the condition keeps meanwhile, "" for none; ``again`` is in seconds."""

    status: str = ""
    again: float | None = None


class SilenceTracker:
    """Remembers since when nodes of each profile are silent; used from one event loop."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since: dict[str, float] = {}

    def update(self, profile: str, silent: int, status: str) -> Settling:
        """Take how many nodes are silent now, and the condition's status until now."""
        if not silent:
            self._since.pop(profile, None)
            return Settling()
        now = self._clock()
        # after a restart of the operator: what was an error is one
        since = self._since.setdefault(profile, now - PATIENCE_S if status == FALSE else now)
        left = since + PATIENCE_S - now
        return Settling(status or UNKNOWN, left) if left > 0 else Settling()

    def forget(self, profile: str) -> None:
        """Forget a profile that is gone."""
        self._since.pop(profile, None)
