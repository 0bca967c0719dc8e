"""Detection on a table: which samples are abnormal, and which metrics made a span so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from reveal_analyzer.arrays import Bools, Floats
from reveal_analyzer.tables.scoring import offline, online, paper
from reveal_analyzer.tables.scoring.paper import TooLargeError
from reveal_analyzer.tables.scoring.parts import Parts, spans_of
from reveal_analyzer.tables.scoring.ranking import Ranked, Span
from reveal_analyzer.tables.scoring.ranking import rank_spans as _rank_spans
from reveal_analyzer.tables.scoring.rows import Rows
from reveal_analyzer.tables.scoring.settings import SampleSettings, apart_rows
from reveal_analyzer.tables.scoring.table import Table

__all__ = [
    "MODES",
    "Ranked",
    "SampleSettings",
    "Scores",
    "Table",
    "TooLargeError",
    "rank",
    "rank_spans",
    "score",
    "usual_cut",
]

MODES = ("report", "online", "paper")

_CUTS = {"report": offline.CUT, "online": online.CUT, "paper": paper.CUT}


@dataclass(frozen=True)
class Scores:
    """What a mode says of each sample of a table (n,).

    ``score`` over ``threshold`` is ``anomalous`` (in the paper's mode also one that equals it:
    two votes).  ``methods`` are the views it is made of, as multiples of their usual level, or
    of the paper's detectors of their threshold.  ``spans`` are the alarms, (first, end) rows
    with the end excluded; stretches at most half an hour (or 30 samples) apart are one.
    """

    score: Floats
    threshold: float
    anomalous: Bools
    methods: dict[str, Floats]
    spans: list[Span]


def usual_cut(mode: str, *, beside_baseline: bool) -> float:
    """What a score of this mode has to pass to be anomalous, unless the settings say otherwise."""
    if mode == "report" and beside_baseline:
        return offline.CUT_BESIDE_BASELINE
    return _CUTS[mode]


def score(
    table: Table,
    mode: str = "report",
    baseline: Table | None = None,
    settings: SampleSettings | None = None,
) -> Scores:
    """Score every sample of a table, deterministically.

    ``report`` judges the whole run with hindsight, ``online`` each sample by what was before it
    (without a baseline the first samples, a day's or 120 to 1,440, are learned from and have
    score 0), ``paper`` as the paper does.  ``baseline`` is telemetry of the same metrics, held
    to be healthy.  Metrics that never move, or are always missing, are kept and say nothing;
    a table too short to judge has score 0 throughout.  Raises ``ValueError`` for an unknown
    mode or a baseline without a metric of the table, ``TooLargeError`` in the paper's mode.
    """
    asked = settings or SampleSettings()
    if mode not in MODES:
        raise ValueError(f"no mode {mode!r}: {', '.join(MODES)}")
    rows = Rows(table, _fitting(table, baseline))
    with np.errstate(all="ignore"):
        methods, folded = _judged(rows, mode, asked)
    threshold = asked.cut or usual_cut(mode, beside_baseline=rows.before > 0)
    over = folded >= threshold if mode == "paper" else folded > threshold
    return Scores(folded, threshold, over, methods, spans_of(over, apart_rows(table.period_ns)))


def rank(table: Table, first: int, end: int, baseline: Table | None = None) -> list[Ranked]:
    """Every metric by how odd it was in samples ``first`` to ``end`` (excluded), oddest first.

    Odd compared with the whole table, and the baseline if there is one.  Raises ``ValueError``
    for a span that is empty or not within the table.
    """
    return rank_spans(table, [(first, end)], baseline)[0]


def rank_spans(
    table: Table, spans: Sequence[Span], baseline: Table | None = None
) -> list[list[Ranked]]:
    """``rank`` of several spans for the price of one."""
    with np.errstate(all="ignore"):
        return _rank_spans(Rows(table, _fitting(table, baseline)), spans)


def _judged(rows: Rows, mode: str, settings: SampleSettings) -> tuple[Parts, Floats]:
    nothing = np.zeros(len(rows.table))
    if not rows.table.names or not len(rows.table):
        return {}, nothing
    if mode == "report":
        long_enough = len(rows) >= offline.LEAST_ROWS
        return offline.judge(rows, settings) if long_enough else ({}, nothing)
    if mode == "online":
        return online.judge(rows, settings)
    return paper.judge(rows, settings)


def _fitting(table: Table, baseline: Table | None) -> Table | None:
    """The baseline, if it has rows; it must know one of the table's metrics at least."""
    if baseline is None or not len(baseline):
        return None
    if not set(baseline.names) & set(table.names):
        raise ValueError("the baseline has none of the table's columns")
    return baseline
