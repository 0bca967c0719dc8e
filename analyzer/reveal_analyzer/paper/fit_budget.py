"""Budget of fits of the paper's detectors that explain findings.

A fit delays all other nodes by up to half a second, and its result takes 4 MB.  A fault that a
thousand nodes show at once needs a thousand findings, but not a thousand explanations.
"""

from __future__ import annotations

from collections.abc import Callable
from weakref import WeakSet

from reveal_analyzer.paper.detector import PaperDetector
from reveal_contract.time_units import NS_PER_SECOND

MOST = 64
_INTERVAL_NS = NS_PER_SECOND


class FitBudget:
    """Budget shared by the nodes of an analyzer; times are those of the slices, in ns."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._fitted_detectors: WeakSet[PaperDetector] = WeakSet()  # as long as a node keeps them
        self._last_ns: int | None = None

    def request(self, now_ns: int, fit: Callable[[], PaperDetector]) -> PaperDetector | None:
        """Return what ``fit`` creates; None if it must wait: request again with the next slice."""
        if len(self._fitted_detectors) >= self._most:
            return None
        if self._last_ns is not None and abs(now_ns - self._last_ns) < _INTERVAL_NS:
            return None
        self._last_ns = now_ns
        detector = fit()
        self._fitted_detectors.add(detector)
        return detector
