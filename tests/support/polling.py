"""Waiting for another thread or process: ask again and again, with a deadline."""

from __future__ import annotations

import time
from collections.abc import Callable

_PAUSE_S = 0.01


def becomes_true(condition: Callable[[], object], seconds: float) -> bool:
    """Return whether the condition becomes true in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(_PAUSE_S)
    return True


def wait_until(
    condition: Callable[[], object], what: str = "the condition", seconds: float = 45
) -> None:
    """Wait until the condition is true; raise an AssertionError that names ``what`` if it is not.

    The limit only ends a test that hangs: it is generous, as the machine may be busy.
    """
    assert becomes_true(condition, seconds), f"not within {seconds:g} s: {what}"
