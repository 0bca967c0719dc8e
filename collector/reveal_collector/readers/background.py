"""A source that a thread of its own reads, for interfaces that query firmware and may take long.

The tick thread never waits.  Each ``read`` returns the values of the last round and requests the
next one.  A value is therefore one read old, evenly spaced, and needs no timer of its own.  While
a round has not finished (a device does not answer), values are missing and never repeated; after
``HUNG_NS`` the source states the outage.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import NamedTuple

from reveal_collector.kernel_interfaces.errors import LayoutChanged, Unsupported
from reveal_collector.readers.source import HUNG_NS, Outage, Source, degraded_of
from reveal_contract.channels import Channel

_STUCK_SECONDS = 0.2  # how long ``close`` waits for a round to finish
# The period of the rarest lane and a tolerance: an older round is not sent, as after a standstill.
_MAX_AGE_NS = 15_000_000_000


class _Round(NamedTuple):
    """Result of one round: columns and values of one layout, or the error."""

    channels: tuple[Channel, ...]
    values: Sequence[int | None]
    error: OSError | None = None
    began_ns: int = 0
    ended_ns: int = 0

    def is_recent(self, now_ns: int) -> bool:
        """Return whether the first of the values still says something about now."""
        return self.ended_ns - self.began_ns < HUNG_NS and now_ns - self.ended_ns < _MAX_AGE_NS


class BackgroundSource:
    """Wraps a source and reads it in a thread; ``open`` runs in the caller's thread."""

    def __init__(self, source: Source) -> None:
        self.name, self.lane = source.name, source.lane
        self.channels: tuple[Channel, ...] = ()
        self._source = source
        self._runner: _Runner | None = None
        self._left: _Runner | None = None  # the last one that was closed

    def open(self) -> None:
        """Open the source and start the thread with its first round.

        Raises ``Unsupported`` while an earlier round hangs: its thread still uses the source.
        """
        self.close()
        if self._left is not None and self._left.is_alive:
            raise Unsupported("an earlier read has not returned", "see dmesg for the reason")
        self._source.open()
        self.lane = self._source.lane
        self.channels = self._source.channels
        self._runner = _Runner(self._source)

    def read(self) -> Sequence[int | None]:
        """Return the values of the last round; blanks while it has not finished."""
        finished = self._runner.take() if self._runner else None
        if finished is None:
            return (None,) * len(self.channels)
        if finished.channels != self.channels:
            self.channels = finished.channels
            raise LayoutChanged(self.name)
        if finished.error is not None:
            raise finished.error
        if not finished.is_recent(time.monotonic_ns()):
            return (None,) * len(self.channels)
        return finished.values

    @property
    def degraded(self) -> Sequence[str]:
        """The phrases of the source."""
        return degraded_of(self._source)

    def outage(self) -> Outage | None:
        """Return since when the round under way has not finished; None between two rounds."""
        began_ns = self._runner.began_ns if self._runner else 0
        return Outage(began_ns) if began_ns else None

    def settle(self, timeout: float) -> bool:
        """Wait until the current round has finished; return False on timeout."""
        return self._runner is None or self._runner.idle.wait(timeout)

    def close(self) -> None:
        """Stop the thread; one that is stuck in the kernel closes the files when it returns."""
        if self._runner is not None:
            self._runner.end()
            self._left = self._runner
        self._runner, self.channels = None, ()


class _Runner:
    """The thread: it runs one round after each call of ``take``."""

    def __init__(self, source: Source) -> None:
        self.idle = threading.Event()
        self._source = source
        self._requested = threading.Event()
        self._stopping = False
        self._last: _Round | None = None
        self.began_ns = 0  # monotonic, of the round under way; 0 between two
        self._thread = threading.Thread(
            target=self._run, name=f"reveal-{source.name}"[:15], daemon=True
        )
        self._requested.set()  # the first values should be available at the first read
        self._thread.start()

    @property
    def is_alive(self) -> bool:
        """Whether the thread has not ended: it may be stuck in the kernel."""
        return self._thread.is_alive()

    def take(self) -> _Round | None:
        """Return the finished round and request the next one; None while no round has finished."""
        if not self.idle.is_set():
            return None
        last, self._last = self._last, None
        self.idle.clear()
        self._requested.set()
        return last

    def end(self) -> None:
        """Stop the thread after its current round."""
        self._stopping = True
        self._requested.set()
        self._thread.join(_STUCK_SECONDS)

    def _run(self) -> None:
        while True:
            self._requested.wait()
            self._requested.clear()
            if self._stopping:
                break
            began_ns = self.began_ns = time.monotonic_ns()
            finished = self._round()
            self._last = finished._replace(began_ns=began_ns, ended_ns=time.monotonic_ns())
            self.began_ns = 0
            self.idle.set()
        self._source.close()

    def _round(self) -> _Round:
        try:
            try:
                values = self._source.read()
            except LayoutChanged:
                values = self._source.read()
        except LayoutChanged:  # twice in a row: the layout is still changing
            return _Round(self._source.channels, (None,) * len(self._source.channels))
        except OSError as error:
            return _Round(self._source.channels, (), error)
        except Exception as error:  # a defect must not end the thread silently
            return _Round(self._source.channels, (), OSError(f"{type(error).__name__}: {error}"))
        return _Round(self._source.channels, values)
