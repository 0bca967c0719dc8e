"""Units of features: what each is in, whatever the sample period.

A window has samples: levels of gauges, increments of counters.  A finding names values per second
and in the unit of the metric, raised to the power that the feature has.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from reveal_analyzer.arrays import Floats
from reveal_analyzer.features.table import FEATURES, Feature
from reveal_contract.metric import Kind

_POWERS = {1: "", 2: "^2"}


class Dimension(NamedTuple):
    """A feature grows with this power of the values, and with this power of the seconds."""

    power: int
    seconds: int = 0


_LEVEL, _PLAIN, _PER_SECOND = Dimension(1), Dimension(0), Dimension(1, -1)
_DIMENSIONS = {
    "sum_values": Dimension(1, 1),
    "mean": _LEVEL,
    "variance": Dimension(2),
    "standard_deviation": _LEVEL,
    "minimum": _LEVEL,
    "maximum": _LEVEL,
    "median": _LEVEL,
    "abs_energy": Dimension(2, 1),
    "mean_abs_change": _PER_SECOND,
    "absolute_sum_of_changes": _LEVEL,
    "mean_change": _PER_SECOND,
}
_OF_PARAMETERS = {
    ("cid_ce", ("normalize", False)): _LEVEL,
    ("linear_trend", ("attr", "slope")): _PER_SECOND,
    ("linear_trend", ("attr", "stderr")): _PER_SECOND,
    ("linear_trend", ("attr", "intercept")): _LEVEL,
}


def dimension(feature: Feature) -> Dimension:
    """Return the dimension of a feature; shapes, counts and probabilities have none."""
    for parameter in feature.params:
        if (feature.name, parameter) in _OF_PARAMETERS:
            return _OF_PARAMETERS[feature.name, parameter]
    return _DIMENSIONS.get(feature.name, _PLAIN)


def unit(feature: Feature, metric_unit: str, kind: Kind) -> str:
    """Return the unit of a feature of a metric: ``ns/s``, ``bytes^2``; empty for a pure number."""
    power, seconds = dimension(feature)
    if not power:
        return ""
    seconds -= power * (kind is Kind.COUNTER)
    name = f"{metric_unit}{_POWERS[power]}"
    if seconds > 0:
        return f"{name} s"
    return f"{name}/s{_POWERS[-seconds]}" if seconds else name


def factor(feature: Feature, kind: Kind, tick_s: float) -> float:
    """Return what turns a feature of samples, ``tick_s`` apart, into one in its ``unit``."""
    power, seconds = dimension(feature)
    return float(tick_s ** (seconds - power * (kind is Kind.COUNTER)))


def least_changes(amounts: Floats, samples: int) -> Floats:
    """Return the change of each feature that ``amounts`` (channels) in a sample make.

    (features, channels); infinite for features without a dimension, which say nothing of amounts.
    """
    rows = np.full((len(FEATURES), len(amounts)), np.inf)
    for row, feature in enumerate(FEATURES):
        power, seconds = dimension(feature)
        if power:
            rows[row] = amounts**power * float(samples) ** seconds
    return rows
