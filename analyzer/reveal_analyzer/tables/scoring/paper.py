"""The paper's mode: agreement of its three detectors on the features of windows (4.2 to 4.4).

Fitted on the baseline's windows, or, as the paper does, on those of the very run that is
judged; a window is marked where two of three lie over their own 99th percentile there.  What
is marked always is, as a percentile leaves 1 % over it: that is the paper's rule.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from reveal_analyzer.arrays import Floats
from reveal_analyzer.detectors.base import ScaledDetector
from reveal_analyzer.detectors.isolation_forest import IsolationForest
from reveal_analyzer.detectors.mahalanobis import Mahalanobis
from reveal_analyzer.detectors.paper_detectors import METHODS
from reveal_analyzer.detectors.zscore import ZScore
from reveal_analyzer.features.numpy_impl import features
from reveal_analyzer.features.table import FEATURES
from reveal_analyzer.tables.scoring.frames import Frames, window_features
from reveal_analyzer.tables.scoring.parts import MIN_WINDOWS, Parts
from reveal_analyzer.tables.scoring.rows import Rows
from reveal_analyzer.tables.scoring.settings import SampleSettings

CUT = 2.0  # detectors that agree

_FRAMES = ((30, 10),)
_PERCENTILE = 0.99
_BATCH = 4_096  # windows scored at once
_MOST = 1 << 27  # numbers: all windows' features are held at once, 1 GiB of them


class TooLargeError(ValueError):
    """The paper's mode holds the features of all windows at once, and these are too many."""


def judge(rows: Rows, settings: SampleSettings) -> tuple[Parts, Floats]:
    """Each detector over its threshold, and the score, at each sample of the table.

    A sample takes the largest of the windows over it.  The score is how many detectors agree on
    a window, and below that how far they are.  Raises ``TooLargeError``; nothing is over where
    there are fewer than 8 windows.
    """
    ((size, stride),) = settings.frames(_FRAMES)
    frames = Frames(size, stride, rows.since)
    reference = _reference(frames, rows.before)
    if np.count_nonzero(reference) < MIN_WINDOWS:
        return {name: np.zeros(len(rows.table)) for name in METHODS}, np.zeros(len(rows.table))
    multiples = _multiples(_features(rows, frames), reference)
    found = dict(zip(METHODS, multiples, strict=True))
    methods = {name: frames.largest(each)[rows.before :] for name, each in found.items()}
    return methods, frames.largest(_votes(multiples))[rows.before :]


def _votes(multiples: list[Floats]) -> Floats:
    """Detectors over their thresholds, and a fraction that rises with the mean multiple."""
    each = np.stack(multiples)
    mean = each.mean(0)
    return np.asarray((each > 1.0).sum(0) + mean / (1.0 + mean))


def _reference(frames: Frames, before: int) -> NDArray[np.bool_]:
    """Which windows are learned from: the baseline's, or all where there is none."""
    return frames.whole & (frames.starts + frames.size <= (before or len(frames.since)))


def _features(rows: Rows, frames: Frames) -> Floats:
    width = len(FEATURES) * len(rows.table.names)
    if len(frames.starts) * width > _MOST:
        raise TooLargeError(
            f"{len(frames.starts):,} windows of {width:,} features are more than the paper's mode "
            f"can hold: take a larger stride or fewer columns"
        )
    made = [window_features(values, frames, features, single=False) for values in rows.blocks()]
    return np.hstack(made).astype(np.float64, copy=False)


def _multiples(windows: Floats, reference: NDArray[np.bool_]) -> list[Floats]:
    """Each detector's scores over its 99th percentile among the reference (windows,)."""
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
        batches = [windows[at : at + _BATCH] for at in range(0, len(windows), _BATCH)]
        score = np.concatenate([detector.score(batch) for batch in batches])
        limit = float(np.quantile(score[reference], _PERCENTILE))
        found.append(score / max(limit, np.finfo(np.float64).tiny))
    return found
