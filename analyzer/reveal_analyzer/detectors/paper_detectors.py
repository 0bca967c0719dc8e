"""The paper's three detectors on the same windows: how many agree, and on what (section 4.3)."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from reveal_analyzer.arrays import Floats
from reveal_analyzer.detectors.base import Arrays, ScaledDetector
from reveal_analyzer.detectors.registry import METHODS, new_detectors
from reveal_analyzer.detectors.still_features import StillFeatures
from reveal_analyzer.detectors.threshold import Threshold, time_folds, validation_threshold
from reveal_analyzer.kernels import backend
from reveal_analyzer.kernels.scaler import Scaler

SCHEMA = 2
MIN_WINDOWS = 30


class ModelError(ValueError):
    """A stored model cannot be used; the message says why."""


@dataclass(frozen=True, slots=True)
class Contribution:
    """A feature column and its share of a method's score, 0 to 1."""

    column: int
    share: float


@dataclass(frozen=True, slots=True)
class MethodScore:
    """One detector on one window; ``top`` is filled if it agrees, largest share first."""

    name: str
    score: float
    threshold: float
    agrees: bool
    score_percent: int
    top: tuple[Contribution, ...] = ()


@dataclass(frozen=True, slots=True)
class MethodScores:
    """The three detectors on one window."""

    methods: tuple[MethodScore, ...]

    @property
    def agreeing(self) -> int:
        return sum(method.agrees for method in self.methods)


class _Window(NamedTuple):
    """One window: its features, how far still ones moved, and its scores without these."""

    features: Floats
    moved: Floats
    scores: Floats


class PaperDetectors:
    """Fits the three detectors on a reference of windows and scores others, deterministically.

    The reference is divided into ``parts`` stretches of time.  Each fold is fitted without one of
    them and scores that one; thresholds are percentiles of these validation scores, and the score
    of a new window is the mean over the folds.  No detector is fitted on all windows: its distances
    would be shorter than those that the threshold comes from (measured: with 60 windows of 400
    features, half of all healthy windows were misclassified).

    ``contamination`` is the share of healthy windows that may exceed a method's threshold,
    ``overlap`` the number of strides up to which two windows share samples, ``top`` the number of
    feature columns that a method names.
    """

    def __init__(
        self,
        *,
        contamination: float = 0.01,
        parts: int = 3,
        overlap: int = 2,
        top: int = 30,
        random_state: int = 0,
    ) -> None:
        self.contamination = contamination
        self.parts = parts
        self.overlap = overlap
        self.top = top
        self.random_state = random_state

    def fit(
        self,
        windows: Floats,
        times: NDArray[np.integer] | None = None,
        units: Floats | None = None,
    ) -> Self:
        """Learn from windows (n >= 30, features); ``times`` in strides, consecutive if not given.

        ``baseline_`` is the mean of every feature, NaN where it was never known.  ``units`` are
        the changes of features without variance that count as one spread.  Only those that stood
        still in the whole reference count: thresholds are of the varied features alone.
        """
        if len(windows) < MIN_WINDOWS:
            raise ValueError(f"a reference takes {MIN_WINDOWS} windows or more, not {len(windows)}")
        positions = np.arange(len(windows)) if times is None else times
        folds, validation = [], []
        for fit_on, left_out in time_folds(positions, self.parts, self.overlap):
            fold = DetectorFold.fit(windows[fit_on], self.random_state)
            validation.append(fold.scores(windows[left_out]))
            folds.append(fold)
        quantile = 1.0 - self.contamination
        self.thresholds_ = [
            validation_threshold(each, quantile) for each in np.concatenate(validation, axis=1)
        ]
        self.folds_, self._kept = folds, _mean_kept(folds)
        self.baseline_ = _known_mean(windows)
        self.still_ = StillFeatures.of(Scaler().fit(windows), units)
        return self

    def judge(self, windows: Floats) -> list[MethodScores]:
        """Return the scores of each method for each window (n, features)."""
        scores = np.mean([fold.scores(windows) for fold in self.folds_], axis=0)
        moved = self.still_.distances(windows)
        whole = list(scores)
        if moved.any():  # not in most windows
            detectors = self.folds_[0].detectors
            whole = [
                d.with_moved(s, moved, self._kept) for d, s in zip(detectors, scores, strict=True)
            ]
        return [
            self._scored(_Window(windows[row], moved[row], scores[:, row]), [s[row] for s in whole])
            for row in range(len(windows))
        ]

    def save(self, path: Path, layout: str = "") -> None:
        """Write the model as arrays (npz), completely or not at all.

        ``layout`` names the columns it was fitted on; ``load`` requires the same.
        """
        arrays: Arrays = {
            "schema": np.array(SCHEMA),
            "layout": np.array(layout),
            "members": np.array(len(self.folds_)),
            "baseline": self.baseline_,
            "thresholds": np.array([[each.value, each.center] for each in self.thresholds_]),
            "still.columns": self.still_.columns,
            "still.values": self.still_.values,
            "still.units": self.still_.units,
        }
        for number, fold in enumerate(self.folds_):
            arrays |= with_prefix(str(number), fold.to_arrays())
        part = path.with_name(path.name + ".part")
        with part.open("wb") as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]
        part.replace(path)

    def load(self, path: Path, layout: str = "") -> Self:
        """Load a saved model; raises ``ModelError`` or ``OSError``."""
        try:
            with np.load(path, allow_pickle=False) as file:
                arrays: Arrays = {name: file[name] for name in file.files}
            self._load_arrays(arrays, layout)
        except (ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile) as error:
            raise ModelError(f"{path}: not a usable model of detectors: {error}") from None
        return self

    def _scored(self, window: _Window, scores: list[float]) -> MethodScores:
        each = enumerate(zip(scores, self.thresholds_, strict=True))
        return MethodScores(
            tuple(
                self._method(method, float(score), limit, window) for method, (score, limit) in each
            )
        )

    def _method(self, method: int, score: float, limit: Threshold, window: _Window) -> MethodScore:
        agrees = score > limit.value
        top = self._top(method, window) if agrees else ()
        return MethodScore(METHODS[method], score, limit.value, agrees, limit.percent(score), top)

    def _top(self, method: int, window: _Window) -> tuple[Contribution, ...]:
        """Return the columns that contribute most, as shares of all contributions."""
        each = [fold.contributions(method, window.features[None])[0] for fold in self.folds_]
        positive = np.maximum(np.mean(each, axis=0), 0.0)
        positive[self.still_.columns] = (
            self.folds_[0]
            .detectors[method]
            .contributions_moved(
                window.scores[method : method + 1], window.moved[None], self._kept
            )[0]
        )
        count = min(self.top, int(np.count_nonzero(positive)))
        if not count:
            return ()
        largest = np.argpartition(-positive, count - 1)[:count]
        order = largest[np.lexsort((largest, -positive[largest]))]
        shares = positive[order] / positive.sum()
        return tuple(map(Contribution, order.tolist(), shares.tolist()))

    def _load_arrays(self, arrays: Arrays, layout: str) -> None:
        if int(arrays["schema"]) != SCHEMA:
            raise ValueError(f"its schema is not {SCHEMA}")
        if str(arrays["layout"]) != layout:
            raise ValueError("it was fitted on other columns")
        count = int(arrays["members"])
        folds = [
            DetectorFold.from_arrays(without_prefix(str(number), arrays)) for number in range(count)
        ]
        thresholds = [Threshold(*map(float, pair)) for pair in arrays["thresholds"]]
        if not folds or len(thresholds) != len(METHODS):
            raise ValueError(f"it has {count} members and {len(thresholds)} thresholds")
        if {(fold.scaler.features_,) for fold in folds} != {arrays["baseline"].shape}:
            raise ValueError("its members are not of one width")
        self.still_ = _still(arrays, arrays["baseline"].size)
        self.folds_, self._kept = folds, _mean_kept(folds)
        self.thresholds_, self.baseline_ = thresholds, arrays["baseline"]


def _mean_kept(folds: Sequence[DetectorFold]) -> float:
    """Return the mean number of varied features of the folds."""
    return float(np.mean([fold.scaler.kept_.size for fold in folds]))


def _known_mean(windows: Floats) -> Floats:
    known = np.isfinite(windows)
    with np.errstate(all="ignore"):
        return np.asarray(np.where(known, windows, 0.0).sum(0) / known.sum(0))


@dataclass(frozen=True)
class DetectorFold:
    """The three detectors, in the order of ``METHODS``, fitted on one part of a reference.

    They share one scaler, so windows are scaled once.
    """

    scaler: Scaler
    detectors: tuple[ScaledDetector, ...]

    @classmethod
    def fit(cls, windows: Floats, random_state: int) -> DetectorFold:
        scaler = Scaler().fit(windows)
        scaled = scaler.transform(windows)
        fitted = tuple(each.fit_scaled(scaled) for each in new_detectors(random_state))
        return cls(scaler, fitted)

    def scores(self, windows: Floats) -> Floats:
        """Return each method's score of each window, (methods, n)."""
        scaled = backend.current().transform(self.scaler, windows)
        return np.stack([detector.score_scaled(scaled) for detector in self.detectors])

    def contributions(self, method: int, windows: Floats) -> Floats:
        """Return what each feature adds to a method's score, (n, features)."""
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
            arrays |= with_prefix(name, detector.to_arrays())
        return arrays

    @classmethod
    def from_arrays(cls, arrays: Arrays) -> DetectorFold:
        """Restore what ``to_arrays`` returned.

        Raises ``KeyError``, ``TypeError`` or ``ValueError``.
        """
        scaler = _scaler(arrays)
        detectors = new_detectors(random_state=0)
        for name, detector in zip(METHODS, detectors, strict=True):
            detector.from_arrays(without_prefix(name, arrays), scaler.kept_.size)
        return cls(scaler, detectors)


def with_prefix(prefix: str, arrays: Arrays) -> Arrays:
    return {f"{prefix}.{name}": array for name, array in arrays.items()}


def without_prefix(prefix: str, arrays: Arrays) -> Arrays:
    """Return the arrays that ``with_prefix`` named, under their own names."""
    start = f"{prefix}."
    return {k.removeprefix(start): array for k, array in arrays.items() if k.startswith(start)}


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


def _still(arrays: Arrays, width: int) -> StillFeatures:
    columns, values, units = (arrays[f"still.{name}"] for name in ("columns", "values", "units"))
    if columns.ndim != 1 or not columns.shape == values.shape == units.shape:
        raise ValueError("its still features and their values are not of one length")
    if columns.size and not 0 <= columns.min() <= columns.max() < width:
        raise ValueError("it names still features that it does not have")
    return StillFeatures(columns, values, units)
