"""The rare lane: its own thread, for what may take milliseconds, and to reopen what broke."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence

from reveal_collector.sampling.feed import Feed, RareFeed

log = logging.getLogger(__name__)

RARE_PERIOD_NS = 10_000_000_000
_LEAST_WAIT_NS = 500_000_000  # what is due within is done together


class RareLane:
    """Reads rare feeds every ten seconds and tries broken feeds of all lanes again."""

    def __init__(self, rare: Sequence[RareFeed], feeds: Sequence[Feed]) -> None:
        self._rare = list(rare)
        self._feeds = feeds
        self._stopping = threading.Event()
        self._asked = threading.Event()
        self._thread = threading.Thread(target=self._run, name="reveal-rare", daemon=True)
        for feed in feeds:
            feed.broke = self._asked.set

    def start(self) -> None:
        self._thread.start()

    def stop(self, timeout: float = 0.5) -> None:
        """Ends between two reads; one stuck in the kernel is left to the daemon thread."""
        self._stopping.set()
        self._asked.set()
        if self._thread.is_alive():
            self._thread.join(timeout)

    def add(self, rare: RareFeed) -> None:
        """Take over a source that is too dear for the tick thread."""
        self._rare.append(rare)
        self._asked.set()

    def release(self, rare: RareFeed) -> bool:
        """Ask for a source back; whether it is: this thread lets go of it between two reads."""
        rare.leaving = True
        self._asked.set()
        return rare.left

    def look(self, now_ns: int) -> None:
        """Do what is due now."""
        for rare in list(self._rare):
            if rare.leaving:
                self._rare.remove(rare)
                rare.left = True
            elif now_ns >= rare.due_ns and not self._stopping.is_set():
                rare.due_ns = now_ns + RARE_PERIOD_NS
                rare.refresh()
        for feed in self._feeds:
            if feed.broken and now_ns >= feed.retry_at_ns:
                feed.reopen(now_ns)

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._asked.clear()
            self.look(time.monotonic_ns())
            self._asked.wait(self._pause_ns() / 1e9)

    def _pause_ns(self) -> int:
        """Until something is due: to look each second would cost more than most that is read."""
        due = [rare.due_ns for rare in self._rare]
        due += [feed.retry_at_ns for feed in self._feeds if feed.broken]
        ahead = min(due, default=0) - time.monotonic_ns() if due else RARE_PERIOD_NS
        return min(max(ahead, _LEAST_WAIT_NS), RARE_PERIOD_NS)
