"""The time of requests of a node's disks, each request counted once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from reveal_analyzer.arrays import Floats, Indices
from reveal_analyzer.derive.channel_index import indices_of
from reveal_analyzer.derive.disk_layers import lowest_disks
from reveal_contract.channels import Channel
from reveal_contract.time_units import NS_PER_SECOND


def disk_channels(channels: Sequence[Channel], *metrics: str) -> list[Indices]:
    """Return the channels of each metric, of the disks that have all of these metrics.

    Disks that repeat the requests of others are left out.
    """
    by_disk = [
        {channels[index].instance: index for index in indices_of(channels, metric)}
        for metric in metrics
    ]
    disks = lowest_disks(sorted(set.intersection(*map(set, by_disk))))
    return [np.array([found[disk] for disk in disks], np.intp) for found in by_disk]


def requests_seconds(values: Floats, indices: Indices) -> float:
    """Return the time of requests in seconds, summed over the disks where it is known."""
    times: list[float] = values[indices].tolist()
    return sum(time for time in times if time == time) / NS_PER_SECOND  # noqa: PLR0124 - not NaN
