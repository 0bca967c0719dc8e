"""Loops compiled by numba, which the extra ``fast`` brings; only ``*_numba`` modules import this.

What is compiled (seconds) is kept on disk for the next process: where ``NUMBA_CACHE_DIR``
says, else beside the module, in the user's cache, or in a private folder among the temporary
ones.  Where none of these can be written, as in a read-only container without a home, every
process compiles for itself.
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

# IEEE division by zero as in numpy.  No fast mathematics: sums keep numpy's order, and so
# its last bit; a fused multiplication would win a few per cent and lose that.
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
_homeless: list[str] = []  # functions that found no place on disk


def kernel(function: Function) -> Function:
    """Compiled at its first call, or taken from the cache."""
    try:
        made = numba.njit(cache=True, **_OPTIONS)(function)
    except RuntimeError:  # numba found no place for its cache
        made = _kept_apart(function)
    return cast(Function, made)


def keeps() -> bool:
    """Whether all that was made so far has a place on disk."""
    return not _homeless


def part(function: Function) -> Function:
    """A part of kernels of its own module, compiled into each.

    Only there the shapes of scratch arrays are known, without which loops over lanes become
    no vector instructions.  The cache does not see changes of other modules: none may be used.
    """
    return cast(Function, numba.njit(forceinline=True, **_OPTIONS)(function))


def _kept_apart(function: Callable[..., Any]) -> Callable[..., Any]:
    folder = Path(tempfile.gettempdir()) / f"reveal-numba-{os.getuid()}"
    if not _private(folder):
        return _not_kept(function)
    config: Any = numba.config  # its attributes are made of the environment
    before, config.CACHE_DIR = config.CACHE_DIR, str(folder)
    try:
        return cast(Callable[..., Any], numba.njit(cache=True, **_OPTIONS)(function))
    except RuntimeError:
        return _not_kept(function)
    finally:
        config.CACHE_DIR = before


def _not_kept(function: Callable[..., Any]) -> Callable[..., Any]:
    _homeless.append(function.__name__)
    return cast(Callable[..., Any], numba.njit(**_OPTIONS)(function))


def _private(folder: Path) -> bool:
    """Whether it is ours alone: what lies in a cache is run."""
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
    except OSError:
        return False
    ours = stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid()
    return ours and not status.st_mode & 0o077
