"""SIGINT, SIGTERM and SIGHUP as a wish to end, taken where ending is safe.

By default a signal only sets a flag, so that nothing is torn apart while processes and
sockets are being made; long computations and imports run under ``raising()``, where a
signal ends them at once.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Interrupted(BaseException):
    """The user wants out; not an ``Exception``, so that no library takes it for its own."""


class Interrupt:
    """Whether and when the user asked to end; ``install`` once, in the main thread."""

    def __init__(self) -> None:
        self._asked_at: float | None = None
        self._raises = False

    def install(self) -> None:
        for number in SIGNALS:
            signal.signal(number, self._on_signal)

    @property
    def requested(self) -> bool:
        return self._asked_at is not None

    def left(self, grace: float) -> float:
        """Seconds left of ``grace`` seconds since the first signal; all of it before one."""
        if self._asked_at is None:
            return grace
        return max(0.0, self._asked_at + grace - time.monotonic())

    @contextmanager
    def raising(self, limit: float | None = None) -> Iterator[None]:
        """Let a signal, or ``limit`` seconds going by, end the block with ``Interrupted``.

        One that came before the block ends it at once, unless there is a ``limit`` for that.
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
        if self._asked_at is None:
            self._asked_at = time.monotonic()
        if self._raises:
            self._raises = False  # once is enough: clean-up must not be cut off by a second
            raise Interrupted

    def _on_alarm(self, _number: int, _frame: FrameType | None) -> None:
        if self._raises:
            self._raises = False
            raise Interrupted
