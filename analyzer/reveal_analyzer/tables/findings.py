"""Scores of a table as findings: one per span of alarms, with its metrics ranked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from reveal_analyzer.formatting import decimal
from reveal_analyzer.tables.ingest.subsystems import subsystem_of
from reveal_analyzer.tables.scoring.api import MetricRank, Progress, Scores, Table, rank_spans
from reveal_analyzer.tables.scoring.online import MEAN
from reveal_contract import severity
from reveal_contract.finding import (
    Evidence,
    Finding,
    Method,
    Resolution,
    Severity,
    State,
    finding_id,
)
from reveal_contract.metric import Subsystem

MOST_EVIDENCE = 10
_HALF = 3.0  # spreads that give 50 percent
_CO_OCCURRING = 0.5  # share of the first metric's score from which another metric counts as well
_NO_SUBSYSTEM = "no metric name shows a subsystem: reported as CPU"
_RANKED_METRICS = 1_000_000  # metrics times spans ranked together, for bounded memory


@dataclass(frozen=True)
class ScoredTable:
    """A node's table, its scores in a mode, and the healthy table it was compared with."""

    node: str
    table: Table
    mode: str
    scores: Scores
    baseline: Table | None = None

    @property
    def counts_detectors(self) -> bool:
        """Return whether the score is a number of detectors that agree, as in paper mode."""
        return self.mode == "paper"

    @property
    def delay(self) -> int:
        """Return how many samples after an event begins its score may exceed the threshold."""
        return MEAN - 1 if self.mode == "online" else 0

    @property
    def limit(self) -> float:
        """Return the threshold of a method's own value."""
        return 1.0 if self.counts_detectors else self.scores.threshold


def percent(score: float) -> int:
    """Return a metric's score in spreads as a number from 0 to 100: 50 at 3, 77 at 10."""
    return round(100 * score / (score + _HALF)) if np.isfinite(score) else 100


def findings(scored: ScoredTable, progress: Progress | None = None) -> list[Finding]:
    """Return a finding for each span of alarms, in the order of time.

    ``progress`` is called with the share of the ranking that is done.
    """
    changed = {shift.first: list(shift.metrics) for shift in scored.scores.shifts}
    found = []
    for span, ranking in zip(scored.scores.spans, _rankings(scored, progress), strict=True):
        # the change of a level is the evidence, not what is abnormal about the level after it
        shifted = changed.get(span[0]) if span[1] == len(scored.table) else None
        found.append(_finding(scored, span, shifted or ranking))
    return found


def _rankings(scored: ScoredTable, progress: Progress | None) -> Iterator[list[MetricRank]]:
    """Yield the ranking of each span; many spans of a wide table are ranked in parts."""
    spans = [(max(0, first - scored.delay), end) for first, end in scored.scores.spans]
    step = max(1, _RANKED_METRICS // max(1, len(scored.table.names)))
    for start in range(0, len(spans), step):
        some = spans[start : start + step]
        yield from rank_spans(scored.table, some, scored.baseline, progress, scored.scores.learned)


def _finding(scored: ScoredTable, span: tuple[int, int], ranking: Sequence[MetricRank]) -> Finding:
    end = span[1]
    first = max(0, span[0] - scored.delay, min(span[0], ranking[0].first))
    times = scored.table.times_ns
    areas = subsystems(ranking)
    primary = areas[0] if areas else Subsystem.CPU
    methods = _methods(scored, span)
    agreeing = sum(method.agrees for method in methods)
    peak = _peak(scored.scores, span)
    resolved = end < len(scored.table)
    return Finding(
        id=finding_id(scored.node, primary, int(times[first])),
        node_name=scored.node,
        subsystem=primary,
        subsystems=areas or (primary,),
        severity=_severity(scored, peak, agreeing),
        state=State.RESOLVED if resolved else State.OPEN,
        first_observed_ns=int(times[first]),
        last_observed_ns=int(times[end - 1]),
        resolved_ns=int(times[end - 1]) if resolved else None,
        resolution=Resolution.ENDED if resolved else Resolution.NONE,
        claim=_claim(ranking),
        methods=methods,
        evidence=tuple(map(_evidence, ranking[:MOST_EVIDENCE])),
        score_percent=round(100 * peak / (1 + peak)),
        confidence_percent=_confidence(scored, peak, agreeing, len(methods)),
        notes=() if areas else (_NO_SUBSYSTEM,),
    )


def subsystems(ranking: Sequence[MetricRank]) -> tuple[Subsystem, ...]:
    """Return the subsystem of the first metric that shows one, then those that score similarly."""
    scored_areas = [
        (area, metric.score) for metric in ranking if (area := subsystem_of(metric.name))
    ]
    if not scored_areas:
        return ()
    least = _CO_OCCURRING * scored_areas[0][1]
    return tuple(dict.fromkeys(area for area, score in scored_areas if score >= least))


def _peak(scores: Scores, span: tuple[int, int]) -> float:
    """Return the highest score of the span over the threshold."""
    return min(float(scores.score[slice(*span)].max()) / scores.threshold, 1e6)


def _methods(scored: ScoredTable, span: tuple[int, int]) -> tuple[Method, ...]:
    result = []
    for name, values in scored.scores.methods.items():
        over = min(float(values[slice(*span)].max()) / scored.limit, 1e6)
        result.append(Method(name, over > 1, round(100 * over / (1 + over))))
    return tuple(result)


def _severity(scored: ScoredTable, peak: float, agreeing: int) -> Severity:
    """Return the severity by the height over the threshold, in paper mode by agreeing detectors."""
    if scored.counts_detectors:
        return severity.of_agreement(agreeing, ())
    return severity.of_score(peak)


def _confidence(scored: ScoredTable, peak: float, agreeing: int, methods: int) -> int:
    """Return percent: by the share of agreeing methods, outside paper mode also by the height."""
    share = agreeing / max(1, methods)
    if scored.counts_detectors:
        return round(100 * share)
    height = min(1.0, max(0.0, (peak - 1) / 3))
    return min(99, round(55 + 20 * height + 24 * share))


def _evidence(metric: MetricRank) -> Evidence:
    return Evidence(
        metric=metric.name,
        feature=metric.feature,
        instance="",
        value=decimal(metric.value),
        baseline=decimal(metric.baseline),
        unit="",
        direction=metric.direction,
    )


def _claim(ranking: Sequence[MetricRank]) -> str:
    """Return one sentence on the first metric and the number of metrics that score similarly."""
    first = ranking[0]
    least = _CO_OCCURRING * first.score
    more = sum(1 for metric in ranking[1:] if metric.score >= least)
    also = f"; {more} more metric{'s' if more > 1 else ''} with it" if more else ""
    value, baseline = decimal(first.value) or "unknown", decimal(first.baseline) or "unknown"
    return f"{first.name} at {value}, usually {baseline}{also}"
