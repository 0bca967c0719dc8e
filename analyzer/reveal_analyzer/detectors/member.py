"""The three detectors fitted on one part of a reference, behind one scaler."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from reveal_analyzer.arrays import Floats
from reveal_analyzer.detectors.base import Arrays, ScaledDetector
from reveal_analyzer.detectors.isolation_forest import IsolationForest
from reveal_analyzer.detectors.mahalanobis import Mahalanobis
from reveal_analyzer.detectors.zscore import ZScore
from reveal_analyzer.kernels import backend
from reveal_analyzer.kernels.scaler import Scaler

METHODS = ("ZScore", "Mahalanobis", "IsolationForest")


@dataclass(frozen=True)
class Member:
    """Windows are scaled once for all three; ``detectors`` stand in the order of ``METHODS``."""

    scaler: Scaler
    detectors: tuple[ScaledDetector, ...]

    @classmethod
    def fit(cls, windows: Floats, random_state: int) -> Member:
        scaler = Scaler().fit(windows)
        scaled = scaler.transform(windows)
        fitted = tuple(each.fit_scaled(scaled) for each in _unfitted(random_state))
        return cls(scaler, fitted)

    def scores(self, windows: Floats) -> Floats:
        """Each method's score of each window, (methods, n)."""
        scaled = backend.current().transform(self.scaler, windows)
        return np.stack([detector.score_scaled(scaled) for detector in self.detectors])

    def contributions(self, method: int, windows: Floats) -> Floats:
        """What each feature adds to a method's score, (n, features)."""
        scaled = self.scaler.transform(windows)
        return self.scaler.widen(self.detectors[method].contributions_scaled(scaled))

    def to_arrays(self) -> Arrays:
        arrays: Arrays = {
            "features": np.array(self.scaler.features_),
            "clip": np.array(self.scaler.clip),
            "kept": self.scaler.kept_,
            "mean": self.scaler.mean_,
            "spread": self.scaler.spread_,
        }
        for name, detector in zip(METHODS, self.detectors, strict=True):
            arrays |= prefixed(name, detector.to_arrays())
        return arrays

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> Member:
        """What ``to_arrays`` gave; raises ``KeyError``, ``TypeError`` or ``ValueError``."""
        scaler = _scaler(arrays)
        detectors = _unfitted(random_state=0)
        for name, detector in zip(METHODS, detectors, strict=True):
            detector.from_arrays(below(name, arrays), scaler.kept_.size)
        return cls(scaler, detectors)


def prefixed(prefix: str, arrays: Arrays) -> Arrays:
    return {f"{prefix}.{name}": array for name, array in arrays.items()}


def below(prefix: str, arrays: Arrays) -> Arrays:
    """The arrays that ``prefixed`` named, under their own names."""
    start = f"{prefix}."
    return {k.removeprefix(start): array for k, array in arrays.items() if k.startswith(start)}


def _unfitted(random_state: int) -> tuple[ScaledDetector, ...]:
    return ZScore(), Mahalanobis(), IsolationForest(random_state=random_state)


def _scaler(arrays: Arrays) -> Scaler:
    scaler = Scaler(clip=float(arrays["clip"]))
    scaler.features_, scaler.kept_ = int(arrays["features"]), arrays["kept"]
    scaler.mean_, scaler.spread_ = arrays["mean"], arrays["spread"]
    kept = scaler.kept_
    if kept.ndim != 1 or not kept.shape == scaler.mean_.shape == scaler.spread_.shape:
        raise ValueError("its means and spreads are not of one length")
    if kept.size and not 0 <= kept.min() <= kept.max() < scaler.features_:
        raise ValueError("it names features that it does not have")
    return scaler
