"""Simulated hosts: files move, wrap, restart, and agree on the same machine."""

from __future__ import annotations

import os

from hypothesis import given
from hypothesis import strategies as st

from reveal_collector.devices.cpu_topology import cpu_list
from support.hosts.base import add_base
from support.hosts.machine import Machine, mask, ranges
from support.hosts.tree import Moment, Tree, rising, swinging


def test_a_kept_descriptor_sees_what_moves(tree: Tree) -> None:
    tree.write("sys/class/net/eth0/statistics/rx_bytes", rising(1000, start=5))
    file = os.open(tree.roots.sys / "class/net/eth0/statistics/rx_bytes", os.O_RDONLY)
    try:
        assert os.pread(file, 99, 0) == b"5\n"
        tree.advance(1.5, load=2.0)
        assert os.pread(file, 99, 0) == b"3005\n"
    finally:
        os.close(file)


def test_counters_wrap_and_restart(tree: Tree) -> None:
    tree.write("sys/wraps", rising(10, start=2**32 - 5, bits=32))
    tree.write("sys/resets", rising(10, start=1000, reset_after=2000))
    tree.advance(1)
    assert (tree.text("sys/wraps"), tree.text("sys/resets")) == ("5\n", "1010\n")
    tree.advance(2)
    assert tree.text("sys/resets") == "10\n"


def test_costly_files_move_once_a_period(tree: Tree) -> None:
    tree.write("proc/interrupts", rising(10), period=1.0)
    texts = []
    for _ in range(12):
        tree.advance(0.1)
        texts.append(tree.text("proc/interrupts"))
    assert texts == ["1\n"] * 10 + ["11\n"] * 2


def test_a_pace_holds_below_a_folder_only(tree: Tree) -> None:
    for path in ("sys/a/b", "sys/ab"):
        tree.write(path, rising(1000))
    tree.pace("sys/a", 1.0)
    for _ in range(2):
        tree.advance(0.1)
    assert (tree.text("sys/a/b"), tree.text("sys/ab")) == ("100\n", "200\n")


def test_what_is_removed_moves_no_more_and_may_come_back(tree: Tree) -> None:
    tree.write("cgroup/a/cpu.stat", rising(1))
    tree.remove("cgroup/a")
    tree.advance(1)
    assert not (tree.roots.cgroup / "a").exists()
    tree.write("cgroup/a/cpu.stat", 7)
    tree.advance(1)
    assert tree.text("cgroup/a/cpu.stat") == "7\n"


def test_levels_swing_around_their_middle() -> None:
    levels = [Moment(ms).level(100, 10, period=400) for ms in range(0, 800, 100)]
    assert levels == [90, 100, 110, 100] * 2
    assert swinging(5, 0)(Moment(123)) == "5\n"


def test_classes_link_to_devices(tree: Tree) -> None:
    add_base(tree)
    device = tree.roots.sys / "class/net/eth0/device"
    assert (device / "uevent").read_text().startswith("DRIVER=virtio_net")
    assert device.resolve() == tree.roots.sys / "devices/pci0000:00/0000:00:03.0"
    assert (device / "driver").resolve().name == "virtio_net"


def test_numa_nodes_hold_all_cpus_once() -> None:
    machine = Machine(cpus=224, numa_nodes=2, sockets=2, threads=2)
    assert ranges(machine.cpus_of(1)) == "56-111,168-223"
    assert sorted(machine.cpus_of(0) + machine.cpus_of(1)) == list(range(224))


@given(st.sets(st.integers(0, 300), min_size=1))
def test_lists_of_cpus_are_as_the_kernel_writes_them(cpus: set[int]) -> None:
    assert cpu_list(ranges(cpus)) == sorted(cpus)
    bits = int(mask(cpus).replace(",", ""), 16)
    assert {cpu for cpu in range(301) if bits >> cpu & 1} == cpus
