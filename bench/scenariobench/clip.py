"""Clips: short stretches of recorded telemetry as arrays, each healthy or with one known fault."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.metric import Subsystem

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


class Frame(NamedTuple):
    """One second of a node: the values of the channels of ``table``, and which are missing.

    ``fast`` is (ticks, fast channels), ``slow`` (slow channels,), both raw integers of the wire.
    """

    table: ChannelTable
    fast: Ints
    slow: Ints
    fast_missing: Bools
    slow_missing: Bools


@dataclass(frozen=True)
class RecordedFault:
    """The fault in a clip; times are seconds from the start of the clip."""

    name: str
    kind: str
    weak: bool
    subsystems: frozenset[Subsystem]
    subject: str | None  # instance of the cgroup at fault, None where no process is
    onset: float
    offset: float

    @property
    def first(self) -> int:
        """The second in which the fault begins."""
        return int(self.onset)

    @property
    def last(self) -> int:
        """The second in which the fault ends."""
        return int(self.offset)


@dataclass(frozen=True)
class Clip:
    """Consecutive seconds of one host.

    ``fast`` is (seconds, ticks, fast channels), ``slow`` (seconds, slow channels); the masks of
    missing values have the same shapes.  ``present`` (seconds, fast + slow channels) says which
    channels the table of a second has.
    """

    name: str
    workload: str
    tick_us: int
    channels: ChannelTable
    fast: Ints
    slow: Ints
    fast_missing: Bools
    slow_missing: Bools
    present: Bools
    fault: RecordedFault | None = None

    def __len__(self) -> int:
        return len(self.fast)

    @cached_property
    def _columns(self) -> list[tuple[ChannelTable, NDArray[np.intp], NDArray[np.intp]]]:
        """The table of each second, and the indices of its channels."""
        known: dict[bytes, tuple[ChannelTable, NDArray[np.intp], NDArray[np.intp]]] = {}
        width = len(self.channels.fast)
        for row in self.present:
            key = row.tobytes()
            if key not in known:
                fast, slow = np.flatnonzero(row[:width]), np.flatnonzero(row[width:])
                known[key] = subtable(self.channels, fast, slow), fast, slow
        return [known[row.tobytes()] for row in self.present]

    def frame(self, second: int) -> Frame:
        """Return one second as it was recorded."""
        table, fast, slow = self._columns[second]
        return Frame(
            table,
            self.fast[second][:, fast],
            self.slow[second][slow],
            self.fast_missing[second][:, fast],
            self.slow_missing[second][slow],
        )

    def part(self, start: int, stop: int, name: str) -> Clip:
        """Return some of the seconds as another clip, without the fault."""
        window = slice(start, stop)
        return replace(
            self, name=name, fast=self.fast[window], slow=self.slow[window],
            fast_missing=self.fast_missing[window], slow_missing=self.slow_missing[window],
            present=self.present[window], fault=None,
        )  # fmt: skip


def subtable(
    table: ChannelTable,
    fast: Sequence[int] | NDArray[np.intp],
    slow: Sequence[int] | NDArray[np.intp],
) -> ChannelTable:
    """Return the table with these channels only."""
    return table_of(
        tuple(table.fast[index] for index in fast), tuple(table.slow[index] for index in slow)
    )


@lru_cache(maxsize=512)
def table_of(fast: tuple[Channel, ...], slow: tuple[Channel, ...]) -> ChannelTable:
    """Return one object for equal tables, so that its key is computed once."""
    return ChannelTable(fast, slow)


def clip_of(
    name: str, workload: str, frames: Sequence[Frame], tick_us: int,
    fault: RecordedFault | None = None,
) -> Clip:  # fmt: skip
    """Return the clip with these seconds, whose tables may differ."""
    fast = tuple(dict.fromkeys(channel for each in frames for channel in each.table.fast))
    slow = tuple(dict.fromkeys(channel for each in frames for channel in each.table.slow))
    seconds, ticks = len(frames), len(frames[0].fast)
    clip = Clip(
        name, workload, tick_us, ChannelTable(fast, slow),
        np.zeros((seconds, ticks, len(fast)), np.int64), np.zeros((seconds, len(slow)), np.int64),
        np.zeros((seconds, ticks, len(fast)), np.bool_), np.zeros((seconds, len(slow)), np.bool_),
        np.zeros((seconds, len(fast) + len(slow)), np.bool_), fault,
    )  # fmt: skip
    positions: dict[bytes, tuple[list[int], list[int]]] = {}
    fast_index = {channel: index for index, channel in enumerate(fast)}
    slow_index = {channel: index for index, channel in enumerate(slow)}
    for second, frame in enumerate(frames):
        key = frame.table.key
        if key not in positions:
            positions[key] = (
                [fast_index[channel] for channel in frame.table.fast],
                [slow_index[channel] for channel in frame.table.slow],
            )
        _fill(clip, second, frame, *positions[key])
    return clip


def _fill(clip: Clip, second: int, frame: Frame, fast: list[int], slow: list[int]) -> None:
    clip.fast[second][:, fast] = np.where(frame.fast_missing, 0, frame.fast)
    clip.slow[second][slow] = np.where(frame.slow_missing, 0, frame.slow)
    clip.fast_missing[second][:, fast] = frame.fast_missing
    clip.slow_missing[second][slow] = frame.slow_missing
    clip.present[second, fast] = True
    clip.present[second, [len(clip.channels.fast) + index for index in slow]] = True
