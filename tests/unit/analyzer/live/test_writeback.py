"""Writeback: when it suppresses the score of Storage, and when somebody waits for the disk."""

from __future__ import annotations

import pytest

from reveal_analyzer.derive.deriver import Deriver
from reveal_analyzer.live.writeback import Writeback
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.metric import Kind, Subsystem
from support.synthetic_node import Node

STORAGE = frozenset({Subsystem.STORAGE})
DISK = ("storage.disk.queue_time", "storage.disk.read_time", "storage.disk.busy_time")
PRESSURE = "storage.pressure.some"
QUIET = (5.0, 1.0, 5.0)
BURST = (295.0, 0.0, 46.0)  # of 10 MB a second, as the kernel wrote it after tasks were done


class Host:
    """The milliseconds a second of requests, of reads, and with requests, on each disk."""

    def __init__(self, *disks: str, pressure: bool = True) -> None:
        channels = [Channel(name, disk, Kind.COUNTER, 1e6) for disk in disks for name in DISK]
        channels += [Channel(PRESSURE, "", Kind.COUNTER, 1e6)] if pressure else []
        self.table = ChannelTable(tuple(channels), ())
        self.node, self.deriver, self.writeback = Node(), Deriver(), Writeback()
        self.node.table = self.table

    def run(
        self, seconds: int, waiting: float = 0.0, **by_disk: tuple[float, float, float]
    ) -> list[frozenset[Subsystem]]:
        changed = {
            f"{name}{{{disk}}}": value
            for disk, values in by_disk.items()
            for name, value in zip(DISK, values, strict=True)
        }
        changed[PRESSURE] = waiting
        return [
            self.writeback.push(self.deriver.second(self.node.slice(changed), self.table))
            for _ in range(seconds)
        ]


def test_writes_that_nobody_waits_for_suppress_storage_while_the_score_covers_them() -> None:
    host = Host("vda")
    assert not any(host.run(20, vda=QUIET))
    assert set(host.run(5, 8.0, vda=BURST)) == {STORAGE}
    after = host.run(12, vda=QUIET)
    assert set(after[:8]) == {STORAGE}
    assert not any(after[-2:])


@pytest.mark.parametrize(
    ("waiting", "disk"),
    [
        (120.0, BURST),  # tasks wait, as for fsync
        (8.0, (295.0, 60.0, 46.0)),  # reads wait
        (8.0, (4_000.0, 0.0, 900.0)),  # the disk is busy all the time, so that a read would wait
    ],
)
def test_what_somebody_waits_for_is_not_suppressed(
    waiting: float, disk: tuple[float, float, float]
) -> None:
    host = Host("vda")
    host.run(20, vda=QUIET)
    assert not any(host.run(20, waiting, vda=disk)[-10:])


def test_readers_of_another_disk_count_too() -> None:
    host = Host("vda", "vdb")
    host.run(20, vda=QUIET, vdb=QUIET)
    assert not any(host.run(20, vda=BURST, vdb=(200.0, 200.0, 40.0))[-10:])


def test_a_mapped_device_repeats_no_requests() -> None:
    host = Host("vda", "dm-0")
    host.run(20, vda=QUIET, **{"dm-0": QUIET})
    assert set(host.run(5, vda=BURST, **{"dm-0": (295.0, 295.0, 46.0)})) == {STORAGE}


def test_without_pressure_files_nothing_is_suppressed() -> None:
    host = Host("vda", pressure=False)
    assert not any(host.run(20, vda=BURST))
