"""Windows from one-second slices: 3 s long, one per slice (paper, section 4.2)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import zstandard
from numpy.typing import NDArray

from reveal_analyzer.arrays import Bools, Floats, Ints
from reveal_contract import wire


@dataclass(frozen=True, eq=False)
class ChannelLayout:
    """Which channels of a table a window has, in its own order, and their scales.

    An index beyond the table's channels stands for a channel that is gone; it reads as missing.
    """

    indices: NDArray[np.intp]
    scale: Floats


@dataclass(frozen=True, eq=False)
class DecodedSlice:
    """The ticks of a second (ticks, the table's channels), and how to read them."""

    ticks: Ints
    missing: Bools
    layout: ChannelLayout

    @property
    def length(self) -> int:
        return len(self.ticks)

    def decoded(self) -> DecodedSlice:
        return self

    def values(self) -> Floats:
        """Return (ticks, the layout's channels) in base units, NaN where a sample is missing."""
        values = self.ticks.astype(np.float64)
        values[self.missing] = np.nan
        gone = np.full((len(values), 1), np.nan)
        return np.hstack([values, gone])[:, self.layout.indices] * self.layout.scale


@dataclass(frozen=True, eq=False)
class UndecodedSlice:
    """A slice as the bytes it was sent in, 3 to 10 % of the size, for rarely read windows."""

    data: bytes
    gauges: Bools
    length: int  # ticks
    layout: ChannelLayout

    def decoded(self) -> DecodedSlice:
        message = wire.decode(self.data, self.gauges)
        return DecodedSlice(message.fast, message.fast_missing, self.layout)


class WindowRing:
    """The last slices of one node.

    A window is complete once ``window_slices`` slices of the same length are consecutive; after a
    gap (``reset``) it fills again.
    """

    def __init__(self, window_slices: int = 3) -> None:
        if window_slices < 1:
            raise ValueError(f"a window has at least one slice, not {window_slices}")
        self._slices: deque[DecodedSlice | UndecodedSlice] = deque(maxlen=window_slices)

    @property
    def complete(self) -> bool:
        """Return whether there is a complete window."""
        return len(self._slices) == self._slices.maxlen

    def push(self, item: DecodedSlice | UndecodedSlice) -> None:
        """Add a slice; its arrays must not change later."""
        if self._slices and self._slices[-1].length != item.length:
            self.reset()
        self._slices.append(item)

    def window(self) -> Floats:
        """Return the window that ends with the last slice: (window_slices * ticks, channels).

        A new C-contiguous array, NaN where a sample is missing.
        """
        return np.ascontiguousarray(
            np.concatenate([item.decoded().values() for item in self._slices])
        )

    def reset(self) -> None:
        """Drop the slices before a gap, as no window may span it."""
        self._slices.clear()


class WarmupSlices:
    """The slices of a node's first windows, compressed to a tenth of their numbers."""

    def __init__(self, windows: int) -> None:
        self._left = windows
        self._kept: list[UndecodedSlice | _Packed | None] = []  # None is a gap

    @property
    def complete(self) -> bool:
        return self._left <= 0

    def add(self, item: DecodedSlice | UndecodedSlice, *, window: bool) -> None:
        """Keep a slice; ``window`` says whether it completes a window."""
        self._kept.append(item if isinstance(item, UndecodedSlice) else _Packed.of(item))
        self._left -= window

    def gap(self) -> None:
        """Note a gap, as no window may span it."""
        self._kept.append(None)

    def windows(self, ring: WindowRing) -> Iterator[Floats]:
        """Yield the windows again, through an empty ring of the same length."""
        for packed in self._kept:
            if packed is None:
                ring.reset()
                continue
            ring.push(packed.decoded())
            if ring.complete:
                yield ring.window()


@dataclass(frozen=True, eq=False)
class _Packed:
    shape: tuple[int, ...]
    ticks: bytes
    missing: Bools | None  # None in nearly all slices
    layout: ChannelLayout

    @classmethod
    def of(cls, item: DecodedSlice) -> _Packed:
        by_channel = np.ascontiguousarray(item.ticks.T)
        squeezed = zstandard.ZstdCompressor(level=1).compress(by_channel.tobytes())
        missing = item.missing if item.missing.any() else None
        return cls(by_channel.shape, squeezed, missing, item.layout)

    def decoded(self) -> DecodedSlice:
        data = zstandard.ZstdDecompressor().decompress(self.ticks)
        ticks = np.frombuffer(data, np.int64).reshape(self.shape).T
        missing = np.zeros(ticks.shape, np.bool_) if self.missing is None else self.missing
        return DecodedSlice(ticks, missing, self.layout)
