"""Columns outside their baseline in the last seconds, to find later what moved with a slowdown.

A slowdown is detected 10 to 40 seconds after it began.  Of every second only the columns that
stand out are kept: hundreds of bytes instead of tens of thousands.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np

from reveal_analyzer.arrays import Floats, Indices
from reveal_analyzer.derive.columns import ColumnPlan
from reveal_analyzer.episodes.trace import AnyFloats, ObservedSecond, Trace
from reveal_contract.time_units import NS_PER_SECOND

_KEPT_S = 100
_STANDS_OUT = 1.0  # spreads
_NEAR_S = 10  # of an onset


@dataclass(frozen=True)
class _SparseSecond:
    start_ns: int
    plan: ColumnPlan
    baseline: Floats  # shared between seconds
    indices: Indices
    values: Floats
    excess: AnyFloats
    weighted_excess: AnyFloats


class RecentExcess:
    """The last seconds of one node, without the columns that are near their baseline."""

    def __init__(self) -> None:
        self._kept: deque[_SparseSecond] = deque(maxlen=_KEPT_S)

    def push(self, second: ObservedSecond) -> None:
        """Keep the columns of one second that stand out."""
        indices = np.flatnonzero(second.excess.max(axis=0, initial=0.0) > _STANDS_OUT)
        self._kept.append(
            _SparseSecond(
                second.start_ns, second.plan, second.baseline, indices, second.values[indices],
                second.excess[:, indices], second.weighted_excess[indices],
            )
        )  # fmt: skip

    def clear(self) -> None:
        """Drop all seconds."""
        self._kept.clear()

    def around(self, onset_ns: int) -> Trace:
        """Return the trace of the seconds close to an onset."""
        trace = Trace()
        for second in self._kept:
            if abs(second.start_ns - onset_ns) <= _NEAR_S * NS_PER_SECOND:
                trace.add(_restored(second))
        return trace


def _restored(sparse: _SparseSecond) -> ObservedSecond:
    """Return a whole second, with the columns that were not kept at their baseline."""
    width = len(sparse.plan.columns)
    values, weighted_excess = sparse.baseline.copy(), np.zeros(width)
    excess = np.zeros((2, width))
    values[sparse.indices], weighted_excess[sparse.indices] = sparse.values, sparse.weighted_excess
    excess[:, sparse.indices] = sparse.excess
    return ObservedSecond(
        sparse.start_ns, sparse.plan, values, excess, weighted_excess, sparse.baseline
    )
