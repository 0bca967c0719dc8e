"""Shares and rates with what a small sample can say about them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from scipy.stats import chi2

_Z95 = 1.959964  # two-sided 95 %


@dataclass(frozen=True)
class Share:
    """``hits`` of ``of``, with the Wilson score interval at 95 %."""

    hits: int
    of: int

    @property
    def value(self) -> float:
        return self.hits / self.of if self.of else math.nan

    @property
    def interval(self) -> tuple[float, float]:
        """Wilson 1927: right for small samples and for shares of 0 and 1."""
        if not self.of:
            return 0.0, 1.0
        z2 = _Z95 * _Z95
        middle = (self.value + z2 / (2 * self.of)) / (1 + z2 / self.of)
        spread = self.value * (1 - self.value) / self.of + z2 / (4 * self.of * self.of)
        half = _Z95 * math.sqrt(spread) / (1 + z2 / self.of)
        return max(0.0, middle - half), min(1.0, middle + half)

    def __str__(self) -> str:
        if not self.of:
            return "none"
        low, high = self.interval
        return f"{self.hits} of {self.of} ({self.value:.0%}; {low:.0%} to {high:.0%})"


def rate_interval(events: int, hours: float) -> tuple[float, float]:
    """The exact 95 % interval of a Poisson rate an hour (Garwood 1936)."""
    if hours <= 0:
        return 0.0, math.inf
    low = float(chi2.ppf(0.025, 2 * events)) / 2 if events else 0.0
    return low / hours, float(chi2.ppf(0.975, 2 * events + 2)) / 2 / hours


def middle(values: Sequence[float]) -> float | None:
    """The median; None of nothing."""
    return median(values) if values else None
