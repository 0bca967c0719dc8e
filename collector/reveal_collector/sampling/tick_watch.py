"""Watches the tick thread: a source that hangs there must not stop the others.

The tick thread reads what has no plan by the source's own code: perf events, processes, plugins,
and layouts that changed.  A thread that reads nothing itself checks every two seconds which call
of a source is under way.  A call that is still the same one at the next check hangs: its source
counts as broken, and the sampler goes on in a new thread.  The old one ends when the call returns;
only then the rare lane opens the source again.  So there is one more thread for each source that
hangs, as in the rare lane.

It takes two checks because both threads stand still with their host: afterwards the first check
finds an old call that just goes on.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from typing import NamedTuple

from reveal_collector.sampling.feed import Feed
from reveal_contract.metric import Lane

log = logging.getLogger(__name__)

PERIOD_S = 2.0


class _Call(NamedTuple):
    """A call of a source that is under way, and when it began (monotonic ns)."""

    feed: Feed
    since_ns: int


class TickWatch:
    """Calls ``go_on`` where a call of one of these feeds hangs in the tick thread."""

    def __init__(self, feeds: Sequence[Feed], go_on: Callable[[], None]) -> None:
        self._feeds, self._go_on = feeds, go_on
        self._last: _Call | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="reveal-watch", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop checking."""
        self._stopping.set()

    def check(self) -> None:
        """Compare the call that is under way with the one of the last check."""
        found = self._under_way()
        last, self._last = self._last, found
        if found is None or found != last or not found.feed.leave_call(found.since_ns):
            return
        log.warning("source %s does not answer: it is left out", found.feed.name)
        self._go_on()

    def _under_way(self) -> _Call | None:
        """Return the call of the tick thread; broken and rare feeds are called by other threads."""
        for feed in self._feeds:
            since_ns = feed.busy_since_ns
            if since_ns and not feed.broken and feed.lane is not Lane.RARE:
                return _Call(feed, since_ns)
        return None

    def _run(self) -> None:
        while not self._stopping.wait(PERIOD_S):
            self.check()
