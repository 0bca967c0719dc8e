"""The fastest tier that this host can have, tried out before it is used."""

from __future__ import annotations

import subprocess
import sys
import time

from reveal_analyzer.kernels import backend, selftest

_COMPILED_S = 300.0  # 10 to 20 s where nothing else runs


def use_fastest() -> str:
    """Use numba's loops where they can be had; a sentence that says who computes, and why.

    They are compiled, which takes seconds, or come from the cache, and are tried out first.
    """
    started = time.monotonic()
    try:
        fast = backend.numba_tier()
        _compile_apart()
        if not selftest.agrees(fast, backend.NUMPY):
            raise ArithmeticError("its results are not numpy's")
    except ImportError as error:
        return f"numpy computes: {error}; the extra 'fast' brings numba"
    except Exception as error:  # whatever a compiler or a damaged cache may raise
        return f"numpy computes: numba's code fails: {error!r}"
    backend.use(fast)
    return f"numba computes, ready after {time.monotonic() - started:.1f} s"


def _compile_apart() -> None:
    """Fill the cache from a process of its own: only its end gives back what a compiler took.

    That are 100 MB.  Where it fails, this process compiles, and says what is wrong.
    """
    command = [sys.executable, "-m", "reveal_analyzer.kernels.selftest"]
    subprocess.run(command, capture_output=True, check=False, timeout=_COMPILED_S)
