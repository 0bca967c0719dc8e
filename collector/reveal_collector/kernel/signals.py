"""SIGTERM and SIGINT as a wish to end, heard whichever thread the kernel hands them to."""

from __future__ import annotations

import math
import os
import select
import signal
import time
from types import FrameType
from typing import Self

_SIGNALS = (signal.SIGTERM, signal.SIGINT)
_DAY_S = 86_400.0  # ``poll`` counts milliseconds in 32 bits: no more than 24 days at once


class TerminationSignal:
    """Awaited by the main thread.  A second signal ends the process at once.

    A wait on a lock ends only with a signal to the main thread itself, and the kernel passes
    that thread over while it is stopped or has another signal pending (``wants_signal``,
    kernel/signal.c): of SIGTERMs just after a SIGCONT, a half is handed to others.  Python's
    wakeup descriptor is written to by whichever thread it is.
    """

    def __init__(self) -> None:
        self._asked = False
        self._heard, self._told = os.pipe()
        os.set_blocking(self._told, False)
        self._before = signal.set_wakeup_fd(self._told, warn_on_full_buffer=False)
        for number in _SIGNALS:
            signal.signal(number, self._end)

    def wait(self, seconds: float | None) -> bool:
        """Until a signal, which may have come before (True), or for ``seconds``; None: no limit."""
        waiting = select.poll()
        waiting.register(self._heard, select.POLLIN)
        end = math.inf if seconds is None else time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if waiting.poll(min(left, _DAY_S) * 1_000):
                return True
        return False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Close the descriptors; the signals keep their meaning, for what ends slowly."""
        signal.set_wakeup_fd(self._before)
        os.close(self._told)
        os.close(self._heard)

    def _end(self, number: int, frame: FrameType | None) -> None:
        if self._asked:
            os._exit(128 + number)  # process 1 of a container has no default action for signals
        self._asked = True
