"""Opens sources at start, so that one that hangs in its driver delays the others only a little."""

from __future__ import annotations

import logging
import threading
import time
from queue import SimpleQueue

from reveal_collector.kernel_interfaces.errors import Unsupported
from reveal_collector.readers.source import HUNG_NS, Source

log = logging.getLogger(__name__)

NO_ANSWER = Unsupported(
    f"its driver has not answered for {HUNG_NS // 1_000_000_000} s", "see dmesg for the reason"
)


class Opening:
    """One source that a thread opens: ``ended`` is set afterwards, with the ``error`` if any."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.began_ns = time.monotonic_ns()
        self.ended = threading.Event()
        self.error: Exception | None = None

    def run(self) -> None:
        """Open the source and keep its error."""
        try:
            self.source.open()
        except Exception as error:  # ``Unsupported``, malformed files, or a defect of one source
            self.error = error
        self.ended.set()


class SourceOpener:
    """Opens sources one after another in a thread, which a source that hangs keeps."""

    def __init__(self, timeout_s: float = HUNG_NS / 1e9) -> None:
        self._timeout_s = timeout_s
        self._queue: SimpleQueue[Opening | None] | None = None

    def open(self, source: Source) -> Opening:
        """Open a source; it has not ``ended`` where it takes longer than the timeout."""
        opening = Opening(source)
        if self._queue is None:
            self._queue = SimpleQueue()
            thread = threading.Thread(
                target=_open_all, args=(self._queue,), name="reveal-open", daemon=True
            )
            thread.start()
        self._queue.put(opening)
        if not opening.ended.wait(self._timeout_s):
            log.warning("source %s does not answer: it is opened in the background", source.name)
            self.close()
        return opening

    def close(self) -> None:
        """End the thread after its present source; the next source gets another one."""
        if self._queue is not None:
            self._queue.put(None)
            self._queue = None


def _open_all(queue: SimpleQueue[Opening | None]) -> None:
    while (opening := queue.get()) is not None:
        opening.run()
