"""Proof of life: files that a probe looks at, touched by the thread that does the work.

A file's age costs its reader a shell's ``test`` and the process nothing: one utimensat(2) a
second at most, in a thread that is awake anyway.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from pathlib import Path

log = logging.getLogger(__name__)

ALIVE_FILE = "alive"  # touched at least every five seconds by a process that works
READY_FILE = "ready"  # beside it, once the process delivers or reads; it stays
_LEAST_SECONDS = 1.0
# a slice takes a second, a turn of the analyzer 50 ms, or some seconds while Redis hangs
STALLED_SECONDS = 30.0


class Pulse:
    """``beat`` while the work goes on, ``ready`` once it is of use to others.

    Readiness stays: a Redis that is away is no fault of the pod, and pods that are no longer
    ready would only hold up roll-outs and drains of nodes.  Without a ``folder`` nothing is
    written, but the age is kept.  Raises ``OSError`` where the folder cannot be written.
    """

    def __init__(
        self, folder: Path | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.is_ready = False
        self._folder, self._clock = folder, clock
        self._beaten = clock()
        self._touched = -_LEAST_SECONDS
        self._failed = False
        if folder is not None:
            _begin(folder)

    @property
    def age(self) -> float:
        """Seconds since the last beat, or since the beginning."""
        return self._clock() - self._beaten

    def stalled(self) -> str:
        """Why the process is to be started anew; "" while its work goes on."""
        return f"nothing was done for {self.age:.0f} s" if self.age > STALLED_SECONDS else ""

    def beat(self) -> None:
        now = self._beaten = self._clock()
        if self._folder is not None and now - self._touched >= _LEAST_SECONDS:
            self._touched = now
            self._touch(self._folder / ALIVE_FILE)

    def ready(self) -> None:
        """From now on; said again it costs nothing."""
        if not self.is_ready:
            self.is_ready = True
            if self._folder is not None:
                self._touch(self._folder / READY_FILE)

    def _touch(self, file: Path) -> None:
        try:
            touch(file)
        except OSError as error:
            if not self._failed:  # the probe will end us, and the log says why
                log.warning("%s cannot be touched: %s", file, error.strerror)
            self._failed = True


def touch(file: Path) -> None:
    """Set the file's time to now, making it where it is not."""
    try:
        os.utime(file)
    except FileNotFoundError:
        file.touch()


def _begin(folder: Path) -> None:
    """No file of an earlier life: the folder of a pod outlives its containers."""
    try:
        for name in (ALIVE_FILE, READY_FILE):
            (folder / name).unlink(missing_ok=True)
        touch(folder / ALIVE_FILE)
    except OSError as error:
        raise OSError(error.errno, f"run folder {folder}: {error.strerror}") from None
