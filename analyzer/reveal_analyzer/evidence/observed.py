"""The values of each channel in the seconds around the onset of a finding: pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from reveal_analyzer.arrays import Floats, Ints
from reveal_analyzer.derive.columns import ColumnPlan, column_plan
from reveal_analyzer.derive.deriver import Deriver
from reveal_contract import catalogue
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.wire import Message

_FLOOR = 1e-9


@dataclass(frozen=True, eq=False)
class ObservedChannels:
    """Seconds of a node with one channel table: ``values`` (seconds, channels) in base units."""

    plan: ColumnPlan
    times_ns: Ints
    values: Floats

    @classmethod
    def of(
        cls, slices: Iterable[tuple[Message, ChannelTable]], table: ChannelTable
    ) -> ObservedChannels:
        """Return the seconds of the slices that have this table."""
        deriver = Deriver(_none)
        seconds = [
            deriver.second(message, each) for message, each in slices if each.key == table.key
        ]
        plan = seconds[0].plan if seconds else column_plan(table)
        values = np.array([second.channels for second in seconds], np.float64)
        return cls(
            plan,
            np.array([second.start_ns for second in seconds], np.int64),
            values.reshape(len(seconds), len(plan.channels)),
        )

    @property
    def channels(self) -> Sequence[Channel]:
        """The channels of the table, fast ones first."""
        return self.plan.channels

    def means(self) -> Floats:
        """Return the mean of each channel; 0 where nothing was read."""
        read = np.isfinite(self.values)
        total = np.where(read, self.values, 0.0).sum(axis=0)
        mean: Floats = total / np.maximum(read.sum(axis=0), 1)
        return mean

    def departures(self, onset_ns: int) -> Floats:
        """Return how far each channel left its level from before the onset.

        The unit is its deviation before the onset, but at least the amount that begins to matter
        (``quantum``).  It is 0 where there is nothing to compare.
        """
        before, since = (
            self.values[part] for part in (self.times_ns < onset_ns, self.times_ns >= onset_ns)
        )
        if not len(before) or not len(since):
            return np.zeros(len(self.channels))
        level = np.median(before, axis=0)
        deviation = np.median(np.abs(before - level), axis=0)
        quanta = np.array([_quantum(channel) for channel in self.channels])
        distance = np.abs(since.mean(axis=0) - level) / np.maximum(deviation, quanta)
        known: Floats = np.nan_to_num(distance, nan=0.0, posinf=0.0)
        return known


def _quantum(channel: Channel) -> float:
    try:
        return max(catalogue.find(channel.metric).quantum, _FLOOR)
    except catalogue.UnknownMetricError:  # of a newer collector
        return float("inf")


def _none(channel: Channel) -> bool:
    """Leave out no channel; plans with such a rule are not shared with the analysis' thread."""
    return False
