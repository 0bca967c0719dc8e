"""Python's garbage collection in a process that keeps thousands of nodes.

Nearly all is freed by its reference count; the collector is there for cycles, and looks for
them among all that lives: a second for two thousand nodes, in which nobody is served.  So what
is new is looked at after each slice, while it is still in the cache (a tenth of a second later it
costs five times as much), and then set aside.  What was in use at that moment, and became a cycle
later, is found by a look at everything: once nodes were let go, which are cycles, and now and
then.
"""

from __future__ import annotations

import gc

DROPPED_SECONDS = 300.0  # between two looks at everything, at least
FULL_SECONDS = 3600.0
_NEVER = 1_000_000  # objects; Python's own looks would come in between


class Garbage:
    """``look`` is called after each slice, ``turn`` now and then.

    ``now`` are seconds of a monotonic clock.
    """

    def __init__(self, now: float) -> None:
        self._before = gc.get_threshold()
        self._full = now
        self._dropped = False

    def dropped(self) -> None:
        """Nodes were let go: everything is to be looked at again."""
        self._dropped = True

    def look(self) -> None:
        """Set aside what is new and lives."""
        gc.collect(1)
        gc.freeze()

    def turn(self, now: float) -> None:
        """The same, of everything where that is due."""
        gc.set_threshold(_NEVER)
        if now >= self._full + (DROPPED_SECONDS if self._dropped else FULL_SECONDS):
            self._dropped, self._full = False, now
            gc.unfreeze()
            gc.collect()
        self.look()

    def close(self) -> None:
        """Leave it to Python again."""
        gc.set_threshold(*self._before)
        gc.unfreeze()
