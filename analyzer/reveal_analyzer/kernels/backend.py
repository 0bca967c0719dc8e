"""The implementation of the numeric kernels that this process uses: numpy or numba.

Both give the same bits for the seconds of a node and agree to 1e-12 for window features and
forests.  A process keeps one implementation from its first window to its last.  Commands that
analyze one node or one recording use numpy, so that the same input gives the same output on every
host.  The analyzer of a fleet selects the fastest (``kernels.selection``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from reveal_analyzer.arrays import Bools, Floats, Floats32, Indices
from reveal_analyzer.features import numpy_impl
from reveal_analyzer.kernels import conditions, derive, forest, live, order_statistics
from reveal_analyzer.kernels.forest import Forest
from reveal_analyzer.kernels.live import MetricGroups, RingPosition
from reveal_analyzer.kernels.order_statistics import KeptRows, RankedValues
from reveal_analyzer.kernels.scaler import Scaler
from reveal_contract import wire

DeriveSecond = Callable[[derive.Ticks, Floats, Floats, derive.Recipe], tuple[Floats, Floats]]
Match = Callable[[conditions.Conditions, Floats, Floats, float], Indices]
SlideWindows = Callable[[Floats32, Floats32, Indices, RingPosition, Floats, Floats32], None]
ScoreSecond = Callable[
    [Floats32, Floats32, Floats32, Floats32, MetricGroups],
    tuple[Floats32, Floats32, Floats],
]
RangeBounds = Callable[
    [Floats32, KeptRows, Indices, Floats32, Floats32], tuple[Floats32, Floats32, Bools]
]
StoreSeconds = Callable[[Floats32, KeptRows, Indices, Floats32, int, RankedValues, Indices], None]


@dataclass(frozen=True)
class Backend:
    """One implementation of every kernel.

    ``features`` computes window features (features, channels) of a window (ticks, channels),
    ``transform`` z-scores of feature vectors, ``forest_scores`` their isolation forest scores.
    The other kernels run once per second and node: see ``wire``, ``kernels.derive``,
    ``kernels.conditions``, ``kernels.live`` and ``kernels.order_statistics``.
    """

    name: str
    features: Callable[[Floats], Floats]
    transform: Callable[[Scaler, Floats], Floats32]
    forest_scores: Callable[[Forest, Floats32], Floats]
    unpack: wire.Unpack = wire.unpack
    derive_second: DeriveSecond = derive.derive_second
    matching: Match = conditions.matching
    changed_columns: Callable[[Floats, Floats, Bools], Indices] = live.changed_columns
    scatter: Callable[[Floats32, Indices, int], Floats32] = live.scatter
    slide_windows: SlideWindows = live.slide_windows
    score_second: ScoreSecond = live.score_second
    update_own_excess: Callable[[Floats32, Floats32], None] = live.update_own_excess
    insert_scores: Callable[[live.RecentScores, Floats, int, int], bool] = live.insert_scores
    differing: Callable[[Floats32, KeptRows, Floats32], Bools] = order_statistics.differing
    store_seconds: StoreSeconds = order_statistics.store_seconds
    read_ranks: Callable[[Floats32, Indices, RankedValues], None] = order_statistics.read_ranks
    range_bounds: RangeBounds = order_statistics.range_bounds


NUMPY = Backend("numpy", numpy_impl.features, Scaler.transform, forest.scores)


class _Process:
    backend = NUMPY


def current() -> Backend:
    """Return the backend that this process uses."""
    return _Process.backend


def use(chosen: Backend) -> None:
    """Use this backend from now on; call it before the first window."""
    _Process.backend = chosen


def numba_backend() -> Backend:
    """Return the numba kernels, not compiled yet; raise ``ImportError`` without numba."""
    # imported here, as loading numba takes half a second and 100 MB
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

    return Backend(
        "numba", numba_impl.features, numba_scaler.transform, numba_forest.scores,
        numba_unpack.unpack, numba_derive.derive_second, numba_conditions.matching,
        numba_live.changed_columns, numba_live.scatter,
        numba_live.slide_windows, numba_live.score_second, numba_live.update_own_excess,
        numba_live.insert_scores,
        numba_order_statistics.differing, numba_order_statistics.store_seconds,
        numba_order_statistics.read_ranks, numba_order_statistics.range_bounds,
    )  # fmt: skip
