"""SIGINT, SIGTERM and SIGHUP as a request to end, honored where ending is safe.

By default a signal only sets a flag, so that it cannot interrupt the creation of processes and
sockets.  Long computations and imports run under ``raising()``, where a signal ends them at once.
SIGINT and SIGHUP stay ignored where they are ignored at the start (``nohup``).
"""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

from reveal_contract.runtime.ignored_signals import without_ignored

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(BaseException):
    """The user asked to end.  Not an ``Exception``, so that no library catches it."""


class Interrupt:
    """Records whether and when the user asked to end; ``install`` once, in the main thread."""

    def __init__(self) -> None:
        self._request_time: float | None = None
        self._raises = False

    def install(self) -> None:
        for number in (signal.SIGTERM, *without_ignored((signal.SIGINT, signal.SIGHUP))):
            signal.signal(number, self._on_signal)

    def request(self) -> None:
        """Ask to end, as a signal does that comes outside of ``raising``."""
        self._request_time = self._request_time or time.monotonic()

    @property
    def requested(self) -> bool:
        return self._request_time is not None

    def left(self, grace: float) -> float:
        """Return what is left of ``grace`` seconds since the first signal; all before a signal."""
        if self._request_time is None:
            return grace
        return max(0.0, self._request_time + grace - time.monotonic())

    @contextmanager
    def raising(self, limit: float | None = None) -> Iterator[None]:
        """End the block with ``Interrupted`` on a signal, or after ``limit`` seconds.

        A signal from before the block ends it at once, unless there is a ``limit``.
        """
        if limit is None and self.requested:
            raise Interrupted
        if limit is not None:
            previous = signal.signal(signal.SIGALRM, self._on_alarm)
            signal.setitimer(signal.ITIMER_REAL, max(limit, 0.001))
        self._raises = True
        try:
            yield
        finally:
            self._raises = False
            if limit is not None:
                signal.setitimer(signal.ITIMER_REAL, 0)
                signal.signal(signal.SIGALRM, previous)

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        if self._request_time is None:
            self._request_time = time.monotonic()
        if self._raises:
            self._raises = False  # once only: a second signal must not interrupt the clean-up
            raise Interrupted

    def _on_alarm(self, _number: int, _frame: FrameType | None) -> None:
        if self._raises:
            self._raises = False
            raise Interrupted
