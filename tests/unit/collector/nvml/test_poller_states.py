"""States of a second: each slice gets the counts of exactly one second."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from reveal_collector.nvml.poller import NvmlPoller
from reveal_collector.nvml.query_budget import QUICK_NS
from reveal_collector.nvml.snapshots import STATE
from reveal_collector.readers.source import Roots
from reveal_contract.time_units import NS_PER_SECOND
from support.fake_nvml import Script

MS = 1_000_000
SECONDS = 40
SETTLED = 3  # reads until the states are away from them


class Driver:
    """A poller and a slice a second, both of whose threads wake up some milliseconds late."""

    def __init__(self, script: Script) -> None:
        self._script, self._random = script, random.Random(1)
        self._now = 1000 * NS_PER_SECOND
        self.reads: list[int] = []
        self._poller = NvmlPoller(Roots(), clock=lambda: self._now)
        self._count(0)
        self._poller.open()

    def second(self, number: int, phase_ns: int) -> None:
        """Run ten rounds, with a read at about the phase; the counter is one more."""
        self._count(number)
        start = (1000 + number) * NS_PER_SECOND
        planned = [start + tick * QUICK_NS for tick in range(10)]
        events = [(self._late(each), each) for each in planned]
        for now, round_ns in sorted([*events, (self._late(start + phase_ns), None)]):
            self._now = now
            if round_ns is None:
                self._read()
            else:
                self._poller.run_round(round_ns)

    def _count(self, number: int) -> None:
        self._script.change({"0.field.74": number})

    def _late(self, planned_ns: int) -> int:
        return planned_ns + self._random.randrange(5 * MS)

    def _read(self) -> None:
        self._poller.state_read_ns = self._now
        snapshot = self._poller.snapshots[STATE]
        value = snapshot.values[snapshot.keys.index(("gpu.throttled_time.power", "0"))]
        assert value is not None
        self.reads.append(value)


@pytest.mark.parametrize("phase_ms", [0, 100, 250, 500, 750, 900])
def test_each_slice_has_the_counts_of_a_second(script: Script, phase_ms: int) -> None:
    driver = Driver(script)
    for number in range(1, SECONDS):
        driver.second(number, phase_ms * MS)
    settled = driver.reads[SETTLED:]
    assert {after - before for before, after in pairwise(settled)} == {1}
