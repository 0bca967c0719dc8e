"""From one-second slices to windows: 3 s long, one a slice (paper, section 4.2)."""

from __future__ import annotations

from collections import deque

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class WindowRing:
    """The last slices of one node.

    A window is complete once ``window_slices`` slices of the same layout followed each other;
    after a gap (``reset``) or a change of layout it fills again.
    """

    def __init__(self, window_slices: int = 3) -> None:
        if window_slices < 1:
            raise ValueError(f"a window has at least one slice, not {window_slices}")
        self._slices: deque[Floats] = deque(maxlen=window_slices)

    def push(self, values: Floats) -> Floats | None:
        """Take a slice (ticks, channels), NaN where a sample is missing.

        Gives the window that ends with it (window_slices * ticks, channels), a new C-contiguous
        array, or ``None`` while there are too few slices.  The slice must not be changed later.
        """
        if self._slices and self._slices[-1].shape != values.shape:
            self.reset()
        self._slices.append(values)
        if len(self._slices) < (self._slices.maxlen or 0):
            return None
        return np.ascontiguousarray(np.concatenate(self._slices), np.float64)

    def reset(self) -> None:
        """Forget the slices before a gap: no window may span it."""
        self._slices.clear()
