"""Waiting for what another thread or process does: looking again and again, but not for ever."""

from __future__ import annotations

import time
from collections.abc import Callable

# a program is read from disk again on a host that is short of memory, and others use its CPUs
PATIENCE_S = 60.0
_PAUSE_S = 0.01


def comes_true(holds: Callable[[], object], seconds: float = PATIENCE_S) -> bool:
    """Whether it comes to hold in time."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(_PAUSE_S)
    return True


def until(
    holds: Callable[[], object], what: str = "what was waited for", seconds: float = PATIENCE_S
) -> None:
    """Wait until it holds; an AssertionError that names ``what`` if it does not in time."""
    assert comes_true(holds, seconds), f"not within {seconds:g} s: {what}"
