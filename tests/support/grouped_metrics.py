"""Slices of a node whose metrics move in groups that are known, for tests of metric selection.

* the CPU group: ``cpu.user``, its two CPUs, and ``cpu.busy``, which the analyzer derives of it;
* the link group: received bytes, packets and the compressed packets that count the same;
* the waiting group: ``cpu.pressure.some`` and ``cpu.forks``, which falls as it rises;
* alone: ``memory.mem_available``; still: ``memory.mem_total``; of a subject, of ourselves.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.metric import Kind, Lane
from reveal_contract.recording import RecordingWriter
from reveal_contract.wire import Message, encode, gauges

TICKS = 10
FAST = (
    Channel("cpu.user", "0", Kind.COUNTER, 1e7),
    Channel("cpu.user", "1", Kind.COUNTER, 1e7),
    Channel("cpu.user", "", Kind.COUNTER, 1e7),
    Channel("network.nic.rx_bytes", "eth0", Kind.COUNTER, 1.0),
    Channel("network.nic.rx_packets", "eth0", Kind.COUNTER, 1.0),
    Channel("network.nic.rx_compressed", "eth0", Kind.COUNTER, 1.0),
    Channel("cpu.pressure.some", "", Kind.COUNTER, 1e3),
    Channel("cpu.forks", "", Kind.COUNTER, 1.0),
    Channel("memory.mem_available", "", Kind.GAUGE, 1024.0),
    Channel("memory.mem_total", "", Kind.GAUGE, 1024.0),
    Channel("cpu.subject.usage", "/work.service", Kind.COUNTER, 1.0),
)
SLOW = (Channel("own.cpu_time", "", Kind.COUNTER, 1.0, Lane.SLOW),)
TABLE = ChannelTable(FAST, SLOW)
GROUPS = (
    ("cpu.user", ("cpu.busy", "cpu.user{0}", "cpu.user{1}")),
    ("network.nic.rx_bytes{eth0}", ("network.nic.rx_compressed{eth0}",
                                    "network.nic.rx_packets{eth0}")),
    ("cpu.pressure.some", ("cpu.forks",)),
)  # fmt: skip
LONE = ("memory.mem_available",)
STILL = ("memory.mem_total",)


def fast_values(seconds: int, seed: int) -> np.ndarray:
    """(ticks, fast channels), raw."""
    draw = np.random.default_rng(seed)
    ticks = seconds * TICKS

    def noise(size: float) -> np.ndarray:
        return size * draw.standard_normal(ticks)

    cpu, link, wait, lone = (draw.standard_normal(ticks) for _ in range(4))
    columns = [
        600 + 60 * cpu + noise(10),
        400 + 40 * cpu + noise(10),
        1000 + 100 * cpu + noise(3),
        50_000 + 4000 * link + noise(100),
        300 + 30 * link + noise(3),
        300 + 30 * link + noise(3),
        5000 + 500 * wait + noise(10),
        900 - 90 * wait + noise(9),
        8_000_000 + 500 * lone,
        np.full(ticks, 16 << 20),
        5e6 + 1e6 * cpu,
    ]
    return np.round(np.stack(columns, axis=1)).astype(np.int64)


def slices(seconds: int, seed: int = 0, node: str = "n") -> list[Message]:
    values = fast_values(seconds, seed)
    return [
        Message(
            node=node, boot=bytes(16), sequence=index, start_ns=(1000 + index) * 10**9,
            tick_us=100_000,
            table=TABLE.key, fast=values[index * TICKS : (index + 1) * TICKS],
            slow=np.array([index * index], np.int64),
            fast_missing=np.zeros((TICKS, len(FAST)), bool), slow_missing=np.zeros(1, bool),
        )
        for index in range(seconds)
    ]  # fmt: skip


def record(path: Path, seconds: int, seed: int = 0) -> Path:
    """A recording of these slices."""
    with RecordingWriter(path) as writer:
        for message in slices(seconds, seed):
            writer.message(encode(message, gauges(TABLE)), TABLE)
    return path
