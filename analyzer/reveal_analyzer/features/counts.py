"""Counted features: samples above the mean, runs, crossings, peaks."""

from __future__ import annotations

import numpy as np

from reveal_analyzer.features.prepared import Bools, Floats, Prepared


def counts(window: Prepared) -> tuple[Floats, ...]:
    """Samples above the mean, longest run above it, crossings of 0, peaks of support 1 and 3."""
    above = window.values > window.mean
    positive = window.values > 0.0
    return (
        above.sum(0, dtype=np.float64),
        _longest_run(above),
        (positive[1:] != positive[:-1]).sum(0, dtype=np.float64),
        _peaks(window.values, 1),
        _peaks(window.values, 3),
    )


def _longest_run(above: Bools) -> Floats:
    """Each tick's distance from the last tick not above; the largest is the longest run."""
    ticks = np.arange(len(above), dtype=np.int32)[:, None]
    last_below = np.maximum.accumulate(np.where(above, np.int32(-1), ticks), axis=0)
    return np.asarray((ticks - last_below).max(0), np.float64)


def _peaks(values: Floats, support: int) -> Floats:
    """Samples greater than each of ``support`` neighbours on both sides; edges never are."""
    ticks, channels = values.shape
    end = ticks - support
    if end <= support:
        return np.zeros(channels)
    inner = values[support:end]
    peak = np.ones(inner.shape, np.bool_)
    for distance in range(1, support + 1):
        peak &= inner > values[support - distance : end - distance]
        peak &= inner > values[support + distance : end + distance]
    return np.asarray(peak.sum(0), np.float64)
