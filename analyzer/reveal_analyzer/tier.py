"""Who computes window features and walks the forests: numpy, or numba where it is installed.

Both agree to 1e-12 but not to the last bit.  So a process has one of them from its first window
to its last, and what judges one node or a recording, where the time does not matter, keeps
numpy: the same input gives the same output everywhere.  The analyzer of a fleet asks for the
fastest.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from reveal_analyzer.detectors import forest
from reveal_analyzer.detectors.forest import Forest
from reveal_analyzer.detectors.scaler import Floats, Scaler, Scores
from reveal_analyzer.features import numpy_impl


@dataclass(frozen=True)
class Tier:
    """Of a window (ticks, channels) ``features``, of vectors of those ``scaled``, the scores."""

    name: str
    features: Callable[[Floats], Floats]
    scaled: Callable[[Scaler, Floats], Scores]
    forest_scores: Callable[[Forest, Scores], Floats]


NUMPY = Tier("numpy", numpy_impl.features, Scaler.transform, forest.scores)


class _Process:
    tier = NUMPY


def current() -> Tier:
    """What this process uses."""
    return _Process.tier


def use(tier: Tier) -> None:
    """Use it from now on; to be decided before the first window."""
    _Process.tier = tier


def use_fastest() -> str:
    """Use numba's loops where they can be had; a sentence that says who computes, and why.

    They are compiled, which takes seconds, or come from the cache, and are tried out first.
    """
    started = time.monotonic()
    try:
        fast = numba_tier()
        _try_out(fast)
    except ImportError as error:
        return f"numpy computes window features: {error}; the extra 'fast' brings numba"
    except Exception as error:  # whatever a compiler or a damaged cache may raise
        return f"numpy computes window features: numba's code fails: {error!r}"
    use(fast)
    return f"numba computes window features, ready after {time.monotonic() - started:.1f} s"


def numba_tier() -> Tier:
    """Numba's loops, not compiled yet; raises ``ImportError`` where numba cannot be used."""
    # half a second and 100 MB to load
    from reveal_analyzer.detectors import numba_forest, numba_scaler  # noqa: PLC0415
    from reveal_analyzer.features import numba_impl  # noqa: PLC0415

    return Tier("numba", numba_impl.features, numba_scaler.scaled, numba_forest.scores)


def _try_out(fast: Tier) -> None:
    """Compile all of it, on what it must answer as numpy does."""
    rng = np.random.default_rng(0)
    window = rng.normal(size=(30, 3)).cumsum(0)
    trees = Forest(
        [np.zeros(1, np.intp)], [np.zeros(1, np.float32)], [np.ones(1), np.array([2.0, 3.0])], 2.0
    )
    windows = rng.normal(size=(4, 1))
    scaler = Scaler().fit(windows)
    scaled = scaler.transform(windows)
    pairs = (
        (fast.features(window), NUMPY.features(window)),
        (fast.scaled(scaler, windows), scaled),
        (fast.forest_scores(trees, scaled), NUMPY.forest_scores(trees, scaled)),
    )
    if not all(np.allclose(mine, its, rtol=1e-9, equal_nan=True) for mine, its in pairs):
        raise ArithmeticError("its results are not numpy's")
