"""Why a known cause is not that of an episode: what it needs and how much of it was there.

``choice`` decides second by second while an episode lasts.  This looks back at all of its seconds,
for people who ask whether another cause was considered.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from reveal_analyzer.arrays import Floats, Indices
from reveal_analyzer.derive.columns import CHANGE, Column
from reveal_analyzer.formatting import amount
from reveal_analyzer.hypotheses.choice import LEAST_FIT
from reveal_analyzer.hypotheses.column_stats import ColumnStats, confidence, degree
from reveal_analyzer.hypotheses.model import Condition, Expectation, HypothesisRule
from reveal_contract.metric import Subsystem

_MET = 0.5  # degree from which an expectation is met well enough


@dataclass(frozen=True)
class Episode:
    """The seconds of an episode (seconds, columns), and its columns against the baseline.

    ``baseline`` (columns,) are levels of seconds outside of it.  ``has_ledger``: it was measured
    who took time from whom, so that a cause which rests on it was decided.
    """

    values: Floats
    stats: ColumnStats
    baseline: Floats
    cpus: int
    has_ledger: bool = False

    def indices(self, metric: str) -> Indices:
        """Return the columns of a metric, without those of its changes."""
        columns = self.stats.columns
        found = self.stats.indices(Expectation(metric))
        return np.array([i for i in found if columns[i].feature != CHANGE], np.intp)


class Result(StrEnum):
    """What is known of a cause that was not chosen."""

    POSSIBLE = "possible"  # its evidence is there, too
    RULED_OUT = "ruled out"
    UNKNOWN = "unknown"  # a metric that it needs is not read on the host


@dataclass(frozen=True)
class Rejection:
    """A cause that was not chosen, and why; ``fit`` is how well the evidence fits, 0 to 1."""

    name: str
    result: Result
    reason: str
    fit: float = 0.0


_ORDER = [*Result]


def rejections(
    rules: Iterable[HypothesisRule],
    chosen: HypothesisRule | None,
    subsystems: Sequence[Subsystem],
    episode: Episode,
) -> list[Rejection]:
    """Return the other causes in some subsystems, those that fit best first."""
    found = [
        _rejection(rule, chosen, episode)
        for rule in rules
        if rule is not chosen and rule.subsystem in subsystems
    ]
    return sorted(found, key=lambda each: (_ORDER.index(each.result), -each.fit, each.name))


def _rejection(rule: HypothesisRule, chosen: HypothesisRule | None, episode: Episode) -> Rejection:
    if rule.is_measured:
        return _unmeasured(rule, episode)
    fit = confidence(rule, episode.stats)
    if chosen is not None and chosen.explains(rule):
        reason = f"what it rests on is an effect of {chosen.name}"
        return Rejection(rule.name, Result.RULED_OUT, reason, fit)
    # a condition that is read and not met decides, whatever the others are
    for reason in _unmet_conditions(rule, episode):
        return Rejection(rule.name, Result.RULED_OUT, reason, fit)
    if unread := _unread(rule, episode):
        return Rejection(rule.name, Result.UNKNOWN, f"{unread} is not read on this host")
    for reason in _unmet_expectations(rule, episode):
        return Rejection(rule.name, Result.RULED_OUT, reason, fit)
    result = Result.POSSIBLE if fit >= LEAST_FIT else Result.RULED_OUT
    return Rejection(rule.name, result, f"{100 * fit:.0f} % of its evidence is there", fit)


def _unmeasured(rule: HypothesisRule, episode: Episode) -> Rejection:
    if not episode.has_ledger:
        reason = "the lost-time ledger is not read on this host"
        return Rejection(rule.name, Result.UNKNOWN, reason)
    reason = "the lost-time ledger measured no such loss, or a smaller one"
    return Rejection(rule.name, Result.RULED_OUT, reason)


def _unread(rule: HypothesisRule, episode: Episode) -> str:
    """Return a metric without which nothing can be decided, and that is not read; "" if none."""
    if rule.certain and not rule.certain.conditions:
        alternatives = [item.metric for item in rule.certain.any]
        any_read = any(episode.indices(metric).size for metric in alternatives)
        return "" if any_read or not alternatives else alternatives[0]
    needed = (
        [item.metric for item in rule.certain.conditions]
        if rule.certain
        else [item.metric for item in rule.expects if not item.optional]
    )
    return next((metric for metric in needed if not episode.indices(metric).size), "")


def _unmet_conditions(rule: HypothesisRule, episode: Episode) -> Iterator[str]:
    """Yield each condition of the signature that did not last long enough, with its numbers."""
    if rule.certain is None:
        return
    need = rule.certain.need
    for condition in rule.certain.conditions:
        yield from _unmet(condition, episode, need)
    read = [item for item in rule.certain.any if episode.indices(item.metric).size]
    unmet = [[*_unmet(item, episode, 1)] for item in read]
    if unmet and all(unmet):
        yield unmet[0][0]


def _unmet(condition: Condition, episode: Episode, seconds: int) -> Iterator[str]:
    """Yield what a condition reached, if it was less than its limit for so many seconds."""
    unread = not episode.indices(condition.metric).size
    if unread or condition.ratio_to or condition.is_upper_limit:
        return
    column, value = _sustained(condition, episode, seconds)
    limit = _limit(condition, column, episode)
    if not value >= limit:  # NaN: never read
        yield _reached(episode.stats.columns[column], value, limit)


def _sustained(condition: Condition, episode: Episode, seconds: int) -> tuple[int, float]:
    """Return the column that did best, and what it reached for so many seconds."""
    indices = episode.indices(condition.metric)
    values = np.nan_to_num(episode.values[:, indices], nan=-math.inf)
    kept = np.sort(values, axis=0)[-min(seconds, len(values)), :]
    best = int(kept.argmax())
    return int(indices[best]), float(kept[best])


def _limit(condition: Condition, column: int, episode: Episode) -> float:
    above = condition.above * (episode.cpus if condition.per == "cpus" else 1)
    return max(above, condition.times * float(np.nan_to_num(episode.baseline[column])))


def _unmet_expectations(rule: HypothesisRule, episode: Episode) -> Iterator[str]:
    """Yield what contradicts it, and each expectation that was not met, the weightiest first."""
    stats = episode.stats
    for item in rule.contradicts:
        if degree(item, stats) >= _MET:
            yield f"{_level(item, episode)}, which contradicts it"
    for item in sorted(rule.expects, key=lambda item: -item.weight):
        if stats.indices(item).size and degree(item, stats) < _MET:
            yield f"{_level(item, episode)}: {_expected(item, episode)}"


def _expected(item: Expectation, episode: Episode) -> str:
    """Return what a metric does with a cause."""
    column = episode.stats.columns[int(episode.stats.indices(item)[0])]
    if item.ratio_to or (item.above is None and item.below is None):
        return (
            "with this cause it falls" if item.direction == "down" else "with this cause it rises"
        )
    if item.above is not None:
        return f"this cause needs at least {_text(column, item.above)}"
    return f"this cause needs at most {_text(column, item.below or 0.0)}"


def _level(item: Expectation, episode: Episode) -> str:
    """Return what a metric did in the episode: its value, and that of the baseline."""
    index = int(episode.stats.indices(item)[0])
    column, mean = episode.stats.columns[index], float(episode.stats.values[index])
    baseline = _text(column, float(episode.baseline[index]))
    return f"{_name(column)} was at {_text(column, mean)} (baseline {baseline})"


def _reached(column: Column, value: float, limit: float) -> str:
    if math.isinf(value):
        return f"{_name(column)} had no value"
    reached = _text(column, value)
    return f"{_name(column)} reached {reached}; this cause begins at {_text(column, limit)}"


def _name(column: Column) -> str:
    return f"{column.metric.name}{{{column.instance}}}" if column.instance else column.metric.name


def _text(column: Column, value: float) -> str:
    return amount(column.metric, column.feature, column.instance, value)
