"""Paper mode of tables: agreement of three detectors on the features of windows (4.2 to 4.4).

The detectors are fitted on the baseline's windows or, as in the paper, on those of the run itself.
A window is marked if two of three detectors exceed their own 99th percentile there.  Some window is
always marked, as 1 % exceed a 99th percentile: that is the paper's rule.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from reveal_analyzer.arrays import Floats
from reveal_analyzer.detectors.base import ScaledDetector
from reveal_analyzer.detectors.isolation_forest import IsolationForest
from reveal_analyzer.detectors.mahalanobis import Mahalanobis
from reveal_analyzer.detectors.registry import METHODS
from reveal_analyzer.detectors.zscore import ZScore
from reveal_analyzer.features.numpy_impl import features
from reveal_analyzer.features.table import FEATURES
from reveal_analyzer.tables.scoring.frames import Frames, window_features
from reveal_analyzer.tables.scoring.rows import TableRows
from reveal_analyzer.tables.scoring.settings import SampleSettings
from reveal_analyzer.tables.scoring.views import MIN_WINDOWS, ViewScores

THRESHOLD = 2.0  # detectors that agree

_FRAMES = ((30, 10),)
_PERCENTILE = 0.99
_BATCH = 4_096  # windows scored at once
_MOST = 1 << 27  # numbers: all windows' features are held at once, 1 GiB of them


class TooLargeError(ValueError):
    """Paper mode holds the features of all windows in memory, and there are too many."""


def judge(rows: TableRows, settings: SampleSettings) -> tuple[ViewScores, Floats]:
    """Return each detector over its threshold, and the score, at each sample of the table.

    A sample takes the largest of the windows over it.  The score is the number of detectors that
    agree on a window, plus a fraction by how far they are off.  Raises ``TooLargeError``; all
    scores are 0 with fewer than 8 windows.
    """
    ((size, stride),) = settings.frames(_FRAMES)
    frames = Frames(size, stride, rows.since)
    reference = _reference(frames, rows.baseline_rows)
    if np.count_nonzero(reference) < MIN_WINDOWS:
        return {name: np.zeros(len(rows.table)) for name in METHODS}, np.zeros(len(rows.table))
    multiples = _multiples(_features(rows, frames), reference)
    found = dict(zip(METHODS, multiples, strict=True))
    methods = {name: frames.largest(each)[rows.baseline_rows :] for name, each in found.items()}
    return methods, frames.largest(_agreement(multiples))[rows.baseline_rows :]


def _agreement(multiples: list[Floats]) -> Floats:
    """Return detectors over their thresholds, plus a fraction that rises with the mean multiple."""
    each = np.stack(multiples)
    mean = each.mean(0)
    return np.asarray((each > 1.0).sum(0) + mean / (1.0 + mean))


def _reference(frames: Frames, before: int) -> NDArray[np.bool_]:
    """Return which windows are learned: the baseline's, or all without a baseline."""
    return frames.whole & (frames.starts + frames.size <= (before or len(frames.since)))


def _features(rows: TableRows, frames: Frames) -> Floats:
    width = len(FEATURES) * len(rows.table.names)
    if len(frames.starts) * width > _MOST:
        raise TooLargeError(
            f"{len(frames.starts):,} windows of {width:,} features are more than the paper's mode "
            f"can hold: take a larger stride or fewer columns"
        )
    blocks = [window_features(values, frames, features, single=False) for values in rows.blocks()]
    return np.hstack(blocks).astype(np.float64, copy=False)


def _multiples(windows: Floats, reference: NDArray[np.bool_]) -> list[Floats]:
    """Return each detector's scores over its 99th percentile in the reference (windows,)."""
    # nothing is clipped, as in the paper
    detectors: tuple[ScaledDetector, ...] = (
        ZScore(clip=math.inf),
        Mahalanobis(clip=math.inf, single=False),
        IsolationForest(clip=math.inf),
    )
    learned = windows[reference]
    found = []
    for detector in detectors:
        detector.fit(learned)
        batches = [windows[start : start + _BATCH] for start in range(0, len(windows), _BATCH)]
        score = np.concatenate([detector.score(batch) for batch in batches])
        limit = float(np.quantile(score[reference], _PERCENTILE))
        found.append(score / max(limit, np.finfo(np.float64).tiny))
    return found
