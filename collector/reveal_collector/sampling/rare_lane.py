"""The rare lane: a thread for reads that may take milliseconds and for reopening broken sources."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence

from reveal_collector.sampling.feed import Feed, RareFeed

log = logging.getLogger(__name__)

RARE_PERIOD_NS = 10_000_000_000
_SHORTEST_WAIT_NS = 500_000_000  # work that is due within this time is done together


class RareLane:
    """Reads rare feeds every ten seconds and reopens broken feeds of all lanes."""

    def __init__(self, rare: Sequence[RareFeed], feeds: Sequence[Feed]) -> None:
        self._rare = list(rare)
        self._feeds = feeds
        self._stopping = threading.Event()
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._run, name="reveal-rare", daemon=True)
        for feed in feeds:
            feed.on_broken = self._wake.set

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self, timeout: float = 0.5) -> None:
        """Stop between two reads; a read that is stuck in the kernel is abandoned."""
        self._stopping.set()
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(timeout)

    def add(self, rare: RareFeed) -> None:
        """Add a source that is too slow for the tick thread."""
        self._rare.append(rare)
        self._wake.set()

    def release(self, rare: RareFeed) -> bool:
        """Request a source back; return whether the thread has released it, between two reads."""
        rare.release_requested = True
        self._wake.set()
        return rare.released

    def run_due(self, now_ns: int) -> None:
        """Release, read and reopen the feeds that are due."""
        for rare in list(self._rare):
            if rare.release_requested:
                self._rare.remove(rare)
                rare.released = True
            elif now_ns >= rare.due_ns and not self._stopping.is_set():
                rare.due_ns = now_ns + RARE_PERIOD_NS
                rare.refresh()
        for feed in self._feeds:
            if feed.broken and now_ns >= feed.retry_due_ns:
                feed.reopen(now_ns)

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._wake.clear()
            self.run_due(time.monotonic_ns())
            self._wake.wait(self._pause_ns() / 1e9)

    def _pause_ns(self) -> int:
        """Return the time until work is due: waking each second would cost more than most reads."""
        due = [rare.due_ns for rare in self._rare]
        due += [feed.retry_due_ns for feed in self._feeds if feed.broken]
        ahead = min(due, default=0) - time.monotonic_ns() if due else RARE_PERIOD_NS
        return min(max(ahead, _SHORTEST_WAIT_NS), RARE_PERIOD_NS)
