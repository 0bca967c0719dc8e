"""The facts kept current: a thread that reads them once a minute, whatever they cost."""

from __future__ import annotations

import logging
import threading

from reveal_collector.facts.inventory import FactsReader
from reveal_contract.runtime.malloc_trim import give_back

log = logging.getLogger(__name__)

PERIOD = 60.0  # s


class FactsPublisher:
    """``latest`` is the JSON of the last reading, ``None`` before the first.

    It is replaced only when the facts are others than before, so that whoever ships it can
    tell by identity that there is news.
    """

    def __init__(self, inventory: FactsReader, period: float = PERIOD) -> None:
        self.latest: bytes | None = None
        self._inventory, self._period = inventory, period
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="reveal-facts", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self, timeout: float = 0.2) -> None:
        """Ends between two readings; one stuck in the kernel is left to the daemon thread."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(timeout)

    def look(self) -> None:
        """Read the facts once."""
        try:
            told = self._inventory.read().to_json()
        except Exception:
            log.exception("the facts of this host cannot be read")
            return
        if told != self.latest:
            self.latest = told

    def _run(self) -> None:
        while not self._stopping.is_set():
            self.look()
            give_back()
            self._stopping.wait(self._period)
