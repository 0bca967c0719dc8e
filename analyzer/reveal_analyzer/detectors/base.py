"""Base class of detectors: fitted on windows of features, they score how abnormal others are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

from numpy.typing import NDArray

from reveal_analyzer.arrays import Floats, Floats32
from reveal_analyzer.kernels.scaler import Scaler

Arrays = dict[str, NDArray[Any]]


class ScaledDetector(ABC):
    """A detector on z-scores.

    As in scikit-learn, ``__init__`` stores keywords and ``fit`` drops what was learned before.
    Windows are (n, features) float64, NaN where unknown.  Higher scores (n,) are more abnormal.
    Contributions (n, features) are what each feature adds to the score, as each detector defines.

    The ``*_scaled`` methods take z-scores of ``scaler_`` (n, kept features), so that detectors with
    the same reference scale each window once (``paper_detectors``).
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
        """Return what was learned, without the scaler."""

    @abstractmethod
    def from_arrays(self, arrays: Arrays, width: int) -> Self:
        """Restore what ``to_arrays`` returned, for so many kept features.

        Raises ``KeyError``, ``TypeError`` or ``ValueError`` for anything else.
        """
