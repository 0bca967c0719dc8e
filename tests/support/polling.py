"""Waiting for another thread or process: ask again and again, with a deadline."""

from __future__ import annotations

import time
from collections.abc import Callable

_PAUSE_S = 0.01
# a longer time between two questions is one in which the whole machine stood still
_LONGEST_STEP_S = 5.0


def becomes_true(condition: Callable[[], object], seconds: float) -> bool:
    """Return whether the condition becomes true in time."""
    left, before = seconds, time.monotonic()
    while not condition():
        now = time.monotonic()
        left -= min(now - before, _LONGEST_STEP_S)
        if left < 0:
            return False
        before = now
        time.sleep(_PAUSE_S)
    return True


def wait_until(
    condition: Callable[[], object], what: str = "the condition", seconds: float = 45
) -> None:
    """Wait until the condition is true; raise an AssertionError that names ``what`` if it is not.

    The limit only ends a test that hangs: it is generous, as the machine may be busy.
    """
    assert becomes_true(condition, seconds), f"not within {seconds:g} s: {what}"
