"""Scaled values as small integers, for a saved state.

Values are rounded to 1/256 of an asinh unit, 0.4 % of the value and a fortieth of the least spread
of a column, and saved as differences, most of which are small, so they compress well.
"""

from __future__ import annotations

import numpy as np

from reveal_analyzer.arrays import Floats16, Floats32, Ints16, Ints32

_STEPS = np.float32(256.0)  # per asinh unit
_MOST = 16_383  # half of the range of 16 bits, so that differences fit, too


def pack(values: Floats32, base: Floats32) -> Ints16:
    """Return values (..., columns) as differences from the ``base`` (columns)."""
    steps = np.clip(np.round((values - base) * _STEPS), -_MOST, _MOST)
    return steps.astype(np.int16)


def unpack(steps: Ints16 | Ints32, base: Floats32) -> Floats32:
    """Return the values (..., columns) of ``pack``."""
    values: Floats32 = steps.astype(np.float32) / _STEPS + base
    return values


def pack_quantiles(quantiles: Floats32) -> tuple[Floats32, Ints16]:
    """Return the middle (columns) and the differences of quantiles (columns, rows, 7)."""
    base = np.ascontiguousarray(quantiles[:, 0, quantiles.shape[-1] // 2])
    steps = pack(quantiles.transpose(2, 1, 0), base)
    return base, np.diff(steps, axis=0, prepend=np.int16(0))


def unpack_quantiles(base: Floats32, steps: Ints16) -> Floats32:
    """Return the quantiles (columns, rows, 7) of ``pack_quantiles``."""
    values = unpack(np.cumsum(steps, axis=0, dtype=np.int32), base)
    return np.ascontiguousarray(values.transpose(2, 1, 0))


def effective(own_excess: Floats32) -> Floats16:
    """Return own excess in half precision; below 1 it suppresses nothing and is 0."""
    return np.where(own_excess < 1.0, 0.0, own_excess).astype(np.float16)
