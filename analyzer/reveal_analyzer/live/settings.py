"""Constants of the live score, and the one knob: sensitivity."""

from __future__ import annotations

from dataclasses import dataclass

from reveal_contract.sensitivity import SENSITIVITIES

Views = tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class LiveSettings:
    """Times in seconds, distances in robust spreads of a column."""

    views: Views = ((1, 1), (3, 2), (10, 5))  # held for k of w seconds
    warmup: int = 60  # without a verdict
    quarantine: int = 20  # before a second may join the past
    keep: int = 300  # seconds of past
    refit: int = 10
    top: int = 3  # families in a subsystem's score
    floor: float = 0.15  # least spread, asinh units: 15 % of the value
    activity: float = 0.2  # weight of metrics that say activity, not harm
    limit: float = 9.0  # the cut: at least this,
    multiple: float = 2.2  # and at least this many times the own healthy level
    blind: float = 27.0  # the cut never passes this: columns are clipped at 50, nothing would
    transient: int = 8  # an excursion this short is the node's nature: its score is learned
    found: int = 10  # what is told has shown itself for so long at most
    give_up: int = 60  # an alarm this long becomes the new normal


def live_settings(sensitivity: str, warmup: int) -> LiveSettings:
    """The settings for a sensitivity of ``reveal_contract.settings.SENSITIVITIES``."""
    chosen = SENSITIVITIES[sensitivity]
    return LiveSettings(warmup=warmup, limit=chosen.limit, multiple=chosen.multiple)
