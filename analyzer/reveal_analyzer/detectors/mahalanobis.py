"""Mahalanobis distance in the principal components that keep 95 % of variance (paper, 4.3)."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from reveal_analyzer.arrays import Floats, Floats32
from reveal_analyzer.detectors.base import Arrays, ScaledDetector


class Mahalanobis(ScaledDetector):
    """Distance of a window's projection to the centroid of the reference.

    ``whitening_`` (features, components) divides each principal axis by its standard deviation
    (population, ddof 0), so the squared distance is the squared length of the projection.
    ``single`` stores and multiplies it in float32, which halves memory and time.
    """

    def __init__(
        self, *, clip: float = 8.0, variance_kept: float = 0.95, single: bool = True
    ) -> None:
        super().__init__(clip=clip)
        self.variance_kept = variance_kept
        self.single = single

    def fit_scaled(self, scaled: Floats32) -> Self:
        dtype = np.dtype(np.float32 if self.single else np.float64)
        center = np.asarray(scaled.mean(0, dtype=np.float64))
        centered: NDArray[Any] = (scaled - center).astype(dtype)
        axes, variances = _principal_axes(centered, self.variance_kept)
        self.whitening_: NDArray[Any] = np.ascontiguousarray(axes / np.sqrt(variances), dtype)
        self.offset_: NDArray[Any] = (center @ self.whitening_).astype(dtype)
        self.center_ = center
        return self

    def score_scaled(self, scaled: Floats32) -> Floats:
        projected = self._project(scaled)
        return np.asarray(np.linalg.norm(projected, axis=1), np.float64)

    def contributions_scaled(self, scaled: Floats32) -> Floats:
        """Return each feature's part of the *squared* distance; some parts are negative."""
        back = self._project(scaled) @ self.whitening_.T
        return np.asarray((scaled - self.center_) * back, np.float64)

    def score_moved(self, scores: Floats, moved: Floats, kept: float) -> Floats:
        """Return the distance in the components and the features that moved.

        What stood still is part of no component: each such feature is an axis of its own.
        """
        return np.asarray(np.sqrt(scores**2 + (moved**2).sum(1)))

    def contributions_moved(self, scores: Floats, moved: Floats, kept: float) -> Floats:
        return np.asarray(moved**2)

    def to_arrays(self) -> Arrays:
        return {"whitening": self.whitening_, "offset": self.offset_, "centre": self.center_}

    def from_arrays(self, arrays: Arrays, width: int) -> Self:
        whitening, offset, center = (arrays[name] for name in ("whitening", "offset", "centre"))
        if whitening.shape != (width, offset.size) or center.shape != (width,):
            raise ValueError(f"its axes do not have {width} features")
        self.whitening_, self.offset_, self.center_ = whitening, offset, center
        return self

    def _project(self, scaled: Floats32) -> NDArray[Any]:
        return np.asarray(scaled.astype(self.whitening_.dtype) @ self.whitening_ - self.offset_)


def _principal_axes(centered: NDArray[Any], variance_kept: float) -> tuple[NDArray[Any], Floats]:
    """Return axes (features, k) and variances (k,) of the fewest components that keep the share.

    Uses the smaller of covariance and Gram matrix, as both have the same non-zero eigenvalues.
    """
    n, width = centered.shape
    by_window = n < width
    matrix = centered @ centered.T if by_window else centered.T @ centered
    values, vectors = np.linalg.eigh(matrix.astype(np.float64) / n)
    values, vectors = values[::-1], vectors[:, ::-1]
    whole = max(float(values.sum()), np.finfo(np.float64).tiny)
    share = np.cumsum(values) / whole
    keep = min(int(np.searchsorted(share, variance_kept)) + 1, len(values))
    keep = int((values[:keep] > 1e-6 * whole / max(1, len(values))).sum())
    values, vectors = values[:keep], vectors[:, :keep]
    if by_window:  # turn eigenvectors of the Gram matrix into those of the covariance
        vectors = centered.T @ (vectors / np.sqrt(values * n)).astype(centered.dtype)
    return vectors, values
