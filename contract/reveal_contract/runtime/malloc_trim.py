"""Return of freed memory to the kernel (glibc's malloc_trim(3))."""

from __future__ import annotations

import ctypes


def give_back() -> None:
    """Return freed memory; takes some milliseconds.  Does nothing with other C libraries."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
