"""Compilation by numba, which the extra ``fast`` installs; only ``numba_*`` modules import this.

Compiled code (it takes seconds) is cached on disk for the next process: in ``NUMBA_CACHE_DIR``,
else beside the module, in the user's cache, or in a private temporary folder.  If none is writable,
as in a read-only container without a home folder, every process compiles for itself.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., Any])

# IEEE division by zero as in numpy.  No fast math: it would win a few percent, but change the
# order of sums and so the last bit.
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
_uncached: list[str] = []  # functions without a cache on disk


def kernel(function: Function) -> Function:
    """Compile a function at its first call, or load it from the cache."""
    try:
        compiled = numba.njit(cache=True, **_OPTIONS)(function)
    except RuntimeError:  # numba found no writable cache folder
        compiled = _cached_in_temporary_folder(function)
    return cast(Function, compiled)


def all_cached() -> bool:
    """Return whether every kernel so far has a cache on disk."""
    return not _uncached


def inlined(function: Function) -> Function:
    """Compile a helper into each kernel of its module that calls it.

    Only inlined helpers know the shapes of scratch arrays, without which loops over lanes do not
    become vector instructions.  A helper must be in the module of its kernels, as the cache does
    not notice changes in other modules.
    """
    return cast(Function, numba.njit(forceinline=True, **_OPTIONS)(function))


def _cached_in_temporary_folder(function: Callable[..., Any]) -> Callable[..., Any]:
    folder = _temporary_folder()
    if folder is None or not _private(folder):
        return _without_cache(function)
    config: Any = numba.config  # numba sets its attributes from the environment
    previous, config.CACHE_DIR = config.CACHE_DIR, str(folder)
    try:
        return cast(Callable[..., Any], numba.njit(cache=True, **_OPTIONS)(function))
    except RuntimeError:
        return _without_cache(function)
    finally:
        config.CACHE_DIR = previous


def _temporary_folder() -> Path | None:
    """Return the folder of this user's cache; None where no folder takes temporary files."""
    try:
        return Path(tempfile.gettempdir()) / f"reveal-numba-{os.getuid()}"
    except FileNotFoundError:
        return None


def _without_cache(function: Callable[..., Any]) -> Callable[..., Any]:
    _uncached.append(function.__name__)
    return cast(Callable[..., Any], numba.njit(**_OPTIONS)(function))


def _private(folder: Path) -> bool:
    """Return whether only this user can write the folder: code in a cache is executed."""
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
    except OSError:
        return False
    ours = stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid()
    return ours and not status.st_mode & 0o077
