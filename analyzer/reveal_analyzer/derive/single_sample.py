"""One sample for all ticks of a slice: pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from reveal_analyzer.arrays import Bools, Ints
from reveal_contract.channels import Channel
from reveal_contract.metric import Kind


class ChannelKinds(NamedTuple):
    """Which channels are counters, and which are states; the others are gauges."""

    counters: Bools
    states: Bools

    @classmethod
    def of(cls, channels: Sequence[Channel]) -> ChannelKinds:
        """Return the kinds of channels, in their order."""
        kinds = [channel.kind for channel in channels]
        counters, states = (
            np.array([kind is each for kind in kinds], np.bool_)
            for each in (Kind.COUNTER, Kind.STATE)
        )
        return cls(counters, states)


def single_sample(ticks: Ints, missing: Bools, kinds: ChannelKinds) -> tuple[Ints, Bools]:
    """Return the sample of each channel of ``ticks`` (ticks, channels), and which are missing.

    A counter has the sum of its ticks, a gauge their mean, a state its last one.  What is missing
    of a counter counts as the mean of the others.
    """
    count = len(ticks)
    if not missing.any():
        sample = ticks.sum(axis=0)
        gauges = ~kinds.counters
        sample[gauges] = np.rint(ticks[:, gauges].mean(axis=0))
        sample[kinds.states] = ticks[-1, kinds.states]
        return sample, np.zeros(len(sample), np.bool_)
    read = ~missing
    present = read.sum(axis=0)
    total = np.where(read, ticks, 0).sum(axis=0)
    mean = total / np.maximum(present, 1)
    sample = np.rint(np.where(kinds.counters, mean * count, mean)).astype(np.int64)
    whole = kinds.counters & (present == count)
    sample[whole] = total[whole]  # exact beyond 2**53
    states = np.flatnonzero(kinds.states)
    last = count - 1 - np.argmax(read[::-1], axis=0)
    sample[states] = ticks[last[states], states]
    return sample, present == 0
