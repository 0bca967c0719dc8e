"""Numbers of a few files on a grid finer than the ticks, read by a thread: in C, else here."""

from __future__ import annotations

import contextlib
import ctypes
import os
import threading
import time
from array import array
from dataclasses import dataclass
from typing import Protocol

from reveal_collector import native
from reveal_collector.kernel.scheduling import prefer_real_time

RING = 64


@dataclass(frozen=True)
class Reading:
    """Where the number stands in a file: after ``skip`` bytes, ``divisor`` times what is wanted."""

    fd: int
    skip: int = 0
    divisor: int = 1


class Rings:
    """The last readings of ``slots`` files; a place holds the step it was read at."""

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self.steps = array("q", [-1]) * (slots * RING)
        self.used = array("q", [0]) * (slots * RING)

    def take(self, slot: int, step: int, value: int) -> None:
        place = slot * RING + step % RING
        self.used[place] = value
        self.steps[place] = step

    def between(self, slot: int, step: int) -> int | None:
        """What was added from the step before to this one; ``None`` where one was not read."""
        at, before = slot * RING + step % RING, slot * RING + (step - 1) % RING
        if self.steps[at] != step or self.steps[before] != step - 1:
            return None
        return max(0, self.used[at] - self.used[before])

    def forget(self, slot: int) -> None:
        """The next readings are another file's."""
        for place in range(slot * RING, (slot + 1) * RING):
            self.steps[place] = -1


class Grid(Protocol):
    """A thread that reads what it follows at each step and sleeps while it follows nothing."""

    def follow(self, slot: int, reading: Reading | None) -> None:
        """From the next step on; with ``None`` the old descriptor may be closed."""

    def stop(self) -> None: ...


def grid(rings: Rings, period_ns: int) -> Grid:
    """The thread in C where it is built."""
    library = native.load().library
    if library is not None and hasattr(library, "reveal_fine_start"):
        with contextlib.suppress(OSError):
            return _NativeGrid(library, rings, period_ns)
    return _PythonGrid(rings, period_ns)


class _NativeGrid:
    def __init__(self, library: ctypes.CDLL, rings: Rings, period_ns: int) -> None:
        self._library, self._rings = library, rings  # the thread writes into them
        start = library.reveal_fine_start
        start.restype = ctypes.c_void_p
        start.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int32, ctypes.c_int32,
                          ctypes.c_int64]  # fmt: skip
        library.reveal_fine_follow.argtypes = [ctypes.c_void_p, ctypes.c_int32, ctypes.c_int,
                                               ctypes.c_int32, ctypes.c_int64]  # fmt: skip
        library.reveal_fine_follow.restype = None
        library.reveal_fine_stop.argtypes = [ctypes.c_void_p]
        library.reveal_fine_stop.restype = None
        places = rings.steps.buffer_info()[0], rings.used.buffer_info()[0]
        self._thread = start(*places, rings.slots, RING, period_ns)
        if not self._thread:
            raise OSError("the thread of the fine lane cannot be started")

    def follow(self, slot: int, reading: Reading | None) -> None:
        one = reading or Reading(-1)
        self._library.reveal_fine_follow(self._thread, slot, one.fd, one.skip, one.divisor)
        if reading is None:
            self._rings.forget(slot)

    def stop(self) -> None:
        self._library.reveal_fine_stop(self._thread)


class _PythonGrid:
    def __init__(self, rings: Rings, period_ns: int) -> None:
        self._rings, self._period = rings, period_ns
        self._followed: dict[int, Reading] = {}
        self._lock = threading.Lock()
        self._wanted = threading.Event()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="reveal-fine", daemon=True)
        self._thread.start()

    def follow(self, slot: int, reading: Reading | None) -> None:
        with self._lock:
            if reading is None:
                self._followed.pop(slot, None)
                self._rings.forget(slot)
            else:
                self._followed[slot] = reading
            (self._wanted.set if self._followed else self._wanted.clear)()

    def stop(self) -> None:
        self._stopping = True
        self._wanted.set()
        self._thread.join(1.0)

    def _run(self) -> None:
        prefer_real_time()
        while not self._stopping:
            self._wanted.wait()
            step = time.monotonic_ns() // self._period + 1
            time.sleep(max(0, step * self._period - time.monotonic_ns()) / 1e9)
            if time.monotonic_ns() < (step + 1) * self._period:
                self._sample(step)

    def _sample(self, step: int) -> None:
        with self._lock:
            for slot, one in self._followed.items():
                try:
                    text = os.pread(one.fd, 512, 0)[one.skip :].split(None, 1)
                    self._rings.take(slot, step, int(text[0]) // one.divisor)
                except (OSError, ValueError, IndexError, OverflowError):
                    continue
