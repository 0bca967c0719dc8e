"""Features of a window as z-scores against the reference: what every detector works on."""

from __future__ import annotations

from typing import Self

import numpy as np

from reveal_analyzer.arrays import Floats, Floats32, Indices

_ROUNDING = 1e-12  # a spread below this share of the values is rounding, not variance


class Scaler:
    """Windows (n, features) to z-scores (n, kept features), float32.

    Features without variance in the reference are dropped (``kept_``): for these detectors
    only, other parts of the analyzer keep them.  What is missing (NaN, infinite) becomes the
    feature's mean, z = 0.  z is clipped: beyond some spreads "more" says nothing, and a
    near-constant feature would drown all others.
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
        self.features_ = windows.shape[1]
        self.kept_: Indices = np.flatnonzero(varied)
        self.mean_: Floats = mean[self.kept_]
        self.spread_: Floats = spread[self.kept_]
        return self

    def transform(self, windows: Floats) -> Floats32:
        """z-scores of windows (n, features) with the layout of the reference."""
        self.refuse(windows)
        with np.errstate(all="ignore"):
            z = (windows[:, self.kept_] - self.mean_) / self.spread_
            missing = ~np.isfinite(z)
            np.clip(z, -self.clip, self.clip, out=z)
        z[missing] = 0.0
        return z.astype(np.float32)

    def refuse(self, windows: Floats) -> None:
        """Raise ``ValueError`` for windows of another layout than the reference's."""
        if windows.ndim != 2 or windows.shape[1] != self.features_:
            shape = "x".join(map(str, windows.shape))
            raise ValueError(f"windows of {self.features_} features expected, not {shape}")

    def widen(self, kept: Floats) -> Floats:
        """Values of the kept features (n, kept) in their places among all (n, features)."""
        wide = np.zeros((len(kept), self.features_))
        wide[:, self.kept_] = kept
        return wide
