"""Seconds of a node as rows of rounded numbers: pure.

A number is a count of *steps*: a sixteenth of the amount that begins to matter (``quantum``), but
at least the unit of the wire.  A counter also has nine significant bits at most.  What is less than
that is noise, and would take most of the bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from reveal_analyzer.arrays import Bools, Floats, Floats32, Indices
from reveal_analyzer.derive.single_sample import ChannelKinds, single_sample
from reveal_analyzer.heartbeat.series import FINE
from reveal_contract import catalogue
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.metric import Kind
from reveal_contract.time_units import NS_PER_HOUR
from reveal_contract.wire import Message

STEPS_OF_QUANTUM = 16
SIGNIFICANT_BITS = 9
_LARGEST = float(2**62)
_MOST_SHARED = 1 << 16


class Row(NamedTuple):
    """A second: ``steps`` has a number for each of ``channels``, NaN where nothing was read."""

    boot: bytes
    sequence: int
    start_ns: int
    channels: tuple[Channel, ...]
    steps: Floats32

    @property
    def hour(self) -> int:
        """The hour since the epoch, by the node's clock."""
        return self.start_ns // NS_PER_HOUR


@dataclass(frozen=True, eq=False)
class RowPlan:
    """How slices of one channel table become rows.

    ``channels`` are those of the table but for the fine clocks of jobs, which have ten samples a
    second for step times, and what is skipped; their ``scale`` is the size of a step.
    """

    channels: tuple[Channel, ...]
    _fast: Indices
    _slow: Indices
    _kinds: ChannelKinds  # of the fast ones
    _ratio: Floats  # steps of one unit of the wire
    _limited: Bools

    @classmethod
    def of(cls, table: ChannelTable) -> RowPlan:
        """Return the plan of a table."""
        fast, slow = (
            np.array([index for index, each in enumerate(part) if _is_kept(each)], np.intp)
            for part in (table.fast, table.slow)
        )
        kept = [*(table.fast[index] for index in fast), *(table.slow[index] for index in slow)]
        channels = tuple(map(_in_steps, kept))
        ratios = [each.scale / own.scale for each, own in zip(kept, channels, strict=True)]
        return cls(
            channels, fast, slow, ChannelKinds.of(kept[: fast.size]), np.array(ratios, np.float64),
            np.array([each.kind is Kind.COUNTER for each in kept], np.bool_),
        )  # fmt: skip

    def row(self, message: Message) -> Row:
        """Return the row of a slice of the table."""
        fast, fast_missing = single_sample(
            message.fast[:, self._fast], message.fast_missing[:, self._fast], self._kinds
        )
        raw = np.concatenate([fast, message.slow[self._slow]])
        steps = _rounded(raw * self._ratio, self._limited).astype(np.float32)
        steps[: fast.size][fast_missing] = np.nan
        steps[fast.size :][message.slow_missing[self._slow]] = np.nan
        return Row(message.boot, message.sequence, message.start_ns, self.channels, steps)


def _is_kept(channel: Channel) -> bool:
    return channel.metric != FINE and not channel.is_skipped


@lru_cache(maxsize=_MOST_SHARED)
def _in_steps(channel: Channel) -> Channel:
    """Return one object for all tables: a table that changes has nearly the same channels."""
    return replace(channel, scale=step_of(channel), members=0)


def step_of(channel: Channel) -> float:
    """Return the size of a step of a channel in base units."""
    if channel.kind is Kind.STATE:
        return channel.scale
    try:
        quantum = catalogue.find(channel.metric).quantum
    except catalogue.UnknownMetricError:  # of a newer collector
        return channel.scale
    return max(channel.scale, quantum / STEPS_OF_QUANTUM)


def _rounded(steps: Floats, limited: Bools) -> Floats:
    """Return whole steps; ``limited`` ones have no more than ``SIGNIFICANT_BITS``."""
    steps = np.rint(np.clip(steps, -_LARGEST, _LARGEST))
    _, exponents = np.frexp(steps)
    unit = np.exp2(np.maximum(exponents - SIGNIFICANT_BITS, 0))
    rounded: Floats = np.where(limited, np.rint(steps / unit) * unit, steps)
    return rounded
