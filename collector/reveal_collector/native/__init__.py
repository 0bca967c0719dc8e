"""The shared library of the C parts: found, checked and loaded once; without it, Python is used."""

from __future__ import annotations

import ctypes
import os
from functools import cache
from pathlib import Path
from typing import NamedTuple

ABI = 5
SWITCH = "REVEAL_NO_NATIVE"
# the output of ``build``; REVEAL_NATIVE selects another build, such as one with sanitizers
LIBRARY = Path(os.environ.get("REVEAL_NATIVE", Path(__file__).with_name("_native.so")))
_CONSEQUENCE = "the Python path needs about twice the CPU"


class LoadedLibrary(NamedTuple):
    """The library, or why it is unavailable."""

    library: ctypes.CDLL | None
    unavailable: str


@cache
def load() -> LoadedLibrary:
    """Load the library, unless ``REVEAL_NO_NATIVE=1`` is in the environment."""
    if os.environ.get(SWITCH, "") not in ("", "0"):
        return LoadedLibrary(None, f"C scanner disabled by {SWITCH}: {_CONSEQUENCE}")
    if not LIBRARY.exists():
        return LoadedLibrary(None, f"C scanner not built: no compiler; {_CONSEQUENCE}")
    try:
        library = ctypes.CDLL(str(LIBRARY), use_errno=True)
        version = int(library.reveal_abi())
    except (OSError, AttributeError) as error:
        return LoadedLibrary(None, f"C scanner cannot be loaded ({error}); {_CONSEQUENCE}")
    if version != ABI:
        return LoadedLibrary(
            None, f"C scanner is of version {version}, not {ABI}: build it again; {_CONSEQUENCE}"
        )
    return LoadedLibrary(library, "")
