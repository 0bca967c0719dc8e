"""Thread that reads a counter from a few files on a time grid finer than the ticks.

The thread runs in C where the native library is built, else in Python.
"""

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
from reveal_collector.kernel_interfaces.scheduling import prefer_real_time

RING_STEPS = 64


@dataclass(frozen=True)
class CounterFile:
    """Position of a counter in an open file: after ``skip`` bytes, scaled by 1/``divisor``."""

    fd: int
    skip: int = 0
    divisor: int = 1


class SampleRings:
    """Ring buffers of the last samples of ``slots`` files, with the grid step of each sample."""

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self.steps = array("q", [-1]) * (slots * RING_STEPS)
        self.values = array("q", [0]) * (slots * RING_STEPS)

    def store(self, slot: int, step: int, value: int) -> None:
        """Store the value that a file had at a grid step."""
        index = slot * RING_STEPS + step % RING_STEPS
        # The reader checks the step: it must not see a new step with an old value.
        self.values[index] = value
        self.steps[index] = step

    def increases(self, slot: int, last: int, count: int) -> list[int | None]:
        """Return the increases of the ``count`` steps up to ``last``, each since the step before.

        One is ``None`` where a sample is missing.
        """
        steps, values, start = self.steps, self.values, slot * RING_STEPS
        found: list[int | None] = []
        before: int | None = None
        for step in range(last - count, last + 1):
            index = start + step % RING_STEPS
            value = values[index] if steps[index] == step else None
            if value is None or before is None:
                found.append(None)
            else:
                found.append(max(0, value - before))
            before = value
        return found[1:]

    def clear(self, slot: int) -> None:
        """Remove all samples of a slot, before another file is assigned to it."""
        for index in range(slot * RING_STEPS, (slot + 1) * RING_STEPS):
            self.steps[index] = -1


class SamplingThread(Protocol):
    """A thread that samples its files at each step and sleeps while it has none."""

    def assign(self, slot: int, file: CounterFile | None) -> None:
        """Sample a file from the next step on; after ``None`` the old one may be closed."""

    def stop(self) -> None: ...


def start_sampling_thread(rings: SampleRings, period_ns: int) -> SamplingThread:
    """Start the thread, in C where possible."""
    library = native.load().library
    if library is not None and hasattr(library, "reveal_fine_start"):
        with contextlib.suppress(OSError):
            return _NativeThread(library, rings, period_ns)
    return _PythonThread(rings, period_ns)


class _NativeThread:
    def __init__(self, library: ctypes.CDLL, rings: SampleRings, period_ns: int) -> None:
        self._library, self._rings = library, rings  # kept alive: the thread writes into them
        start = library.reveal_fine_start
        start.restype = ctypes.c_void_p
        start.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int32, ctypes.c_int32,
                          ctypes.c_int64]  # fmt: skip
        library.reveal_fine_follow.argtypes = [ctypes.c_void_p, ctypes.c_int32, ctypes.c_int,
                                               ctypes.c_int32, ctypes.c_int64]  # fmt: skip
        library.reveal_fine_follow.restype = None
        library.reveal_fine_stop.argtypes = [ctypes.c_void_p]
        library.reveal_fine_stop.restype = None
        addresses = rings.steps.buffer_info()[0], rings.values.buffer_info()[0]
        self._thread = start(*addresses, rings.slots, RING_STEPS, period_ns)
        if not self._thread:
            raise OSError("the thread of the fine lane cannot be started")

    def assign(self, slot: int, file: CounterFile | None) -> None:
        target = file or CounterFile(-1)
        self._library.reveal_fine_follow(self._thread, slot, target.fd, target.skip, target.divisor)
        if file is None:
            self._rings.clear(slot)

    def stop(self) -> None:
        self._library.reveal_fine_stop(self._thread)


class _PythonThread:
    def __init__(self, rings: SampleRings, period_ns: int) -> None:
        self._rings, self._period = rings, period_ns
        self._files: dict[int, CounterFile] = {}
        self._lock = threading.Lock()
        self._has_files = threading.Event()
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name="reveal-fine", daemon=True)
        self._thread.start()

    def assign(self, slot: int, file: CounterFile | None) -> None:
        with self._lock:
            if file is None:
                self._files.pop(slot, None)
                self._rings.clear(slot)
            else:
                self._files[slot] = file
            (self._has_files.set if self._files else self._has_files.clear)()

    def stop(self) -> None:
        self._stopping = True
        self._has_files.set()
        self._thread.join(1.0)

    def _run(self) -> None:
        prefer_real_time()
        while not self._stopping:
            self._has_files.wait()
            step = time.monotonic_ns() // self._period + 1
            time.sleep(max(0, step * self._period - time.monotonic_ns()) / 1e9)
            if time.monotonic_ns() < (step + 1) * self._period:
                self._sample(step)

    def _sample(self, step: int) -> None:
        with self._lock:
            for slot, file in self._files.items():
                try:
                    text = os.pread(file.fd, 512, 0)[file.skip :].split(None, 1)
                    self._rings.store(slot, step, int(text[0]) // file.divisor)
                except (OSError, ValueError, IndexError, OverflowError):
                    continue
