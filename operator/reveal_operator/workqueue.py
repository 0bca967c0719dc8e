"""A queue of keys: each is in it at most once, and one worker at a time handles it.

``KeyedQueue`` decides by the clock it is given; ``work`` is the loop around it.  It behaves as the
rate limited work queue of client-go: a key that is added while it is handled is due again
afterwards, and one that fails is due after a pause that doubles, with jitter.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from random import Random

from reveal_contract.runtime.backoff import Backoff

FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 300.0
JITTER = (0.8, 1.2)  # keys that failed together do not come back together

Handle = Callable[[str], Awaitable[float | None]]

_log = logging.getLogger(__name__)


class KeyedQueue:
    """Which key is due when, in seconds of ``clock``, which must not step back."""

    def __init__(
        self, clock: Callable[[], float] = time.monotonic, random: Random | None = None
    ) -> None:
        self._clock, self._random = clock, random or Random()  # noqa: S311 - jitter
        self._due: dict[str, float] = {}
        self._begun: dict[str, float] = {}
        self._retries: dict[str, Backoff] = {}
        self._changed = asyncio.Event()

    def add(self, key: str, after: float = 0.0) -> None:
        """Make a key due in ``after`` seconds; if it waits already, the earlier time counts."""
        due = self._clock() + after
        self._due[key] = min(due, self._due.get(key, due))
        self._changed.set()

    def pop(self) -> str | None:
        """Return the key that has been due longest and that no worker has; None without one."""
        now = self._clock()
        free = [(due, key) for key, due in self._waiting() if due <= now]
        if not free:
            return None
        _, key = min(free)
        del self._due[key]
        self._begun[key] = now
        return key

    def done(self, key: str) -> None:
        """Note that a key was handled: its failures no longer count."""
        self._end(key)
        self._retries.pop(key, None)

    def failed(self, key: str) -> float:
        """Note a failure; return the seconds until the key is due again."""
        self._end(key)
        if key not in self._retries:
            random = self._random.random
            self._retries[key] = Backoff(FIRST_PAUSE_S, LONGEST_PAUSE_S, JITTER, random)
        pause = self._retries[key].next()
        self.add(key, pause)
        return pause

    @property
    def working(self) -> int:
        """The number of keys that workers have."""
        return len(self._begun)

    @property
    def depth(self) -> int:
        """The number of keys that are due, or that workers have."""
        now = self._clock()
        return len(self._begun) + sum(due <= now for due in [*self._due.values()])

    @property
    def oldest(self) -> float:
        """Seconds that the oldest key has been due, or that a worker has it; 0 without one."""
        now = self._clock()
        since = [*self._due.values(), *self._begun.values()]
        return max(0.0, now - min(since, default=now))

    def idle_for(self) -> float | None:
        """Return seconds until a key is due that no worker has; None without one."""
        soonest = min((due for _, due in self._waiting()), default=None)
        return None if soonest is None else max(0.0, soonest - self._clock())

    async def changed(self, within: float | None) -> None:
        """Wait until a key is added or handled, at most ``within`` seconds."""
        self._changed.clear()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._changed.wait(), within)

    def _waiting(self) -> list[tuple[str, float]]:
        return [entry for entry in self._due.items() if entry[0] not in self._begun]

    def _end(self, key: str) -> None:
        del self._begun[key]
        self._changed.set()


async def work(queue: KeyedQueue, handle: Handle, gate: asyncio.Event, workers: int) -> None:
    """Hand due keys to ``handle``, ``workers`` at a time, while ``gate`` is set; never returns.

    ``handle`` returns the seconds after which the key is due again, or None.  If it raises, the key
    is due after the pause of the queue.
    """
    async with asyncio.TaskGroup() as tasks:
        while True:
            await gate.wait()
            if queue.working >= workers:
                await queue.changed(None)
            elif (key := queue.pop()) is None:
                await queue.changed(queue.idle_for())
            else:
                tasks.create_task(_handle_key(queue, handle, key), name=f"reconcile {key}")


async def _handle_key(queue: KeyedQueue, handle: Handle, key: str) -> None:
    try:
        again = await handle(key)
    except Exception as error:
        pause = queue.failed(key)
        _log.debug("%s: will retry in %.1f s: %s", key, pause, error)
    else:
        queue.done(key)
        if again is not None:
            queue.add(key, again)
