"""A small node made by hand: slices with a handful of channels, for the analyzer's tests."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.metric import Kind, Lane
from reveal_contract.time_units import NS_PER_SECOND
from reveal_contract.wire import Message

BOOT = b"b" * 16
WORK, OTHER = "/work.service", "/noisy.service"

FAST = (
    Channel("cpu.user", "0", Kind.COUNTER, 1e7),
    Channel("cpu.user", "1", Kind.COUNTER, 1e7),
    Channel("cpu.user", "", Kind.COUNTER, 1e7),
    Channel("cpu.pressure.some", "", Kind.COUNTER, 1e3),
    Channel("cpu.procs_running", "", Kind.GAUGE, 1.0),
    Channel("cpu.context_switches", "", Kind.COUNTER, 1.0),
    Channel("memory.mem_total", "", Kind.GAUGE, 1024.0),
    Channel("memory.mem_available", "", Kind.GAUGE, 1024.0),
    Channel("memory.vm.oom_kill", "", Kind.COUNTER, 1.0),
    Channel("network.tcp.out_segs", "", Kind.COUNTER, 1.0),
    Channel("network.tcp.retrans_segs", "", Kind.COUNTER, 1.0),
    Channel("network.nic.rx_bytes", "eth0", Kind.COUNTER, 1.0),
    Channel("cpu.subject.usage", WORK, Kind.COUNTER, 1.0),
    Channel("cpu.subject.throttled_time", WORK, Kind.COUNTER, 1.0),
)
SLOW = (
    Channel("network.softnet.dropped", "", Kind.COUNTER, 1.0, Lane.SLOW),
    Channel("cpu.idle", "", Kind.COUNTER, 1e7, Lane.SLOW),
)
TABLE = ChannelTable(FAST, SLOW)

# what a quiet second holds, per channel label: per second for counters, a level for gauges
QUIET = {
    "cpu.user{0}": 20.0, "cpu.user{1}": 10.0, "cpu.user": 30.0, "cpu.pressure.some": 2000.0,
    "cpu.procs_running": 1.0, "cpu.context_switches": 300.0, "memory.mem_total": 16 << 20,
    "memory.mem_available": 12 << 20, "network.tcp.out_segs": 500.0,
    "network.nic.rx_bytes{eth0}": 1e5, f"cpu.subject.usage{{{WORK}}}": 3e8,
}  # fmt: skip

Change = Callable[[int], dict[str, float]]


class Node:
    """Makes the slices of one node, one a second, with seeded noise around QUIET."""

    def __init__(self, table: ChannelTable = TABLE, seed: int = 0) -> None:
        self.table = table
        self.second = 0
        self._random = np.random.default_rng(seed)

    def slice(self, changed: dict[str, float] | None = None) -> Message:
        """The next slice; ``changed`` replaces values of QUIET (absent there: 0).

        Both CPUs are idle while they do not run, unless ``changed`` has a value of its own.
        """
        values = QUIET | (changed or {})
        values.setdefault("cpu.idle", max(200.0 - values["cpu.user"], 0.0))
        fast = np.stack([self._ticks(c, values.get(c.label, 0.0)) for c in self.table.fast], 1)
        slow = np.array([round(values.get(c.label, 0.0)) for c in self.table.slow], np.int64)
        message = Message(
            node="n1", boot=BOOT, sequence=self.second,
            start_ns=1_700_000_000 * NS_PER_SECOND + self.second * NS_PER_SECOND, tick_us=100_000,
            table=self.table.key, fast=fast, slow=slow,
            fast_missing=np.zeros(fast.shape, bool), slow_missing=np.zeros(slow.shape, bool),
        )  # fmt: skip
        self.second += 1
        return message

    def _ticks(self, channel: Channel, value: float) -> np.ndarray:
        level = value if channel.kind is Kind.GAUGE else value / 10
        noisy = level * (1 + 0.03 * self._random.standard_normal(10))
        return np.round(noisy).astype(np.int64)
