"""Scores of a table told as findings: one a span of alarms, its metrics ranked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from reveal_analyzer.formatting import decimal
from reveal_analyzer.tables.ingest.subsystems import subsystem_of
from reveal_analyzer.tables.scoring.api import Ranked, Scores, Table, rank_spans
from reveal_contract import severity
from reveal_contract.finding import Evidence, Finding, Method, Severity, State, finding_id
from reveal_contract.metric import Subsystem

MOST_EVIDENCE = 10
_HALF = 3.0  # spreads that count for 50 percent
_CO_OCCURRING = 0.5  # of the first metric's score, that makes another's subsystem part of it
_UNTOLD = "no metric's name tells a subsystem: CPU stands for it"
_RANKED_AT_ONCE = 1_000_000  # metrics of spans: what a ranking of all takes in memory


@dataclass(frozen=True)
class Case:
    """A node's table, what a mode says of it, and the healthy table it was held against."""

    node: str
    table: Table
    mode: str
    scores: Scores
    baseline: Table | None = None

    @property
    def votes(self) -> bool:
        """Whether the score counts detectors that agree, as in the paper's mode."""
        return self.mode == "paper"

    @property
    def limit(self) -> float:
        """What a method's own value is compared with."""
        return 1.0 if self.votes else self.scores.threshold


def percent(score: float) -> int:
    """A metric's score in spreads as a number from 0 to 100: 50 at 3, 77 at 10."""
    return round(100 * score / (score + _HALF)) if np.isfinite(score) else 100


def findings(case: Case) -> list[Finding]:
    """A finding for each span of alarms, in the order of time."""
    spans = case.scores.spans
    return [
        _finding(case, span, ranking) for span, ranking in zip(spans, _rankings(case), strict=True)
    ]


def _rankings(case: Case) -> Iterator[list[Ranked]]:
    """Of each span; of a wide table with many not all at once."""
    spans = case.scores.spans
    step = max(1, _RANKED_AT_ONCE // max(1, len(case.table.names)))
    for at in range(0, len(spans), step):
        yield from rank_spans(case.table, spans[at : at + step], case.baseline)


def _finding(case: Case, span: tuple[int, int], ranking: Sequence[Ranked]) -> Finding:
    first, end = span
    times = case.table.times_ns
    areas = subsystems(ranking)
    primary = areas[0] if areas else Subsystem.CPU
    methods = _methods(case, span)
    agreeing = sum(method.agrees for method in methods)
    peak = _peak(case.scores, span)
    resolved = end < len(case.table)
    return Finding(
        id=finding_id(case.node, primary, int(times[first])),
        node_name=case.node,
        subsystem=primary,
        subsystems=areas or (primary,),
        severity=_severity(case, peak, agreeing),
        state=State.RESOLVED if resolved else State.OPEN,
        first_seen_ns=int(times[first]),
        last_seen_ns=int(times[end - 1]),
        resolved_ns=int(times[end - 1]) if resolved else None,
        claim=_claim(ranking),
        methods=methods,
        evidence=tuple(map(_evidence, ranking[:MOST_EVIDENCE])),
        score_percent=round(100 * peak / (1 + peak)),
        confidence_percent=_confidence(case, peak, agreeing, len(methods)),
        notes=() if areas else (_UNTOLD,),
    )


def subsystems(ranking: Sequence[Ranked]) -> tuple[Subsystem, ...]:
    """Of the first metric whose name tells one, then of those that stand out about as much."""
    told = [(area, one.score) for one in ranking if (area := subsystem_of(one.name))]
    if not told:
        return ()
    least = _CO_OCCURRING * told[0][1]
    return tuple(dict.fromkeys(area for area, score in told if score >= least))


def _peak(scores: Scores, span: tuple[int, int]) -> float:
    """The highest score of the span over the threshold."""
    return min(float(scores.score[slice(*span)].max()) / scores.threshold, 1e6)


def _methods(case: Case, span: tuple[int, int]) -> tuple[Method, ...]:
    made = []
    for name, values in case.scores.methods.items():
        over = min(float(values[slice(*span)].max()) / case.limit, 1e6)
        made.append(Method(name, over > 1, round(100 * over / (1 + over))))
    return tuple(made)


def _severity(case: Case, peak: float, agreeing: int) -> Severity:
    """By the height over the threshold; of the paper's votes by their number."""
    if case.votes:
        return severity.of_detectors(agreeing)
    return severity.of_score(peak)


def _confidence(case: Case, peak: float, agreeing: int, methods: int) -> int:
    """Percent: by how many methods agree, and but for votes by the height over the threshold."""
    share = agreeing / max(1, methods)
    if case.votes:
        return round(100 * share)
    height = min(1.0, max(0.0, (peak - 1) / 3))
    return min(99, round(55 + 20 * height + 24 * share))


def _evidence(one: Ranked) -> Evidence:
    return Evidence(
        metric=one.name,
        feature=one.feature,
        instance="",
        value=decimal(one.value),
        baseline=decimal(one.baseline),
        unit="",
        direction=one.direction,
    )


def _claim(ranking: Sequence[Ranked]) -> str:
    """One sentence on the first metric and how many stand out about as much."""
    first = ranking[0]
    least = _CO_OCCURRING * first.score
    more = sum(1 for one in ranking[1:] if one.score >= least)
    also = f"; {more} more metric{'s' if more > 1 else ''} with it" if more else ""
    value, usual = decimal(first.value) or "unknown", decimal(first.baseline) or "unknown"
    return f"{first.name} at {value}, usually {usual}{also}"
