"""A source read by a thread of its own: for what asks firmware and may take its time.

The tick thread never waits.  Each ``read`` hands out what the last round gave and asks for the
next one, so a value is one read old, evenly spaced, and needs no clock of its own.  While a round
is not over (a device that does not answer) values are missing, not repeated.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import NamedTuple

from reveal_collector.kernel.errors import LayoutChanged
from reveal_collector.readers.source import Source
from reveal_contract.channels import Channel

_STUCK_SECONDS = 0.2  # how long closing waits for a round to end


class _Round(NamedTuple):
    """What one round gave: columns and values of one layout, or why there are none."""

    channels: tuple[Channel, ...]
    values: Sequence[int | None]
    error: OSError | None = None


class BackgroundSource:
    """Another source, read in a thread; its ``open`` runs in the caller's."""

    def __init__(self, source: Source) -> None:
        self.name, self.lane = source.name, source.lane
        self.channels: tuple[Channel, ...] = ()
        self._source = source
        self._runner: _Runner | None = None

    def open(self) -> None:
        self.close()
        self._source.open()
        self.lane = self._source.lane
        self.channels = self._source.channels
        self._runner = _Runner(self._source)

    def read(self) -> Sequence[int | None]:
        done = self._runner.take() if self._runner else None
        if done is None:
            return (None,) * len(self.channels)
        if done.channels != self.channels:
            self.channels = done.channels
            raise LayoutChanged(self.name)
        if done.error is not None:
            raise done.error
        return done.values

    def settle(self, timeout: float) -> bool:
        """Wait until the round under way is over; whether it is."""
        return self._runner is None or self._runner.idle.wait(timeout)

    def close(self) -> None:
        """End the thread; one stuck in the kernel closes the files when it comes back."""
        if self._runner is not None:
            self._runner.end()
        self._runner, self.channels = None, ()


class _Runner:
    """The thread: one round for each ``take``."""

    def __init__(self, source: Source) -> None:
        self.idle = threading.Event()
        self._source = source
        self._wanted = threading.Event()
        self._ending = False
        self._last: _Round | None = None
        self._thread = threading.Thread(
            target=self._run, name=f"reveal-{source.name}"[:15], daemon=True
        )
        self._wanted.set()  # the first values should be there when they are asked for
        self._thread.start()

    def take(self) -> _Round | None:
        """The round that ended since the last call; ``None`` while there is none."""
        if not self.idle.is_set():
            return None
        last, self._last = self._last, None
        self.idle.clear()
        self._wanted.set()
        return last

    def end(self) -> None:
        self._ending = True
        self._wanted.set()
        self._thread.join(_STUCK_SECONDS)

    def _run(self) -> None:
        while True:
            self._wanted.wait()
            self._wanted.clear()
            if self._ending:
                break
            self._last = self._round()
            self.idle.set()
        self._source.close()

    def _round(self) -> _Round:
        try:
            try:
                values = self._source.read()
            except LayoutChanged:
                values = self._source.read()
        except LayoutChanged:  # twice running: things are still coming and going
            return _Round(self._source.channels, (None,) * len(self._source.channels))
        except OSError as error:
            return _Round(self._source.channels, (), error)
        except Exception as error:  # a defect of one source must not end its thread unseen
            return _Round(self._source.channels, (), OSError(f"{type(error).__name__}: {error}"))
        return _Round(self._source.channels, values)
