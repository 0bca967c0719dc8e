"""The effect of a change on a job: its step time before and after it, and a verdict."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from reveal_analyzer.heartbeat.tracker import StepTime
from reveal_analyzer.ledger.cost_meter import lost_share
from reveal_contract.finding import Impact
from reveal_contract.time_units import NS_PER_SECOND
from reveal_contract.verification import Effect, Verdict

# percent of the step: what is certain to be more than this is an effect
LEAST_EFFECT = 1.0
# none is certain to be less than this, or than this share of what the finding costs
_MOST_OF_NONE, _SHARE_OF_NONE = 2.0, 0.25


@dataclass(frozen=True, slots=True)
class Pace:
    """The step time of a job over ``window_s`` seconds until ``end_ns``, in ms.

    ``margin_ms`` is half of the width of its interval.
    """

    end_ns: int
    window_s: int
    period_ms: float
    margin_ms: float

    @property
    def start_ns(self) -> int:
        return self.end_ns - self.window_s * NS_PER_SECOND


def paces(step: StepTime, end_ns: int) -> Iterator[Pace]:
    """Yield the step times of the windows that end with a second."""
    percent_ms = 10 * step.reference
    for reading in step.readings:
        period_ms = percent_ms * (100 + reading.percent)
        yield Pace(end_ns, reading.window, period_ms, percent_ms * reading.margin)


def pace_of(impact: Impact, end_ns: int) -> Pace:
    """Return the step time that a finding reports."""
    margin_ms = impact.baseline_ms * (impact.high_percent - impact.low_percent) / 200
    return Pace(end_ns, impact.window_s, impact.period_ms, margin_ms)


def effect(before: Pace, after: Pace) -> Effect:
    """Return by how many percent of the step before a step is shorter after a change."""
    ratio = after.period_ms / before.period_ms
    margin = ratio * math.hypot(
        before.margin_ms / before.period_ms, after.margin_ms / after.period_ms
    )
    percent = 100 * (1 - ratio)
    return Effect(percent, percent - 100 * margin, percent + 100 * margin)


def verdict(found: Effect, slowdown_percent: float) -> Verdict:
    """Return what an effect means for a job that was slower by so many percent."""
    if found.low >= LEAST_EFFECT:
        return Verdict.IMPROVED
    if found.high <= -LEAST_EFFECT:
        return Verdict.WORSE
    # all of the slowdown is this share of the step
    most = max(_MOST_OF_NONE, _SHARE_OF_NONE * 100 * lost_share(slowdown_percent))
    is_none = max(abs(found.low), abs(found.high)) <= most
    return Verdict.NO_EFFECT if is_none else Verdict.UNKNOWN
