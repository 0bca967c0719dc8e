"""From one-second slices to windows: 3 s long, one a slice (paper, section 4.2)."""

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
class Layout:
    """Which channels of a table a window has, in its own order, and their scales.

    ``places`` beyond the table's channels are of channels that are gone: they read as missing.
    """

    places: NDArray[np.intp]
    scale: Floats


@dataclass(frozen=True, eq=False)
class Slice:
    """The ticks of a second (ticks, the table's channels), and how to read them."""

    ticks: Ints
    missing: Bools
    layout: Layout

    @property
    def length(self) -> int:
        return len(self.ticks)

    def opened(self) -> Slice:
        return self

    def values(self) -> Floats:
        """(ticks, the layout's channels) in base units, NaN where a sample is missing."""
        values = self.ticks.astype(np.float64)
        values[self.missing] = np.nan
        gone = np.full((len(values), 1), np.nan)
        return np.hstack([values, gone])[:, self.layout.places] * self.layout.scale


@dataclass(frozen=True, eq=False)
class Sealed:
    """The same as the bytes it came in: a tenth to a thirtieth, for a look that is seldom taken."""

    data: bytes
    gauges: Bools
    length: int  # ticks
    layout: Layout

    def opened(self) -> Slice:
        message = wire.decode(self.data, self.gauges)
        return Slice(message.fast, message.fast_missing, self.layout)


class WindowRing:
    """The last slices of one node.

    A window is complete once ``window_slices`` slices of the same length followed each other;
    after a gap (``reset``) it fills again.
    """

    def __init__(self, window_slices: int = 3) -> None:
        if window_slices < 1:
            raise ValueError(f"a window has at least one slice, not {window_slices}")
        self._slices: deque[Slice | Sealed] = deque(maxlen=window_slices)

    @property
    def complete(self) -> bool:
        """Whether there is a window."""
        return len(self._slices) == self._slices.maxlen

    def push(self, one: Slice | Sealed) -> None:
        """Take a slice; its arrays must not be changed later."""
        if self._slices and self._slices[-1].length != one.length:
            self.reset()
        self._slices.append(one)

    def window(self) -> Floats:
        """The window that ends with the last slice: (window_slices * ticks, channels).

        A new C-contiguous array, NaN where a sample is missing.
        """
        return np.ascontiguousarray(np.concatenate([one.opened().values() for one in self._slices]))

    def reset(self) -> None:
        """Forget the slices before a gap: no window may span it."""
        self._slices.clear()


class WarmUp:
    """The slices of a node's first windows, compressed: a tenth of what the numbers take."""

    def __init__(self, windows: int) -> None:
        self._left = windows
        self._kept: list[Sealed | _Packed | None] = []  # None is a gap

    @property
    def complete(self) -> bool:
        return self._left <= 0

    def take(self, one: Slice | Sealed, *, window: bool) -> None:
        """Keep a slice; ``window`` says that it completes one."""
        self._kept.append(one if isinstance(one, Sealed) else _Packed.of(one))
        self._left -= window

    def gap(self) -> None:
        """No window may span what is before and after this."""
        self._kept.append(None)

    def windows(self, ring: WindowRing) -> Iterator[Floats]:
        """The windows once more, by an empty ring of the length they had."""
        for packed in self._kept:
            if packed is None:
                ring.reset()
                continue
            ring.push(packed.opened())
            if ring.complete:
                yield ring.window()


@dataclass(frozen=True, eq=False)
class _Packed:
    shape: tuple[int, ...]
    ticks: bytes
    missing: Bools | None  # nearly always none is
    layout: Layout

    @classmethod
    def of(cls, one: Slice) -> _Packed:
        by_channel = np.ascontiguousarray(one.ticks.T)
        squeezed = zstandard.ZstdCompressor(level=1).compress(by_channel.tobytes())
        missing = one.missing if one.missing.any() else None
        return cls(by_channel.shape, squeezed, missing, one.layout)

    def opened(self) -> Slice:
        data = zstandard.ZstdDecompressor().decompress(self.ticks)
        ticks = np.frombuffer(data, np.int64).reshape(self.shape).T
        missing = np.zeros(ticks.shape, np.bool_) if self.missing is None else self.missing
        return Slice(ticks, missing, self.layout)
