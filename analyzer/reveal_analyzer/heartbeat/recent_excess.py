"""Columns outside their baseline in the last seconds, to find later what moved with a slowdown.

A slowdown is detected 10 to 40 seconds after it began.  Of every second only the columns that
stand out are kept: hundreds of bytes instead of tens of thousands.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from reveal_analyzer.arrays import Floats, Indices
from reveal_analyzer.derive.columns import ColumnPlan
from reveal_analyzer.episodes.trace import AnyFloats, ObservedSecond, Trace
from reveal_contract.time_units import NS_PER_SECOND

_KEPT_S = 100
_STANDS_OUT = 1.0  # spreads
_NEAR_NS = 10 * NS_PER_SECOND  # of an onset
_INEXACT_NS = 3 * NS_PER_SECOND  # an onset is known to some seconds
_ENDED = 0.5  # of the excess before the onset: a column that has less after it does not explain it


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
        """Return the trace of the seconds close to an onset.

        What stood out before it and not after it has ended with it, as another fault did: it
        counts as at its baseline.
        """
        near = [each for each in self._kept if abs(each.start_ns - onset_ns) <= _NEAR_NS]
        ended = _ended(near, onset_ns)
        trace = Trace()
        for second in near:
            trace.add(_restored(second, ended))
        return trace


def _ended(near: Sequence[_SparseSecond], onset_ns: int) -> Collection[str]:
    """Return the labels of the columns whose excess ended at the onset."""
    before = _mean_excess([each for each in near if each.start_ns < onset_ns - _INEXACT_NS])
    after = _mean_excess([each for each in near if each.start_ns > onset_ns + _INEXACT_NS])
    return {label for label, mean in before.items() if after[label] < _ENDED * mean}


def _mean_excess(seconds: Sequence[_SparseSecond]) -> Counter[str]:
    """Return the mean weighted excess of each column that has any."""
    means: Counter[str] = Counter()
    for second in seconds:
        for index, weighted in zip(second.indices, second.weighted_excess, strict=True):
            means[second.plan.labels[index]] += weighted / len(seconds)
    return means


def _restored(sparse: _SparseSecond, ended: Collection[str]) -> ObservedSecond:
    """Return a whole second, with the columns that were not kept at their baseline."""
    width = len(sparse.plan.columns)
    values, weighted_excess = sparse.baseline.copy(), np.zeros(width)
    excess = np.zeros((2, width))
    lasts = [sparse.plan.labels[index] not in ended for index in sparse.indices]
    indices = sparse.indices[lasts]
    values[indices], weighted_excess[indices] = sparse.values[lasts], sparse.weighted_excess[lasts]
    excess[:, indices] = sparse.excess[:, lasts]
    return ObservedSecond(
        sparse.start_ns, sparse.plan, values, excess, weighted_excess, sparse.baseline
    )
