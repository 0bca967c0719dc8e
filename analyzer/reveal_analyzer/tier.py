"""Who computes seconds, window features and forests: numpy, or numba where it is installed.

Of seconds both give the same to the last bit; of features they agree to 1e-12.  So a process has
one of them from its first window to its last, and what judges one node or a recording, where
the time does not matter, keeps numpy: the same input gives the same output everywhere.  The
analyzer of a fleet asks for the fastest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from reveal_analyzer import deriving
from reveal_analyzer.detectors import forest
from reveal_analyzer.detectors.forest import Forest
from reveal_analyzer.detectors.scaler import Floats, Scaler, Scores
from reveal_analyzer.features import numpy_impl
from reveal_analyzer.hypotheses import gate
from reveal_analyzer.live import standing, steps
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
Bound = Callable[[Singles, Rows, Places, Singles, Singles], tuple[Singles, Singles, Bools]]
Renew = Callable[[Singles, Rows, Places, Singles, int, Standing, Places], None]


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
    stirred: Callable[[Floats, Floats, Bools], Places] = steps.stirred
    spread_out: Callable[[Singles, Places, int], Singles] = steps.spread_out
    exchange: Exchange = steps.exchange
    judge: Judge = steps.judge
    learn: Callable[[Singles, Singles], None] = steps.learn
    enlist: Callable[[steps.OwnScores, Floats, int, int], bool] = steps.enlist
    differing: Callable[[Singles, Rows, Singles], Bools] = standing.differing
    renew: Renew = standing.renew
    stand: Callable[[Singles, Places, Standing], None] = standing.stand
    bound: Bound = standing.bound


NUMPY = Tier("numpy", numpy_impl.features, Scaler.transform, forest.scores)


class _Process:
    tier = NUMPY


def current() -> Tier:
    """What this process uses."""
    return _Process.tier


def use(tier: Tier) -> None:
    """Use it from now on; to be decided before the first window."""
    _Process.tier = tier


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
        numba_steps.stirred, numba_steps.spread_out,
        numba_steps.exchange, numba_steps.judge, numba_steps.learn,
        numba_steps.enlist, numba_standing.differing, numba_standing.renew, numba_standing.stand,
        numba_standing.bound,
    )  # fmt: skip
