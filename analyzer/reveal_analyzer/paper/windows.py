"""Windows from one-second slices: 3 s long and 1 s apart by default (paper, section 4.2)."""

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

    A window is complete once ``window_slices`` slices of the same length are consecutive, and then
    every ``stride_slices``; after a gap (``reset``) it fills again.
    """

    def __init__(self, window_slices: int = 3, stride_slices: int = 1) -> None:
        if window_slices < 1 or stride_slices < 1:
            raise ValueError(
                "window and stride have at least one slice,"
                f" not {window_slices} and {stride_slices}"
            )
        self._slices: deque[DecodedSlice | UndecodedSlice] = deque(maxlen=window_slices)
        self._stride, self._since = stride_slices, 0

    @property
    def complete(self) -> bool:
        """Return whether a window ends with the last slice."""
        return len(self._slices) == self._slices.maxlen and self._since == 0

    def push(self, item: DecodedSlice | UndecodedSlice) -> None:
        """Add a slice; its arrays must not change later."""
        if self._slices and self._slices[-1].length != item.length:
            self.reset()
        was_full = len(self._slices) == self._slices.maxlen
        self._since = (self._since + 1) % self._stride if was_full else 0
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
        self._since = 0


class WarmupSlices:
    """The slices of every ``every``-th window of a warm-up, compressed to a tenth of their numbers.

    It is complete with ``windows`` windows of ``length`` slices.
    """

    def __init__(self, windows: int, length: int, every: int = 1) -> None:
        self._left, self._every = windows, every
        self._recent: deque[DecodedSlice | UndecodedSlice] = deque(maxlen=length)
        self._count = 0  # windows
        self._since = 0  # slices after the last window that is kept
        self._kept: list[UndecodedSlice | _Packed | None] = []  # None is a gap

    @property
    def complete(self) -> bool:
        return self._left <= 0

    def add(self, item: DecodedSlice | UndecodedSlice, *, window: bool) -> None:
        """Take a slice; ``window`` says whether it completes a window."""
        self._recent.append(item)
        self._since += 1
        if not window:
            return
        self._count += 1
        if (self._count - 1) % self._every == 0:
            self._keep()

    def gap(self) -> None:
        """Note a gap, as no window may span it."""
        self._recent.clear()
        self._since = 0
        self._kept.append(None)

    def windows(self, stride: int = 1) -> Iterator[Floats]:
        """Yield the windows again; ``stride`` is that of the ring that they came from."""
        length = self._recent.maxlen or 1
        ring = WindowRing(length, min(stride * self._every, length))
        for packed in self._kept:
            if packed is None:
                ring.reset()
                continue
            ring.push(packed.decoded())
            if ring.complete:
                yield ring.window()

    def _keep(self) -> None:
        """Keep the slices of the window that ends now, as far as they are not kept yet."""
        own = list(self._recent)
        if self._since > len(own):
            self._kept.append(None)  # slices are left out
        else:
            own = own[len(own) - self._since :]
        self._kept += [
            item if isinstance(item, UndecodedSlice) else _Packed.of(item) for item in own
        ]
        self._left -= 1
        self._since = 0


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
