"""Which nodes of an analyzer may have the paper's detectors fitted for an explanation.

A fit holds up all other nodes for up to half a second, and what it made takes 4 MB: a fault that
a thousand nodes show at once must be told of a thousand times, and need not be explained so often.
"""

from __future__ import annotations

from collections.abc import Callable
from weakref import WeakSet

from reveal_analyzer.paper.detector import PaperDetector
from reveal_contract.time_units import NS_PER_SECOND

MOST = 64
_APART_NS = NS_PER_SECOND


class Fits:
    """Shared by the nodes of an analyzer; times are those of the slices, ns."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._held: WeakSet[PaperDetector] = WeakSet()  # as long as somebody keeps them
        self._last_ns: int | None = None

    def fitted(self, now_ns: int, fit: Callable[[], PaperDetector]) -> PaperDetector | None:
        """What ``fit`` makes; None where it has to wait: ask again with the next slice."""
        if len(self._held) >= self._most:
            return None
        if self._last_ns is not None and abs(now_ns - self._last_ns) < _APART_NS:
            return None
        self._last_ns = now_ns
        made = fit()
        self._held.add(made)
        return made
