"""True values: plain means over the slices of a fault, without any code of the product.

Counters are per second, gauges levels, in base units.  Subjects are added up, of CPUs the largest
counts, as evidence says by its feature.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reveal_contract.catalogue import find
from reveal_contract.channels import Channel
from reveal_contract.metric import Capacity, Kind
from scenariobench.clip import Frame

KEPT_S = 60  # a value is the mean of the last minute of a fault
TOLERANCE = 0.2
_ERRORS = 2.0  # or within so many standard errors of the mean: rare events scatter
Floats = NDArray[np.float64]


class Value(NamedTuple):
    mean: float
    error: float  # standard error of the mean

    def agrees(self, value: float, quantum: float = 0.0) -> bool:
        """Whether a reported value is near enough; ``quantum`` is what begins to matter."""
        allowed = max(TOLERANCE * abs(self.mean), _ERRORS * self.error, quantum)
        return abs(value - self.mean) <= allowed + 1e-9


@dataclass
class TrueValues:
    """The last active seconds of one fault."""

    _seconds: deque[tuple[Frame, Floats]] = field(default_factory=lambda: deque(maxlen=KEPT_S))

    def add(self, frame: Frame) -> None:
        """Count one active second."""
        self._seconds.append((frame, _rates(frame)))

    def value(self, metric: str, instance: str, feature: str) -> Value | None:
        """Return the true value of one line of evidence, None where the slices do not say."""
        found = [_value(frame, rates, metric, instance, feature) for frame, rates in self._seconds]
        known = [value for value in found if not math.isnan(value)]
        if not known:
            return None
        spread = float(np.std(known)) if len(known) > 1 else 0.0
        return Value(float(np.mean(known)), spread / math.sqrt(len(known)))


def _rates(frame: Frame) -> Floats:
    """Return a rate or a level of each channel for this second, NaN where nothing was read."""
    ticks = len(frame.fast)
    counted = (~frame.fast_missing).sum(axis=0)
    sums = np.where(frame.fast_missing, 0, frame.fast).sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        means = np.where(counted > 0, sums / counted, np.nan)
    counter = np.array([channel.kind is Kind.COUNTER for channel in frame.table.fast], np.bool_)
    fast = np.where(counter, means * ticks, means)
    slow = np.where(frame.slow_missing, np.nan, frame.slow)
    scales = [channel.scale for channel in (*frame.table.fast, *frame.table.slow)]
    return np.asarray(np.concatenate([fast, slow]) * scales, np.float64)


def _value(frame: Frame, rates: Floats, metric: str, instance: str, feature: str) -> float:
    indices = _indices((*frame.table.fast, *frame.table.slow), metric, instance, feature)
    values = rates[indices]
    values = values[~np.isnan(values)]
    if not values.size:
        return math.nan
    return float(values.max() if feature == "maximum" else values.sum())


def _indices(channels: Sequence[Channel], metric: str, instance: str, feature: str) -> list[int]:
    folded = feature in ("maximum", "sum_values")
    if feature != "mean" and not folded:
        return []
    return [
        index
        for index, channel in enumerate(channels)
        if channel.metric == metric
        and (_is_of(channel.instance, instance) if folded else channel.instance == instance)
    ]


def _is_of(instance: str, requested: str) -> bool:
    """Whether an instance belongs to a fold: all, or those of one kind (``NET_RX/0``).

    The host's total, without an instance, is a line of its own.
    """
    return bool(instance) and (not requested or instance.rpartition("/")[0] == requested)


def _quantum(metric: str) -> float:
    """Return the amount of a metric that begins to matter, where it is no share of a capacity."""
    row = find(metric)
    return row.quantum if row.capacity is Capacity.ABSOLUTE else 0.0


def wrong_values(
    evidence: Iterable[Mapping[str, str]], values: TrueValues
) -> tuple[int, list[str]]:
    """Return how many lines of evidence could be compared, and a sentence for each wrong one."""
    compared, wrong = 0, []
    for line in evidence:
        if not line["value"]:
            continue
        true = values.value(line["metric"], line["instance"], line["feature"])
        if true is None:
            continue
        compared += 1
        if not true.agrees(float(line["value"]), _quantum(line["metric"])):
            label = f"{line['metric']}{{{line['instance']}}}"
            wrong.append(f"{label} is {line['value']}, true {true.mean:.4g}")
    return compared, wrong
