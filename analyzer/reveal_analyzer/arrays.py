"""Names of the numpy array types that annotations use, and a cheap look for missing values."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Floats32 = NDArray[np.float32]
Floats16 = NDArray[np.float16]
Complexes = NDArray[np.complex128]
Ints = NDArray[np.int64]
Ints32 = NDArray[np.int32]
Ints16 = NDArray[np.int16]
Ints8 = NDArray[np.int8]
Bytes = NDArray[np.uint8]
Unsigned = NDArray[np.unsignedinteger[Any]]
Bools = NDArray[np.bool_]
Indices = NDArray[np.intp]


def has_nan(values: Floats) -> bool:
    """Return whether a value of one row is missing (NaN).

    Squares are not negative, so that their sum is NaN only then.  It is one call for what is asked
    several times in each second of a node.
    """
    return math.isnan(values.dot(values))
