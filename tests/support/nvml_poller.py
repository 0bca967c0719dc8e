"""The thread that asks the driver, without the thread: rounds by hand, on a clock set by hand."""

from __future__ import annotations

import time
from typing import Any

from reveal_collector.nvml.poller import NvmlPoller
from reveal_collector.nvml.query_budget import QUICK_NS
from reveal_collector.nvml.snapshots import STATE
from reveal_collector.readers.source import Roots
from reveal_contract.time_units import NS_PER_SECOND

Figures = dict[tuple[str, str], int | None]


class SteppedPoller:
    """A poller whose rounds are made by hand, on a clock that is set by hand.

    ``timed``: the clock also advances by the real duration of calls.
    """

    def __init__(self, roots: Roots | None = None, timed: bool = False, **options: Any) -> None:
        self.now = 1000 * NS_PER_SECOND
        self._began = time.perf_counter_ns() if timed else None
        self.poller = NvmlPoller(roots or Roots(), clock=self.clock, **options)
        self.poller.open()

    def clock(self) -> int:
        passed = 0 if self._began is None else time.perf_counter_ns() - self._began
        return self.now + passed

    def run(self, seconds: float) -> None:
        for _ in range(round(seconds * NS_PER_SECOND / QUICK_NS)):
            self.now += QUICK_NS
            self.poller.run_round()

    def figures(self, board: str = STATE) -> Figures:
        snapshot = self.poller.snapshots[board]
        assert [(each.metric, each.instance) for each in snapshot.channels] == list(snapshot.keys)
        return dict(zip(snapshot.keys, snapshot.values, strict=True))


def base_unit(watch: SteppedPoller, board: str, metric: str, instance: str = "0") -> float:
    """A figure in its catalogued unit."""
    scales = {(c.metric, c.instance): c.scale for c in watch.poller.snapshots[board].channels}
    value = watch.figures(board)[metric, instance]
    assert value is not None
    return value * scales[metric, instance]
