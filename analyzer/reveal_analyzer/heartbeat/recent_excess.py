"""What left its past lately: enough of each second to say later what moved with a slowdown.

A slowdown is known some ten to forty seconds after it began.  Of the seconds before it is known
only the columns that stood out are kept: hundreds of bytes each, instead of tens of thousands.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from reveal_analyzer.arrays import Floats
from reveal_analyzer.derive.columns import Plan
from reveal_analyzer.episodes.trace import AnyFloats, ObservedSecond, Trace
from reveal_contract.time_units import NS_PER_SECOND

_KEPT_S = 100
_STANDS_OUT = 1.0  # spreads
_NEAR_S = 10  # of an onset


@dataclass(frozen=True)
class _Glimpse:
    start_ns: int
    plan: Plan
    baseline: Floats  # shared between seconds
    places: NDArray[np.intp]
    values: Floats
    excess: AnyFloats
    shown: AnyFloats


class Glimpses:
    """The last seconds of one node."""

    def __init__(self) -> None:
        self._kept: deque[_Glimpse] = deque(maxlen=_KEPT_S)

    def take(self, seen: ObservedSecond) -> None:
        """Keep what stood out in one second."""
        places = np.flatnonzero(seen.excess.max(axis=0, initial=0.0) > _STANDS_OUT)
        self._kept.append(
            _Glimpse(
                seen.start_ns, seen.plan, seen.baseline, places, seen.values[places],
                seen.excess[:, places], seen.weighted_excess[places],
            )
        )  # fmt: skip

    def clear(self) -> None:
        """Nobody will ask about these seconds."""
        self._kept.clear()

    def around(self, onset_ns: int) -> Trace:
        """What moved within ten seconds of an onset."""
        trace = Trace()
        for glimpse in self._kept:
            if abs(glimpse.start_ns - onset_ns) <= _NEAR_S * NS_PER_SECOND:
                trace.add(_whole(glimpse))
        return trace


def _whole(glimpse: _Glimpse) -> ObservedSecond:
    """The second again, all that did not stand out at its usual."""
    width = len(glimpse.plan.columns)
    values, shown = np.nan_to_num(glimpse.baseline), np.zeros(width)
    excess = np.zeros((2, width))
    values[glimpse.places], shown[glimpse.places] = glimpse.values, glimpse.shown
    excess[:, glimpse.places] = glimpse.excess
    return ObservedSecond(glimpse.start_ns, glimpse.plan, values, excess, shown, glimpse.baseline)
