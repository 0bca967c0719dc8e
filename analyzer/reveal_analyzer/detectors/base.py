"""What a detector is: fitted on windows of features, says how abnormal others are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Protocol, Self

from numpy.typing import NDArray

from reveal_analyzer.arrays import Floats, Floats32
from reveal_analyzer.kernels.scaler import Scaler

Arrays = dict[str, NDArray[Any]]


class Detector(Protocol):
    """Rules as in scikit-learn: ``__init__`` stores keywords, ``fit`` forgets what was before.

    Higher scores are more abnormal.  Windows are (n, features) float64, NaN where unknown.
    """

    def fit(self, windows: Floats) -> Self: ...

    def score(self, windows: Floats) -> Floats:
        """One number a window, (n,)."""
        ...

    def contributions(self, windows: Floats) -> Floats:
        """What each feature adds to the score, (n, features); the sense is the detector's."""
        ...


class ScaledDetector(ABC):
    """A detector on z-scores.

    The ``*_scaled`` methods take z-scores of ``scaler_`` (n, kept features), so that detectors
    that share a reference scale each window once (``trio``).
    """

    def __init__(self, *, clip: float = 8.0) -> None:
        self.clip = clip

    def fit(self, windows: Floats) -> Self:
        self.scaler_ = Scaler(clip=self.clip).fit(windows)
        return self.fit_scaled(self.scaler_.transform(windows))

    def score(self, windows: Floats) -> Floats:
        return self.score_scaled(self.scaler_.transform(windows))

    def contributions(self, windows: Floats) -> Floats:
        scaled = self.scaler_.transform(windows)
        return self.scaler_.widen(self.contributions_scaled(scaled))

    @abstractmethod
    def fit_scaled(self, scaled: Floats32) -> Self: ...

    @abstractmethod
    def score_scaled(self, scaled: Floats32) -> Floats: ...

    @abstractmethod
    def contributions_scaled(self, scaled: Floats32) -> Floats: ...

    @abstractmethod
    def to_arrays(self) -> Arrays:
        """What was learned, but for the scaler."""

    @abstractmethod
    def from_arrays(self, arrays: Arrays, width: int) -> Self:
        """Take over what ``to_arrays`` gave, for so many kept features.

        Raises ``KeyError``, ``TypeError`` or ``ValueError`` for anything else.
        """
