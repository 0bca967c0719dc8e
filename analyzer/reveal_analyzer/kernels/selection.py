"""Selection of the fastest backend of this host, tested before it is used."""

from __future__ import annotations

import subprocess
import sys
import time

from reveal_analyzer.kernels import backend, selftest

_COMPILED_S = 300.0  # takes 10 to 20 s on an idle host


def use_fastest() -> str:
    """Use numba if it works here; return a sentence that says which backend runs, and why.

    The kernels are compiled, which takes seconds, or loaded from the cache, and tested first.
    """
    started = time.monotonic()
    try:
        fast = backend.numba_backend()
        _compile_in_subprocess()
        if not selftest.agrees(fast, backend.NUMPY):
            raise ArithmeticError("its results differ from numpy's")
    except ImportError as error:
        return f"numpy computes: {error}; the extra 'fast' installs numba"
    except Exception as error:  # a compiler or a damaged cache may raise anything
        return f"numpy computes: numba fails: {error!r}"
    backend.use(fast)
    return f"numba computes, ready after {time.monotonic() - started:.1f} s"


def _compile_in_subprocess() -> None:
    """Fill numba's cache in a subprocess, as only its exit returns the compiler's 100 MB.

    If that fails, this process compiles and reports the error.
    """
    command = [sys.executable, "-m", "reveal_analyzer.kernels.selftest"]
    subprocess.run(command, capture_output=True, check=False, timeout=_COMPILED_S)
