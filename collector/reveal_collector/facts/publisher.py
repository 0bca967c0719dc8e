"""A thread that reads the facts once a minute, outside of the tick thread: it may take long."""

from __future__ import annotations

import logging
import threading
import time

from reveal_collector.facts.inventory import FactsReader
from reveal_contract.runtime.malloc_trim import give_back

log = logging.getLogger(__name__)

PERIOD = 60.0  # s


class FactsPublisher:
    """``latest`` is the JSON of the last facts, ``None`` before the first read.

    It is replaced only when the facts change, so that sinks detect changes by identity.
    """

    def __init__(self, inventory: FactsReader, period: float = PERIOD) -> None:
        self.latest: bytes | None = None
        self._busy_since_ns = 0
        self._inventory, self._period = inventory, period
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="reveal-facts", daemon=True)

    @property
    def hung_since_ns(self) -> int:
        """When the oldest read under way began (monotonic), 0 between two: it may hang."""
        return self._inventory.hung_since_ns or self._busy_since_ns

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self, timeout: float = 0.2) -> None:
        """Stop between two reads; a read that is stuck in the kernel is abandoned."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(timeout)

    def refresh(self) -> None:
        """Read the facts once."""
        self._busy_since_ns = time.monotonic_ns()
        try:
            facts = self._inventory.read().to_json()
        except Exception:
            log.exception("the facts of this host cannot be read")
            return
        finally:
            self._busy_since_ns = 0
        if facts != self.latest:
            self.latest = facts

    def _run(self) -> None:
        while not self._stopping.is_set():
            self.refresh()
            give_back()
            self._stopping.wait(self._period)
