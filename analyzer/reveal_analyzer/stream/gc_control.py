"""Control of Python's garbage collector in a process that keeps state of thousands of nodes.

Reference counts free nearly everything; the collector is needed for cycles only.  A full collection
takes a second for two thousand nodes, during which no slice is processed.  So new objects are
collected after each slice, while they are in the CPU cache (0.1 s later it costs five times as
much), and the survivors are frozen.  Frozen objects that become a cycle later are found by a full
collection: after nodes were dropped, and once an hour.
"""

from __future__ import annotations

import gc

DROPPED_SECONDS = 300.0  # minimum interval of full collections after nodes were dropped
FULL_SECONDS = 3600.0
_NEVER = 1_000_000  # objects; Python shall not start collections itself


class GarbageControl:
    """Schedule of collections.

    Call ``freeze_survivors`` after each slice and ``collect_when_due`` about once a second.

    ``now`` is in seconds of a monotonic clock.
    """

    def __init__(self, now: float) -> None:
        self._previous = gc.get_threshold()
        self._last_full_s = now
        self._nodes_dropped = False

    def note_dropped(self) -> None:
        """Schedule a full collection, as nodes were dropped and are cycles."""
        self._nodes_dropped = True

    def freeze_survivors(self) -> None:
        """Collect new objects and freeze those that survive."""
        gc.collect(1)
        gc.freeze()

    def collect_when_due(self, now: float) -> None:
        """Run a full collection if it is due, and freeze the survivors."""
        gc.set_threshold(_NEVER)
        if now >= self._last_full_s + (DROPPED_SECONDS if self._nodes_dropped else FULL_SECONDS):
            self._nodes_dropped, self._last_full_s = False, now
            gc.unfreeze()
            gc.collect()
        self.freeze_survivors()

    def close(self) -> None:
        """Restore Python's own settings."""
        gc.set_threshold(*self._previous)
        gc.unfreeze()
