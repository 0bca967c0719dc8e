"""Files that liveness and readiness probes check, touched by the thread that does the work.

It takes at most one utimensat(2) a second, in a thread that is awake anyway.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from pathlib import Path

log = logging.getLogger(__name__)

ALIVE_FILE = "alive"  # touched at least every five seconds by a working process
READY_FILE = "ready"  # created once the process delivers or reads; it stays
_LEAST_SECONDS = 1.0
# a slice takes a second, a poll of the analyzer 50 ms, or some seconds while Redis hangs
STALLED_SECONDS = 30.0


class LivenessFiles:
    """Call ``beat`` while the work goes on, ``ready`` once it is useful to others.

    Readiness stays: an unavailable Redis is no fault of the pod, and pods that are not ready would
    only delay roll-outs and node drains.  Without a ``folder`` nothing is written, but the age is
    kept.  Raises ``OSError`` where the folder cannot be written.
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
        """Return why the process must be restarted; "" while its work goes on."""
        return f"nothing was done for {self.age:.0f} s" if self.age > STALLED_SECONDS else ""

    def beat(self) -> None:
        """Note that the work goes on."""
        now = self._beaten = self._clock()
        if self._folder is not None and now - self._touched >= _LEAST_SECONDS:
            self._touched = now
            self._touch(self._folder / ALIVE_FILE)

    def ready(self) -> None:
        """Note that the process is ready; further calls do nothing."""
        if not self.is_ready:
            self.is_ready = True
            if self._folder is not None:
                self._touch(self._folder / READY_FILE)

    def _touch(self, file: Path) -> None:
        try:
            touch(file)
        except OSError as error:
            if not self._failed:  # the probe will end the process; the log says why
                log.warning("%s cannot be touched: %s", file, error.strerror)
            self._failed = True


def touch(file: Path) -> None:
    """Set the file's time to now; create it if needed."""
    try:
        os.utime(file)
    except FileNotFoundError:
        file.touch()


def _begin(folder: Path) -> None:
    """Remove files of an earlier process: the folder of a pod outlives its containers."""
    try:
        for name in (ALIVE_FILE, READY_FILE):
            (folder / name).unlink(missing_ok=True)
        touch(folder / ALIVE_FILE)
    except OSError as error:
        raise OSError(error.errno, f"run folder {folder}: {error.strerror}") from None
