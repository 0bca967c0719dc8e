"""Constants of the live score, and the thresholds of a sensitivity."""

from __future__ import annotations

from dataclasses import dataclass

from reveal_contract.sensitivity import SENSITIVITIES

Views = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class LiveSettings:
    """Times in seconds, distances in robust spreads of a column."""

    views: Views = ((1, 1), (3, 2), (10, 5))  # (w, k): sustained for k of the last w seconds
    warmup: int = 60  # no verdict before
    quarantine: int = 20  # before a second may join the history
    keep: int = 300  # length of the history
    refit: int = 10  # interval of new ranges
    top: int = 3  # metric groups in a subsystem's score
    floor: float = 0.15  # least spread, in asinh units: 15 % of the value
    activity: float = 0.2  # weight of metrics of activity, relative to harm
    limit: float = 9.0  # least threshold
    multiple: float = 2.2  # of the healthy score, which the threshold reaches at least
    ceiling: float = 27.0  # of the threshold: columns are clipped at 50, above it none could alarm
    transient: int = 8  # alarms this short are normal for the node: their score is learned
    detection_delay: int = 10  # longest time a fault is visible before a finding opens
    give_up: int = 60  # an alarm this long becomes the new normal


def live_settings(sensitivity: str, warmup: int) -> LiveSettings:
    """Return the settings of a sensitivity of ``reveal_contract.settings.SENSITIVITIES``."""
    chosen = SENSITIVITIES[sensitivity]
    return LiveSettings(warmup=warmup, limit=chosen.limit, multiple=chosen.multiple)
