"""Who computes seconds, window features and forests: numpy, or numba where it is installed.

Of seconds both give the same to the last bit; of features they agree to 1e-12.  So a process has
one of them from its first window to its last, and what judges one node or a recording, where
the time does not matter, keeps numpy: the same input gives the same output everywhere.  The
analyzer of a fleet asks for the fastest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from reveal_analyzer.arrays import Bools, Floats, Floats32, Indices
from reveal_analyzer.features import numpy_impl
from reveal_analyzer.kernels import conditions, forest, live, order_statistics
from reveal_analyzer.kernels import derive as deriving
from reveal_analyzer.kernels.forest import Forest
from reveal_analyzer.kernels.live import Families, Place
from reveal_analyzer.kernels.order_statistics import Rows, Standing
from reveal_analyzer.kernels.scaler import Scaler
from reveal_contract import wire

Derive = Callable[[deriving.Ticks, Floats, Floats, deriving.Recipe], tuple[Floats, Floats]]
Met = Callable[[conditions.Entries, Floats, Floats, float], Indices]
Exchange = Callable[[Floats32, Floats32, Indices, Place, Floats, Floats32], None]
Judge = Callable[
    [Floats32, Floats32, Floats32, Floats32, Families],
    tuple[Floats32, Floats32, Floats],
]
Bound = Callable[[Floats32, Rows, Indices, Floats32, Floats32], tuple[Floats32, Floats32, Bools]]
Renew = Callable[[Floats32, Rows, Indices, Floats32, int, Standing, Indices], None]


@dataclass(frozen=True)
class Tier:
    """Of a window (ticks, channels) ``features``, of vectors of those ``scaled``, the scores.

    The rest is what is done with each second of a node (``wire``, ``deriving``, ``gate``,
    ``live.steps``, ``live.standing``).
    """

    name: str
    features: Callable[[Floats], Floats]
    scaled: Callable[[Scaler, Floats], Floats32]
    forest_scores: Callable[[Forest, Floats32], Floats]
    unpack: wire.Unpack = wire.unpack
    derive: Derive = deriving.derive
    met: Met = conditions.met
    stirred: Callable[[Floats, Floats, Bools], Indices] = live.stirred
    spread_out: Callable[[Floats32, Indices, int], Floats32] = live.spread_out
    exchange: Exchange = live.exchange
    judge: Judge = live.judge
    learn: Callable[[Floats32, Floats32], None] = live.learn
    enlist: Callable[[live.OwnScores, Floats, int, int], bool] = live.enlist
    differing: Callable[[Floats32, Rows, Floats32], Bools] = order_statistics.differing
    renew: Renew = order_statistics.renew
    stand: Callable[[Floats32, Indices, Standing], None] = order_statistics.stand
    bound: Bound = order_statistics.bound


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
    from reveal_analyzer.features import numba_impl  # noqa: PLC0415
    from reveal_analyzer.kernels import (  # noqa: PLC0415
        numba_conditions,
        numba_derive,
        numba_forest,
        numba_live,
        numba_order_statistics,
        numba_scaler,
        numba_unpack,
    )

    return Tier(
        "numba", numba_impl.features, numba_scaler.scaled, numba_forest.scores,
        numba_unpack.unpack, numba_derive.derive, numba_conditions.met,
        numba_live.stirred, numba_live.spread_out,
        numba_live.exchange, numba_live.judge, numba_live.learn,
        numba_live.enlist, numba_order_statistics.differing, numba_order_statistics.renew,
        numba_order_statistics.stand, numba_order_statistics.bound,
    )  # fmt: skip
