"""z-scores of window features against a reference: the input of every detector."""

from __future__ import annotations

from typing import Self

import numpy as np

from reveal_analyzer.arrays import Floats, Floats32, Indices

_ROUNDING = 1e-12  # a spread below this share of the values is rounding, not variance


class Scaler:
    """Scales windows (n, features) to z-scores (n, kept features), float32.

    ``kept_`` are the features that varied in the reference.  Those that were known and stood still
    are ``still_``, at the values ``still_mean_``: they have no z-score (see ``still_features``).
    Missing values (NaN, infinite) become the feature's mean, z = 0.  z is clipped: beyond some
    spreads a larger distance says nothing more, and a nearly constant feature would outweigh all
    others.
    """

    def __init__(self, *, clip: float = 8.0) -> None:
        self.clip = clip

    def fit(self, windows: Floats) -> Self:
        """Learn mean and spread of every feature; needs at least two windows."""
        if windows.ndim != 2 or len(windows) < 2:
            shape = "x".join(map(str, windows.shape))
            raise ValueError(f"a reference is two or more windows x features, not {shape}")
        known = np.isfinite(windows)
        count = known.sum(0)
        values = np.where(known, windows, 0.0)
        with np.errstate(all="ignore"):
            mean = values.sum(0) / count
            values -= mean
            values[~known] = 0.0
            spread = np.sqrt(np.einsum("ij,ij->j", values, values) / count)
            varied = (count >= 2) & (spread > _ROUNDING * np.abs(mean)) & np.isfinite(spread)
            still = (count >= 2) & ~varied & np.isfinite(mean) & np.isfinite(spread)
        self.features_ = windows.shape[1]
        self.kept_: Indices = np.flatnonzero(varied)
        self.mean_: Floats = mean[self.kept_]
        self.spread_: Floats = spread[self.kept_]
        self.still_: Indices = np.flatnonzero(still)
        self.still_mean_: Floats = mean[self.still_]
        return self

    def transform(self, windows: Floats) -> Floats32:
        """Return z-scores of windows (n, features) with the layout of the reference."""
        self.check_layout(windows)
        with np.errstate(all="ignore"):
            z = (windows[:, self.kept_] - self.mean_) / self.spread_
            missing = ~np.isfinite(z)
            np.clip(z, -self.clip, self.clip, out=z)
        z[missing] = 0.0
        return z.astype(np.float32)

    def check_layout(self, windows: Floats) -> None:
        """Raise ``ValueError`` for windows with another number of features than the reference."""
        if windows.ndim != 2 or windows.shape[1] != self.features_:
            shape = "x".join(map(str, windows.shape))
            raise ValueError(f"windows of {self.features_} features expected, not {shape}")

    def widen(self, kept: Floats) -> Floats:
        """Place values of the kept features (n, kept) into rows of all features (n, features)."""
        wide = np.zeros((len(kept), self.features_))
        wide[:, self.kept_] = kept
        return wide
