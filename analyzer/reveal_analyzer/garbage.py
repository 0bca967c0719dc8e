"""Python's garbage collection in a process that keeps thousands of nodes.

Nearly all is freed by its reference count; the collector is there for cycles, and looks for
them among all that lives: a second for two thousand nodes, in which nobody is served.  So what
has lived for some seconds is set aside, where it is not looked at, and looked at again once
nodes were let go, which are cycles.
"""

from __future__ import annotations

import gc

ASIDE_SECONDS = 2.0  # what is young is few, and still in the cache: a look at it takes milliseconds
FULL_SECONDS = 300.0  # between two looks at everything, at least


class Garbage:
    """Called each turn; ``now`` in seconds of a monotonic clock."""

    def __init__(self) -> None:
        self._due = self._full = 0.0
        self._dropped = False

    def dropped(self) -> None:
        """Nodes were let go: everything is to be looked at again."""
        self._dropped = True

    def turn(self, now: float) -> None:
        """Set aside what lives, now and then."""
        if now < self._due:
            return
        self._due = now + ASIDE_SECONDS
        if self._dropped and now >= self._full:
            self._dropped, self._full = False, now + FULL_SECONDS
            gc.unfreeze()
            gc.collect()
        else:
            gc.collect(1)  # the young ones: what is dead among them is not set aside
        gc.freeze()
