"""The paper's three detectors on the same windows: how many agree, and on what (section 4.3)."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from reveal_analyzer.detectors.base import Arrays, ScaledDetector
from reveal_analyzer.detectors.isolation_forest import IsolationForest
from reveal_analyzer.detectors.mahalanobis import Mahalanobis
from reveal_analyzer.detectors.scaler import Floats, Scaler, Scores
from reveal_analyzer.detectors.threshold import Threshold, folds, threshold
from reveal_analyzer.detectors.zscore import ZScore

SCHEMA = 1
MIN_WINDOWS = 30
METHODS = ("ZScore", "Mahalanobis", "IsolationForest")


class ModelError(ValueError):
    """A stored model cannot be used; the text says why."""


@dataclass(frozen=True, slots=True)
class Part:
    """A feature column and its share of a method's score, 0 to 1."""

    column: int
    share: float


@dataclass(frozen=True, slots=True)
class MethodScore:
    """One detector on one window; ``top`` is filled where it agrees, largest share first."""

    name: str
    score: float
    threshold: float
    agrees: bool
    score_percent: int
    top: tuple[Part, ...] = ()


@dataclass(frozen=True, slots=True)
class MethodScores:
    """The three detectors on one window."""

    methods: tuple[MethodScore, ...]

    @property
    def agreeing(self) -> int:
        return sum(method.agrees for method in self.methods)


class Trio:
    """Fits the three on a reference of windows and judges others, deterministically.

    ``contamination`` is the share of healthy windows that may lie over a method's threshold,
    ``overlap`` how many strides apart two windows still share samples, ``top`` how many feature
    columns a method names.
    """

    def __init__(
        self,
        *,
        contamination: float = 0.01,
        held_out_parts: int = 3,
        overlap: int = 2,
        top: int = 30,
        random_state: int = 0,
    ) -> None:
        self.contamination = contamination
        self.held_out_parts = held_out_parts
        self.overlap = overlap
        self.top = top
        self.random_state = random_state

    def fit(self, windows: Floats, times: NDArray[np.integer] | None = None) -> Self:
        """Learn from windows (n >= 30, features); ``times`` in strides, consecutive if not given.

        Thresholds come from windows held out by stretches of time; the detectors themselves are
        then fitted on all.
        """
        if len(windows) < MIN_WINDOWS:
            raise ValueError(f"a reference takes {MIN_WINDOWS} windows or more, not {len(windows)}")
        at = np.arange(len(windows)) if times is None else times
        self.thresholds_ = self._held_out_thresholds(windows, at)
        self.scaler_, self.detectors_ = self._fitted(windows)
        return self

    def judge(self, windows: Floats) -> list[MethodScores]:
        """What each method says of each window (n, features)."""
        scaled = self.scaler_.transform(windows)
        scores = [detector.score_scaled(scaled) for detector in self.detectors_]
        return [
            self._judged(scaled[at : at + 1], [s[at] for s in scores]) for at in range(len(windows))
        ]

    def save(self, path: Path, layout: str = "") -> None:
        """Write the model as arrays (npz), whole or not at all.

        ``layout`` names the columns it was fitted on; ``load`` asks for the same.
        """
        arrays: Arrays = {
            "schema": np.array(SCHEMA),
            "layout": np.array(layout),
            "features": np.array(self.scaler_.features_),
            "clip": np.array(self.scaler_.clip),
            "kept": self.scaler_.kept_,
            "mean": self.scaler_.mean_,
            "spread": self.scaler_.spread_,
            "thresholds": np.array([[each.value, each.centre] for each in self.thresholds_]),
        }
        for name, detector in zip(METHODS, self.detectors_, strict=True):
            arrays |= {f"{name}.{key}": array for key, array in detector.to_arrays().items()}
        part = path.with_name(path.name + ".part")
        with part.open("wb") as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]
        part.replace(path)

    def load(self, path: Path, layout: str = "") -> Self:
        """Take over a saved model; raises ``ModelError`` for anything else, ``OSError`` too."""
        try:
            with np.load(path, allow_pickle=False) as held:
                arrays: Arrays = {name: held[name] for name in held.files}
            self._take(arrays, layout)
        except (ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
            raise ModelError(f"{path}: not a usable model of detectors: {error}") from None
        return self

    def _held_out_thresholds(
        self, windows: Floats, times: NDArray[np.integer]
    ) -> tuple[Threshold, ...]:
        held: list[list[Floats]] = [[] for _ in METHODS]
        for fit_on, left_out in folds(times, self.held_out_parts, self.overlap):
            scaler, detectors = self._fitted(windows[fit_on])
            scaled = scaler.transform(windows[left_out])
            for scores, detector in zip(held, detectors, strict=True):
                scores.append(detector.score_scaled(scaled))
        quantile = 1.0 - self.contamination
        return tuple(threshold(np.concatenate(scores), quantile) for scores in held)

    def _fitted(self, windows: Floats) -> tuple[Scaler, tuple[ScaledDetector, ...]]:
        scaler = Scaler().fit(windows)
        scaled = scaler.transform(windows)
        return scaler, tuple(each.fit_scaled(scaled) for each in self._unfitted())

    def _unfitted(self) -> tuple[ScaledDetector, ...]:
        return ZScore(), Mahalanobis(), IsolationForest(random_state=self.random_state)

    def _judged(self, scaled: Scores, scores: Sequence[float]) -> MethodScores:
        parts = zip(METHODS, self.detectors_, self.thresholds_, scores, strict=True)
        return MethodScores(tuple(self._method(*part, scaled) for part in parts))

    def _method(
        self, name: str, detector: ScaledDetector, limit: Threshold, score: float, scaled: Scores
    ) -> MethodScore:
        agrees = bool(score > limit.value)
        top = self._top(detector.contributions_scaled(scaled)[0]) if agrees else ()
        return MethodScore(name, float(score), limit.value, agrees, limit.percent(score), top)

    def _top(self, contributions: Floats) -> tuple[Part, ...]:
        """The columns that add most, as shares of all that is added."""
        positive = np.maximum(contributions, 0.0)
        count = min(self.top, positive.size)
        largest = np.argpartition(-positive, count - 1)[:count]
        order = largest[np.lexsort((largest, -positive[largest]))]
        whole = positive.sum()
        columns = self.scaler_.kept_[order].tolist()
        shares = (positive[order] / whole).tolist() if whole > 0 else []
        return tuple(Part(*pair) for pair in zip(columns, shares, strict=False) if pair[1] > 0)

    def _take(self, arrays: Arrays, layout: str) -> None:
        if arrays["schema"].shape or int(arrays["schema"]) != SCHEMA:
            raise ValueError(f"its schema is not {SCHEMA}")
        if str(arrays["layout"]) != layout:
            raise ValueError("it was fitted on other columns")
        scaler = Scaler(clip=float(arrays["clip"]))
        scaler.features_, scaler.kept_ = int(arrays["features"]), arrays["kept"]
        scaler.mean_, scaler.spread_ = arrays["mean"], arrays["spread"]
        detectors = self._unfitted()
        for name, detector in zip(METHODS, detectors, strict=True):
            own = {
                key.removeprefix(f"{name}."): array
                for key, array in arrays.items()
                if key.startswith(f"{name}.")
            }
            detector.from_arrays(own)
        thresholds = tuple(Threshold(*map(float, pair)) for pair in arrays["thresholds"])
        _refuse_inconsistent(scaler, detectors, thresholds)
        self.scaler_, self.detectors_, self.thresholds_ = scaler, detectors, thresholds


def _refuse_inconsistent(
    scaler: Scaler, detectors: tuple[ScaledDetector, ...], thresholds: tuple[Threshold, ...]
) -> None:
    kept = scaler.kept_.size
    if not kept == scaler.mean_.size == scaler.spread_.size:
        raise ValueError("its means and spreads are not of one length")
    if kept and not 0 <= scaler.kept_.min() <= scaler.kept_.max() < scaler.features_:
        raise ValueError("it names features that it does not have")
    if len(thresholds) != len(METHODS):
        raise ValueError(f"it has {len(thresholds)} thresholds, not {len(METHODS)}")
    for detector in detectors:
        detector.score_scaled(np.zeros((1, kept), np.float32))
