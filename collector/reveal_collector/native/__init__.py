"""The shared library of the C parts: found, checked, loaded once; all else works without it."""

from __future__ import annotations

import ctypes
import os
from functools import cache
from pathlib import Path
from typing import NamedTuple

ABI = 3
SWITCH = "REVEAL_NO_NATIVE"
# where ``build`` leaves it; another build of it, such as one with sanitizers, by the environment
LIBRARY = Path(os.environ.get("REVEAL_NATIVE", Path(__file__).with_name("_native.so")))
_PRICE = "the Python path costs about twice the CPU"


class LoadedLibrary(NamedTuple):
    """The library, or why there is none."""

    library: ctypes.CDLL | None
    unavailable: str


@cache
def load() -> LoadedLibrary:
    """Load the library; ``REVEAL_NO_NATIVE=1`` in the environment says not to."""
    if os.environ.get(SWITCH, "") not in ("", "0"):
        return LoadedLibrary(None, f"C scanner switched off by {SWITCH}: {_PRICE}")
    if not LIBRARY.exists():
        return LoadedLibrary(None, f"C scanner not built: no compiler; {_PRICE}")
    try:
        library = ctypes.CDLL(str(LIBRARY), use_errno=True)
        version = int(library.reveal_abi())
    except (OSError, AttributeError) as error:
        return LoadedLibrary(None, f"C scanner cannot be loaded ({error}); {_PRICE}")
    if version != ABI:
        return LoadedLibrary(
            None, f"C scanner is of version {version}, not {ABI}: build anew; {_PRICE}"
        )
    return LoadedLibrary(library, "")
