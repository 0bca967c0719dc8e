"""Liveness and readiness of the operator, for the probes of its pod; used by other threads."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from reveal_contract.runtime.liveness import LivenessFiles
from reveal_operator.workqueue import KeyedQueue

BEAT_S = 1.0
HANGING_S = 30.0  # nothing in the event loop takes a second
STUCK_S = 300.0  # a visit takes a second or two; its requests time out after twenty
RESYNCS = 2.5  # periods that may pass since the last resync


class OperatorHealth:
    """Alive while the loop runs, profiles are visited and resyncs happen; ready once listed."""

    def __init__(
        self,
        queue: KeyedQueue,
        gate: asyncio.Event,
        resync_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._queue, self._gate, self._resync_s = queue, gate, resync_s
        self._clock, self._pulse = clock, LivenessFiles(clock=clock)
        self._synced: float | None = None

    async def beat(self) -> None:
        """Prove that the event loop runs, until cancelled."""
        while True:
            self._pulse.beat()
            await asyncio.sleep(BEAT_S)

    def synced(self) -> None:
        """Note that all profiles were listed or queued; the next resync is due in a period."""
        self._synced = self._clock()

    def unhealthy(self) -> str:
        """Return an error that a restart may fix; "" without one.

        An API server that is unavailable or without our CRDs is none: a restart does not help.
        """
        if self._pulse.age > HANGING_S:
            return f"the event loop has been blocked for {self._pulse.age:.0f} s"
        if not self._gate.is_set() or self._synced is None:
            return ""
        if self._queue.oldest > STUCK_S:
            return f"a profile has been waiting for a visit for {self._queue.oldest:.0f} s"
        since = self._clock() - self._synced
        if since > RESYNCS * self._resync_s:
            return f"the last resync was {since:.0f} s ago"
        return ""

    def unready(self) -> str:
        """Return why the operator is not ready; "" once it is."""
        return "" if self._gate.is_set() else "waiting for the first listing"
