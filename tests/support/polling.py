"""Waiting for what another thread or process does: looking again and again, but not for ever."""

from __future__ import annotations

import time
from collections.abc import Callable

_PAUSE_S = 0.01


def comes_true(holds: Callable[[], object], seconds: float) -> bool:
    """Whether it comes to hold in time."""
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(_PAUSE_S)
    return True


def until(
    holds: Callable[[], object], what: str = "what was waited for", seconds: float = 30
) -> None:
    """Wait until it holds; an AssertionError that names ``what`` if it does not in time."""
    assert comes_true(holds, seconds), f"not within {seconds:g} s: {what}"
