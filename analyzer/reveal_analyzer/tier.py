"""Who computes seconds, window features and forests: numpy, or numba where it is installed.

Of seconds both give the same to the last bit; of features they agree to 1e-12.  So a process has
one of them from its first window to its last, and what judges one node or a recording, where
the time does not matter, keeps numpy: the same input gives the same output everywhere.  The
analyzer of a fleet asks for the fastest.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

from reveal_analyzer import deriving
from reveal_analyzer.detectors import forest
from reveal_analyzer.detectors.forest import Forest
from reveal_analyzer.detectors.scaler import Floats, Scaler, Scores
from reveal_analyzer.features import numpy_impl
from reveal_analyzer.hypotheses import gate
from reveal_analyzer.live import level, standing, steps
from reveal_analyzer.live.standing import Bools, Rows, Standing
from reveal_analyzer.live.steps import Families, Place, Places, Singles
from reveal_contract import wire

Derive = Callable[[deriving.Ticks, Floats, Floats, deriving.Recipe], tuple[Floats, Floats]]
Met = Callable[[gate.Entries, Floats, Floats, float], Places]
Exchange = Callable[[Singles, Singles, Places, Place, Floats, Singles], None]
Judge = Callable[
    [Singles, Singles, Singles, Singles, Families],
    tuple[Singles, Singles, Floats],
]
Renew = Callable[[Singles, Rows, Places, Singles, int, Standing, Places], None]

_COMPILED_S = 300.0  # 10 to 20 s where nothing else runs


@dataclass(frozen=True)
class Tier:
    """Of a window (ticks, channels) ``features``, of vectors of those ``scaled``, the scores.

    The rest is what is done with each second of a node (``wire``, ``deriving``, ``gate``,
    ``live.steps``, ``live.standing``).
    """

    name: str
    features: Callable[[Floats], Floats]
    scaled: Callable[[Scaler, Floats], Scores]
    forest_scores: Callable[[Forest, Scores], Floats]
    unpack: wire.Unpack = wire.unpack
    derive: Derive = deriving.derive
    met: Met = gate.met
    exchange: Exchange = steps.exchange
    judge: Judge = steps.judge
    learn: Callable[[Singles, Singles], None] = steps.learn
    enlist: Callable[[level.Scores, Floats, int, int], bool] = level.enlist
    differing: Callable[[Singles, Rows, Singles], Bools] = standing.differing
    renew: Renew = standing.renew
    stand: Callable[[Singles, Places, Standing], None] = standing.stand


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
        from reveal_analyzer import trial  # noqa: PLC0415 - it knows of tiers

        fast = numba_tier()
        _compile_apart()
        if not trial.agrees(fast, NUMPY):
            raise ArithmeticError("its results are not numpy's")
    except ImportError as error:
        return f"numpy computes: {error}; the extra 'fast' brings numba"
    except Exception as error:  # whatever a compiler or a damaged cache may raise
        return f"numpy computes: numba's code fails: {error!r}"
    use(fast)
    return f"numba computes, ready after {time.monotonic() - started:.1f} s"


def _compile_apart() -> None:
    """Fill the cache from a process of its own: only its end gives back what a compiler took.

    That are 100 MB.  Where it fails, this process compiles, and says what is wrong.
    """
    command = [sys.executable, "-m", "reveal_analyzer.trial"]
    subprocess.run(command, capture_output=True, check=False, timeout=_COMPILED_S)


def numba_tier() -> Tier:
    """Numba's loops, not compiled yet; raises ``ImportError`` where numba cannot be used."""
    # half a second and 100 MB to load
    from reveal_analyzer import numba_deriving, numba_unpacking  # noqa: PLC0415
    from reveal_analyzer.detectors import numba_forest, numba_scaler  # noqa: PLC0415
    from reveal_analyzer.features import numba_impl  # noqa: PLC0415
    from reveal_analyzer.hypotheses import numba_gate  # noqa: PLC0415
    from reveal_analyzer.live import numba_standing, numba_steps  # noqa: PLC0415

    return Tier(
        "numba", numba_impl.features, numba_scaler.scaled, numba_forest.scores,
        numba_unpacking.unpack, numba_deriving.derive, numba_gate.met,
        numba_steps.exchange, numba_steps.judge, numba_steps.learn,
        numba_steps.enlist, numba_standing.differing, numba_standing.renew, numba_standing.stand,
    )  # fmt: skip
