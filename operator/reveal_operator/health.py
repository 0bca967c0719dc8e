"""Whether the operator lives and is ready, for the probes of its pod; asked from other threads."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from reveal_contract.runtime.liveness import Pulse
from reveal_operator.workqueue import KeyedQueue

BEAT_S = 1.0
HANGING_S = 30.0  # the loop does nothing that takes a second
STUCK_S = 300.0  # a visit takes a second or two; its requests time out after twenty
RESYNCS = 2.5  # how many of its periods the last resync may be ago


class Health:
    """Alive while the loop turns, visits are made and resyncs come; ready once all is listed."""

    def __init__(
        self,
        queue: KeyedQueue,
        gate: asyncio.Event,
        resync_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._queue, self._gate, self._resync_s = queue, gate, resync_s
        self._clock, self._pulse = clock, Pulse(clock=clock)
        self._synced: float | None = None

    async def beat(self) -> None:
        """Show that the loop turns, for ever."""
        while True:
            self._pulse.beat()
            await asyncio.sleep(BEAT_S)

    def synced(self) -> None:
        """All has been listed, or queued anew; from now on the next resync is waited for."""
        self._synced = self._clock()

    def ailment(self) -> str:
        """What a restart would help, in a sentence; "" where nothing is.

        Not that the API server is away, or its kinds are missing: that is no fault of ours.
        """
        if self._pulse.age > HANGING_S:
            return f"the event loop has been standing still for {self._pulse.age:.0f} s"
        if not self._gate.is_set() or self._synced is None:
            return ""
        if self._queue.oldest > STUCK_S:
            return f"a profile has been waiting for a visit for {self._queue.oldest:.0f} s"
        since = self._clock() - self._synced
        if since > RESYNCS * self._resync_s:
            return f"the last resync was {since:.0f} s ago"
        return ""

    def unready(self) -> str:
        """Why not yet, or not now."""
        return "" if self._gate.is_set() else "waiting for the first listing"
