"""How abnormal a metric was in a span of a table."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MetricRank:
    """How abnormal a metric was in a span.

    ``score`` is in spreads; ``feature`` is ``mean`` if the level was more abnormal than the step to
    it, else ``mean_abs_change``.  ``value`` is the metric's level where it was most abnormal,
    ``baseline`` its median in the reference, both in its own unit, NaN if never known.  ``first``
    is the row near the peak from which it was that abnormal.
    """

    name: str
    feature: str
    score: float
    value: float
    baseline: float
    first: int = 0

    @property
    def direction(self) -> str:
        return "up" if self.value > self.baseline else "down"
