"""Detection on a table: which samples are abnormal, and which metrics caused a span of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
from threadpoolctl import threadpool_limits

from reveal_analyzer.arrays import Bools, Floats
from reveal_analyzer.tables.scoring import offline, online, paper
from reveal_analyzer.tables.scoring.learned import LearnedBlocks
from reveal_analyzer.tables.scoring.level_shifts import LevelShift
from reveal_analyzer.tables.scoring.metric_rank import MetricRank
from reveal_analyzer.tables.scoring.paper import TooLargeError
from reveal_analyzer.tables.scoring.ranking import Span, sample_distances
from reveal_analyzer.tables.scoring.ranking import rank_spans as _rank_spans
from reveal_analyzer.tables.scoring.rows import Progress, TableRows
from reveal_analyzer.tables.scoring.settings import SampleSettings, apart_rows
from reveal_analyzer.tables.scoring.spans import spans_of, warm_ups, with_shifts
from reveal_analyzer.tables.scoring.table import Table
from reveal_analyzer.tables.scoring.views import ViewScores

__all__ = [
    "MODES",
    "MetricRank",
    "Progress",
    "SampleSettings",
    "Scores",
    "Table",
    "TooLargeError",
    "canonical_mode",
    "default_threshold",
    "distances_by_sample",
    "rank",
    "rank_spans",
    "score",
]

MODES = ("offline", "online", "paper")
_ALIASES = {"report": "offline"}

_THRESHOLDS = {"offline": offline.THRESHOLD, "online": online.THRESHOLD, "paper": paper.THRESHOLD}


@dataclass(frozen=True)
class Scores:
    """Scores of each sample of a table (n,) in one mode.

    A sample is ``anomalous`` if its ``score`` exceeds the ``threshold`` (in paper mode also if it
    equals it: two detectors agree).  ``methods`` are the views of the score as multiples of their
    normal level, in paper mode the detectors as multiples of their threshold.  ``spans`` are the
    alarms, (first, end) rows, end excluded; stretches at most half an hour (or 30 samples) apart
    are one.  A change of level that stays (``shifts``) is a span up to the last row; of its samples
    the first few are anomalous.  ``learned`` is for ``rank_spans`` of the same table and baseline.
    """

    score: Floats
    threshold: float
    anomalous: Bools
    methods: dict[str, Floats]
    spans: list[Span]
    shifts: tuple[LevelShift, ...] = ()
    learned: LearnedBlocks | None = field(default=None, repr=False, compare=False)


def canonical_mode(mode: str) -> str:
    """Return the name of a mode; ``report`` is an older name of ``offline``."""
    return _ALIASES.get(mode, mode)


def default_threshold(mode: str, *, with_baseline: bool) -> float:
    """Return the threshold of a mode's score, unless the settings have another."""
    if canonical_mode(mode) == "offline" and with_baseline:
        return offline.THRESHOLD_WITH_BASELINE
    return _THRESHOLDS[canonical_mode(mode)]


def score(
    table: Table,
    mode: str = "offline",
    baseline: Table | None = None,
    settings: SampleSettings | None = None,
    progress: Progress | None = None,
) -> Scores:
    """Score every sample of a table, deterministically.

    ``offline`` (alias ``report``) scores the whole run with all of it as reference.  ``online``
    scores each sample by earlier ones; without a baseline the first samples (a day's, or 120 to
    1,440) are learned and have score 0.  ``paper`` follows the paper.  ``baseline`` is healthy
    telemetry of the same metrics.  Metrics that are constant or always missing have no effect; a
    table too short to score has score 0 throughout.  ``progress`` is called with the share of the
    metrics that are scored.  Raises ``ValueError`` for an unknown mode or a
    baseline without a metric of the table, ``TooLargeError`` in paper mode.
    """
    chosen = settings or SampleSettings()
    mode = canonical_mode(mode)
    if mode not in MODES:
        raise ValueError(f"no mode {mode!r}: {', '.join(MODES)}")
    rows = TableRows(table, _usable(table, baseline), progress)
    learned = LearnedBlocks()
    with _calculating():
        methods, combined, shifts = _mode_scores(rows, mode, chosen, learned)
    threshold = chosen.threshold or default_threshold(mode, with_baseline=rows.baseline_rows > 0)
    if mode == "paper":
        over = combined >= threshold
        spans = spans_of(over, apart_rows(table.period_ns))
        return Scores(combined, threshold, over, methods, spans)
    apart = apart_rows(table.period_ns)
    for first, end in warm_ups(combined > threshold, rows.since[rows.baseline_rows :], apart):
        combined[first:end] = np.minimum(combined[first:end], threshold)
    over = combined > threshold
    counted = tuple(shift for shift in shifts if over[shift.first])
    spans = with_shifts(spans_of(over, apart), [shift.first for shift in counted], len(over), apart)
    return Scores(combined, threshold, over, methods, spans, counted, learned)


def rank(table: Table, first: int, end: int, baseline: Table | None = None) -> list[MetricRank]:
    """Return every metric by how abnormal it was in samples ``first`` to ``end`` (excluded).

    It is compared with the whole table, and with the baseline if there is one.  Raises
    ``ValueError`` for a span that is empty or not within the table.
    """
    return rank_spans(table, [(first, end)], baseline)[0]


def rank_spans(
    table: Table,
    spans: Sequence[Span],
    baseline: Table | None = None,
    progress: Progress | None = None,
    learned: LearnedBlocks | None = None,
) -> list[list[MetricRank]]:
    """Return ``rank`` of several spans in one pass.

    ``learned`` comes from ``score`` of this table and baseline, and saves time.
    """
    rows = TableRows(table, _usable(table, baseline), progress)
    with _calculating():
        return _rank_spans(rows, spans, learned)


@contextmanager
def _calculating() -> Iterator[None]:
    """Calculate without warnings, and linear algebra on a single thread.

    The matrices of a block are too small for more: threads that wait for each other took half of
    the CPU time.  And the same input has the same scores on any number of CPUs.
    """
    with np.errstate(all="ignore"), threadpool_limits(1, "blas"):
        yield


def distances_by_sample(table: Table) -> tuple[Floats, Floats]:
    """Return how far each sample is from mean and forecast (n, m), as ``rank_spans`` takes them."""
    nothing = np.zeros(table.values.shape)
    with np.errstate(all="ignore"):
        blocks = [*sample_distances(TableRows(table, None, None))]
    if not blocks:
        return nothing, nothing
    levels, forecasts = zip(*blocks, strict=True)
    return np.concatenate(levels, axis=1), np.concatenate(forecasts, axis=1)


def _mode_scores(
    rows: TableRows, mode: str, settings: SampleSettings, learned: LearnedBlocks
) -> tuple[ViewScores, Floats, list[LevelShift]]:
    nothing: tuple[ViewScores, Floats, list[LevelShift]] = {}, np.zeros(len(rows.table)), []
    if not rows.table.names or not len(rows.table):
        return nothing
    if mode == "offline":
        return nothing if len(rows) < offline.LEAST_ROWS else offline.judge(rows, settings, learned)
    judged = online.judge if mode == "online" else paper.judge
    return *judged(rows, settings), []


def _usable(table: Table, baseline: Table | None) -> Table | None:
    """Return the baseline if it has rows; it must have at least one of the table's metrics."""
    if baseline is None or not len(baseline):
        return None
    if not set(baseline.names) & set(table.names):
        raise ValueError("the baseline has none of the table's columns")
    return baseline
