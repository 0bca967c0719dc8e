"""The rare lane: reads that may take milliseconds, and the reopening of broken sources.

One thread does this work, one source after another.  A read that hangs in a driver keeps its
thread: the other sources get a new thread, and the source is left out until its read returns.
There is therefore at most one more thread for each source that hangs.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from reveal_collector.sampling.feed import Feed
from reveal_collector.sampling.rare_feed import RARE_PERIOD_NS, RareFeed

log = logging.getLogger(__name__)

_SHORTEST_WAIT_NS = 500_000_000  # work that is due within this time is done together
# After so long the other sources get another thread.  It is far below the tolerance of their
# values, so that they have no gap even if several sources hang one after another.
HAND_OVER_NS = 1_000_000_000


@dataclass(frozen=True, eq=False)
class _Task:
    """What the thread of the lane does now: a read or a reopening of this feed."""

    feed: Feed
    began_ns: int


class RareLane:
    """Reads rare feeds every ten seconds and reopens broken feeds of all lanes."""

    def __init__(
        self,
        rare: Sequence[RareFeed],
        feeds: Sequence[Feed],
        clock: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._rare = list(rare)
        self._feeds = feeds
        self._clock = clock
        self._stopping = threading.Event()
        self._wake = threading.Event()
        self._lock = threading.Lock()
        self._task: _Task | None = None
        self._stuck: set[Feed] = set()  # feeds whose read has taken its thread out of the lane
        self._thread = self._new_thread()
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

    def check(self) -> None:
        """Give the lane a new thread where the present read takes too long; once a second."""
        task = self._task
        if task is None or self._clock() - task.began_ns < HAND_OVER_NS:
            return
        with self._lock:
            if self._task is not task or self._stopping.is_set():
                return
            self._stuck.add(task.feed)
            self._task = None
            self._thread = self._new_thread()
        log.debug("source %s keeps its thread: the others get a new one", task.feed.name)
        self._thread.start()

    def run_due(self, now_ns: int) -> None:
        """Release, read and reopen the feeds that are due."""
        for feed, action in self._due(now_ns):
            if feed not in self._stuck and not self._do(feed, action):
                return

    def _due(self, now_ns: int) -> Iterator[tuple[Feed, Callable[[], None]]]:
        """Yield what is due, one feed after another; release the feeds that are requested back."""
        for rare in list(self._rare):
            if rare.release_requested and rare.feed not in self._stuck:
                self._rare.remove(rare)
                rare.released = True
            elif now_ns >= rare.due_ns and not self._stopping.is_set():
                rare.due_ns = now_ns + RARE_PERIOD_NS
                yield rare.feed, partial(rare.refresh, self._clock)
        for feed in self._feeds:
            if feed.broken and now_ns >= feed.retry_due_ns:
                yield feed, partial(feed.reopen, now_ns)

    def _do(self, feed: Feed, action: Callable[[], None]) -> bool:
        """Read or reopen a feed; return False where another thread has the lane afterwards."""
        task = self._task = _Task(feed, self._clock())
        action()
        with self._lock:
            kept = self._task is task
            if kept:
                self._task = None
            else:
                self._stuck.discard(feed)
        if not kept:
            self._wake.set()  # the lane's new thread takes the feed back
        return kept

    def _new_thread(self) -> threading.Thread:
        return threading.Thread(target=self._run, name="reveal-rare", daemon=True)

    def _run(self) -> None:
        while self._thread is threading.current_thread() and not self._stopping.is_set():
            self._wake.clear()
            self.run_due(self._clock())
            self._wake.wait(self._pause_ns() / 1e9)

    def _pause_ns(self) -> int:
        """Return the time until work is due: waking each second would cost more than most reads."""
        due = [rare.due_ns for rare in self._rare if rare.feed not in self._stuck]
        due += [
            feed.retry_due_ns for feed in self._feeds if feed.broken and feed not in self._stuck
        ]
        ahead = min(due, default=0) - self._clock() if due else RARE_PERIOD_NS
        return min(max(ahead, _SHORTEST_WAIT_NS), RARE_PERIOD_NS)
