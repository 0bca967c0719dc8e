"""A thread that works for a share of the time, as others share the interpreter with it."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable


class PacedThread:
    """Calls ``work`` again and again; after each call it pauses as its share says.

    ``work`` returns whether there was something to do; if not, the pause is ``idle_seconds``.
    Otherwise it is ``most_pause`` seconds at most.  ``work`` raises nothing.
    """

    def __init__(
        self,
        name: str,
        work: Callable[[], bool],
        *,
        share: float,
        idle_seconds: float,
        most_pause: float = math.inf,
    ) -> None:
        self._work, self._idle_seconds, self._most_pause = work, idle_seconds, most_pause
        self._pause_for_work = (1 - share) / share
        self._closing = threading.Event()
        self._finishes = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def close(self, seconds: float, *, finish: bool = False) -> None:
        """End the thread within so many seconds; with ``finish``, after all work."""
        self._finishes = finish
        self._closing.set()
        if self._thread.is_alive():
            self._thread.join(seconds)

    def _run(self) -> None:
        while not self._closing.is_set():
            begun = time.monotonic()
            worked = self._work()
            pause = (time.monotonic() - begun) * self._pause_for_work
            self._closing.wait(min(pause, self._most_pause) if worked else self._idle_seconds)
        while self._finishes and self._work():
            pass
