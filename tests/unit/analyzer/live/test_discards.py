"""Discards: when they suppress the score of Storage, and when other requests wait for them."""

from __future__ import annotations

from reveal_analyzer.derive.deriver import Deriver
from reveal_analyzer.live.discards import Discards
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.metric import Kind, Subsystem
from support.synthetic_node import Node

STORAGE = frozenset({Subsystem.STORAGE})
NAMES = ("storage.disk.discard_time", "storage.disk.queue_time")


class Host:
    """The milliseconds a second of discards and of all requests, on each disk."""

    def __init__(self, *disks: str) -> None:
        channels = [Channel(name, disk, Kind.COUNTER, 1e6) for disk in disks for name in NAMES]
        self.table = ChannelTable(tuple(channels), ())
        self.node, self.deriver, self.discards = Node(), Deriver(), Discards()
        self.node.table = self.table

    def run(self, seconds: int, **by_disk: tuple[float, float]) -> list[frozenset[Subsystem]]:
        changed = {
            f"{name}{{{disk}}}": value
            for disk, values in by_disk.items()
            for name, value in zip(NAMES, values, strict=True)
        }
        return [
            self.discards.push(self.deriver.second(self.node.slice(changed), self.table))
            for _ in range(seconds)
        ]


def test_discards_alone_suppress_storage_while_the_score_covers_them() -> None:
    host = Host("vda")
    assert not any(host.run(20, vda=(0, 5)))
    assert set(host.run(5, vda=(270, 280))) == {STORAGE}
    after = host.run(12, vda=(0, 5))
    assert set(after[:8]) == {STORAGE}
    assert not any(after[-2:])


def test_requests_through_a_mapped_device_count_once() -> None:
    host = Host("vda", "md0")
    host.run(20, vda=(0, 5), md0=(0, 5))
    assert set(host.run(5, vda=(270, 350), md0=(270, 350))) == {STORAGE}


def test_waiting_requests_are_not_suppressed() -> None:
    host = Host("vda")
    host.run(20, vda=(0, 5))
    assert not any(host.run(20, vda=(900, 1_100))[-10:])


def test_readers_of_another_disk_count_too() -> None:
    host = Host("vda", "vdb")
    host.run(20, vda=(0, 5), vdb=(0, 5))
    assert not any(host.run(20, vda=(270, 280), vdb=(0, 400))[-10:])


def test_a_host_without_discard_counters_suppresses_nothing() -> None:
    deriver, discards, node = Deriver(), Discards(), Node()
    seconds = (deriver.second(node.slice(), node.table) for _ in range(15))
    assert not any(map(discards.push, seconds))
