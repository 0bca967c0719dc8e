"""All features of a window in numpy: the reference implementation, equal to tsfresh at 1e-9.

Channels are lanes: time runs along the first axis, every operation works on all channels at once,
and no reduction runs along a row.  Equality has these exceptions: p-values of a trend below about
1e-7 (closed form, exact to 1e-16 absolute), values that are zero up to rounding, series whose
offset is 1e9 times their spread (both sides lose the same digits), and the Dickey-Fuller test,
whose lag is fixed here (``table``).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from reveal_analyzer.arrays import Floats
from reveal_analyzer.features.autocorrelation import autocorrelation
from reveal_analyzer.features.changes import changes
from reveal_analyzer.features.counts import counts
from reveal_analyzer.features.moments import moments
from reveal_analyzer.features.prepared import Prepared, prepare
from reveal_analyzer.features.stationarity import stationarity
from reveal_analyzer.features.table import FEATURES, FeatureFamily
from reveal_analyzer.features.trend import trend

MIN_TICKS = 4

Calculator = Callable[[Prepared], tuple[Floats, ...]]


def calculators(adf_lag: int = 1) -> dict[FeatureFamily, Calculator]:
    """Return each family's calculator of rows (channels,), in the order of the table."""
    return {
        FeatureFamily.MOMENTS: moments,
        FeatureFamily.CHANGES: changes,
        FeatureFamily.COUNTS: counts,
        FeatureFamily.TREND: trend,
        FeatureFamily.AUTOCORRELATION: autocorrelation,
        FeatureFamily.STATIONARITY: lambda window: stationarity(window, adf_lag),
    }


def features(window: Floats, adf_lag: int = 1) -> Floats:
    """Compute every feature of every channel: (ticks, channels) to (features, channels).

    ``window`` is float64, C-contiguous, at least four ticks long.  A channel with a missing sample
    (NaN or infinite) has no features: all its rows are NaN.  Features that need a longer window are
    NaN too.
    """
    check_window(window)
    out = np.empty((len(FEATURES), window.shape[1]))
    with np.errstate(all="ignore"):
        prepared = prepare(window)
        row = 0
        for calculate in calculators(adf_lag).values():
            for values in calculate(prepared):
                out[row] = values
                row += 1
        out[:, ~np.isfinite(prepared.total)] = np.nan
    return out


def check_window(window: Floats) -> None:
    """Raise ``ValueError`` for an array that is no window."""
    if window.ndim != 2 or len(window) < MIN_TICKS:
        shape = "x".join(map(str, window.shape))
        raise ValueError(f"a window is {MIN_TICKS} or more ticks x channels, not {shape}")
    if window.dtype != np.float64 or not window.flags.c_contiguous:
        raise ValueError("a window is a C-contiguous array of float64 (ticks x channels)")
