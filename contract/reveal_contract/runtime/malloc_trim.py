"""Memory that was needed for a moment goes back to the kernel (glibc's malloc_trim(3))."""

from __future__ import annotations

import ctypes


def give_back() -> None:
    """What is free of it; some milliseconds.  Other C libraries lack the call: nothing is done."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
