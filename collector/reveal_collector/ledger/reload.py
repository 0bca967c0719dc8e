"""The programs come back after a pause, loaded in a thread: sampling must not wait for it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from reveal_collector.kernel_interfaces.errors import Unsupported
from reveal_collector.ledger.counting import Counting

log = logging.getLogger(__name__)

_STUCK_S = 1.0  # how long ``stop`` waits for the kernel to load the programs


class Reload:
    """Loads the programs once, after a pause."""

    def __init__(self, pause_s: float, load: Callable[[], Counting]) -> None:
        self.has_failed = False
        self._pause_s, self._load = pause_s, load
        self._lock, self._stopping = threading.Lock(), threading.Event()
        self._loaded: Counting | None = None
        self._thread = threading.Thread(target=self._run, name="reveal-reload", daemon=True)
        self._thread.start()

    def take(self) -> Counting | None:
        """Return the programs once they are loaded: they are the caller's from then on."""
        with self._lock:
            loaded, self._loaded = self._loaded, None
        return loaded

    def stop(self) -> None:
        """Give up; programs that nobody has taken are detached."""
        self._stopping.set()
        self._thread.join(_STUCK_S)
        if (loaded := self.take()) is not None:
            loaded.stop()

    def _run(self) -> None:
        if self._stopping.wait(self._pause_s):
            return
        try:
            loaded = self._load()
        except Unsupported as error:
            log.warning("the lost-time ledger stays off: %s", error.reason)
            self.has_failed = True
            return
        with self._lock:
            if not self._stopping.is_set():
                self._loaded = loaded
                return
        loaded.stop()
