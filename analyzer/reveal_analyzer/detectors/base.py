"""Base class of detectors: fitted on windows of features, they score how abnormal others are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from reveal_analyzer.arrays import Floats, Floats32
from reveal_analyzer.detectors.still_features import StillFeatures
from reveal_analyzer.kernels.scaler import Scaler

Arrays = dict[str, NDArray[Any]]


class ScaledDetector(ABC):
    """A detector on z-scores.

    As in scikit-learn, ``__init__`` stores keywords and ``fit`` drops what was learned before.
    Windows are (n, features) float64, NaN where unknown.  Higher scores (n,) are more abnormal.
    Contributions (n, features) are what each feature adds to the score, as each detector defines.

    The ``*_scaled`` methods take z-scores of ``scaler_`` (n, kept features), so that detectors with
    the same reference scale each window once (``paper_detectors``).  The ``*_moved`` methods take
    the distances (n, still features) of ``StillFeatures`` beside the scores (n,) of the others.
    """

    def __init__(self, *, clip: float = 8.0) -> None:
        self.clip = clip

    def fit(self, windows: Floats) -> Self:
        self.scaler_ = Scaler(clip=self.clip).fit(windows)
        self.still_ = StillFeatures.of(self.scaler_)
        return self.fit_scaled(self.scaler_.transform(windows))

    def score(self, windows: Floats) -> Floats:
        scores = self.score_scaled(self.scaler_.transform(windows))
        return self.with_moved(scores, self.still_.distances(windows), self.scaler_.kept_.size)

    def contributions(self, windows: Floats) -> Floats:
        scaled, moved = self.scaler_.transform(windows), self.still_.distances(windows)
        wide = self.scaler_.widen(self.contributions_scaled(scaled))
        scores, kept = self.score_scaled(scaled), self.scaler_.kept_.size
        wide[:, self.still_.columns] = self.contributions_moved(scores, moved, kept)
        return wide

    def with_moved(self, scores: Floats, moved: Floats, kept: float) -> Floats:
        """Return the scores of windows with what moved in them.

        ``kept`` is the number of features that the scores are of.  Scores of windows in which
        nothing moved stay as they are.
        """
        any_moved = np.flatnonzero(moved.any(axis=1))
        if not any_moved.size:
            return scores
        result = scores.copy()
        result[any_moved] = self.score_moved(scores[any_moved], moved[any_moved], kept)
        return result

    @abstractmethod
    def fit_scaled(self, scaled: Floats32) -> Self: ...

    @abstractmethod
    def score_scaled(self, scaled: Floats32) -> Floats: ...

    @abstractmethod
    def contributions_scaled(self, scaled: Floats32) -> Floats: ...

    def score_moved(self, scores: Floats, moved: Floats, kept: float) -> Floats:
        """Return the scores of windows with features that moved.

        Unless a detector weighs them otherwise, their distances are part of a mean of all.
        """
        return np.asarray(scores + np.abs(moved).sum(1) / max(1.0, kept))

    def contributions_moved(self, scores: Floats, moved: Floats, kept: float) -> Floats:
        """Return what each still feature adds to the score, (n, still features)."""
        return np.asarray(np.abs(moved) / max(1.0, kept))

    @abstractmethod
    def to_arrays(self) -> Arrays:
        """Return what was learned, without the scaler."""

    @abstractmethod
    def from_arrays(self, arrays: Arrays, width: int) -> Self:
        """Restore what ``to_arrays`` returned, for so many kept features.

        Raises ``KeyError``, ``TypeError`` or ``ValueError`` for anything else.
        """
