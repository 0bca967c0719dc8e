"""Made-up clips for the tests of the scenario bench: few channels, values that are easy to add."""

from __future__ import annotations

import numpy as np

from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.metric import Kind, Lane, Subsystem
from scenariobench.clip import Clip, RecordedFault

SWITCHES = Channel("cpu.context_switches", "", Kind.COUNTER, 1.0, Lane.FAST)
PRESSURE = Channel("cpu.pressure.some", "", Kind.COUNTER, 1000.0, Lane.FAST)
CACHED = Channel("memory.cached", "", Kind.GAUGE, 1024.0, Lane.SLOW)
USAGE = Channel("cpu.subject.usage", "/fault", Kind.COUNTER, 1.0, Lane.FAST)
TICKS = 10


def healthy(name: str = "train-base-one", seconds: int = 20, cached: int = 500) -> Clip:
    """10 switches and 2,000 us of pressure a tick, a level of ``cached``."""
    table = ChannelTable((SWITCHES, PRESSURE), (CACHED,))
    fast = np.zeros((seconds, TICKS, 2), np.int64)
    fast[:, :, 0], fast[:, :, 1] = 10, 2000
    return Clip(
        name, "train", 100_000, table, fast, np.full((seconds, 1), cached, np.int64),
        np.zeros((seconds, TICKS, 2), np.bool_), np.zeros((seconds, 1), np.bool_),
        np.ones((seconds, 3), np.bool_),
    )  # fmt: skip


def faulty(onset: float = 5.25, offset: float = 15.5, cached: int = 900) -> Clip:
    """50 switches more a tick from the onset on, and a cgroup that is there only meanwhile."""
    seconds = 25
    table = ChannelTable((SWITCHES, PRESSURE, USAGE), (CACHED,))
    fast = np.zeros((seconds, TICKS, 3), np.int64)
    fast[:, :, 0], fast[:, :, 1] = 10, 2000
    first, last = int(onset), int(offset)
    fast[first:last, :, 0] += 50
    fast[first:last, :, 2] = 1_000_000
    present = np.ones((seconds, 4), np.bool_)
    present[:first, 2] = present[last + 1 :, 2] = False
    return Clip(
        "one-storm", "train", 100_000, table, fast, np.full((seconds, 1), cached, np.int64),
        np.zeros((seconds, TICKS, 3), np.bool_), np.zeros((seconds, 1), np.bool_), present,
        RecordedFault(
            "storm", "storm", False, frozenset({Subsystem.CPU}), "/fault", onset, offset
        ),
    )  # fmt: skip
