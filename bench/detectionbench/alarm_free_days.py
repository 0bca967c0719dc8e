"""How many days of a healthy host pass without an alarm, where half of the events are found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from detectionbench.metrics import Bools, Floats, alarms

_STEPS = 120


@dataclass(frozen=True)
class Watch:
    """One machine: scores of a healthy stretch and of the labelled one, by the same models."""

    healthy: Floats
    score: Floats
    label: Bools
    day: int


@dataclass(frozen=True)
class Operation:
    """All machines at one threshold."""

    threshold: float
    found: float  # share of events
    quiet: float  # share of healthy days without an alarm
    false_per_day: float  # on the labelled stretch


def operate(watches: Sequence[Watch], threshold: float) -> Operation:
    """What comes of one threshold for all machines."""
    observed = [alarms(each.label, each.score > threshold, each.day) for each in watches]
    loud = np.concatenate([_loud_days(each.healthy > threshold, each.day) for each in watches])
    return Operation(
        threshold,
        sum(each.found for each in observed) / max(1, sum(each.events for each in observed)),
        1.0 - float(loud.mean()),
        sum(each.false for each in observed) / max(1e-9, sum(each.quiet_days for each in observed)),
    )


def for_recall(watches: Sequence[Watch], recall: float) -> Operation:
    """The quietest threshold that finds this share of events, or the lowest there is."""
    together = np.concatenate([each.score for each in watches])
    thresholds = np.unique(np.quantile(together, 1.0 - np.geomspace(1e-4, 0.3, _STEPS)))
    operations = [operate(watches, float(threshold)) for threshold in thresholds]
    enough = [each for each in operations if each.found >= recall]
    return max(enough or operations[:1], key=lambda each: (each.quiet, each.threshold))


def _loud_days(flags: Bools, day: int) -> Bools:
    """Which whole days hold a flag."""
    days = len(flags) // day
    return np.asarray(flags[: days * day].reshape(days, day).any(1))
