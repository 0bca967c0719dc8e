"""SIGTERM and SIGINT as a request to stop, received by whichever thread the kernel chooses."""

from __future__ import annotations

import math
import os
import select
import signal
import time
from types import FrameType
from typing import Self

from reveal_contract.runtime.ignored_signals import without_ignored

_DAY_S = 86_400.0  # ``poll`` takes milliseconds in 32 bits: 24 days at most


class TerminationSignal:
    """Lets the main thread wait for a signal; a second signal ends the process at once.

    A wait on a lock ends only with a signal to the main thread itself.  The kernel passes that
    thread over while it is stopped or has another signal pending (``wants_signal``,
    kernel/signal.c): half of the SIGTERMs shortly after a SIGCONT go to other threads.  Python's
    wakeup descriptor receives the signals of all threads.
    """

    def __init__(self) -> None:
        self._requested = False
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._writer, False)
        self._previous_fd = signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, *without_ignored([signal.SIGINT])):
            signal.signal(number, self._handle)

    def wait(self, seconds: float | None) -> bool:
        """Wait for a signal, also an earlier one, for ``seconds``; return whether one arrived.

        None waits without a limit.
        """
        waiting = select.poll()
        waiting.register(self._reader, select.POLLIN)
        end = math.inf if seconds is None else time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if waiting.poll(min(left, _DAY_S) * 1_000):
                return True
        return False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Close the descriptors; the handlers stay, for a second signal during a slow stop."""
        signal.set_wakeup_fd(self._previous_fd)
        os.close(self._writer)
        os.close(self._reader)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self._requested:
            os._exit(128 + number)  # process 1 of a container ignores signals by default
        self._requested = True
