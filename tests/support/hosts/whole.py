"""Whole hosts, put together from the pieces: what the collector meets on real machines."""

from __future__ import annotations

import shutil
from collections.abc import Callable

from hosts.base import add_machine
from hosts.machine import GIB, Disk, Machine, Nic
from hosts.procfs import add_process
from hosts.recorded import RECORDED
from hosts.tree import Tree

TIB = 1024 * GIB
_GBIT = 1000


def dgx_h100(tree: Tree) -> Machine:
    """Two Sapphire Rapids of 56 cores, eight H100, eight ConnectX-7 for the fabric, two others."""
    fabric = ("18", "2a", "3a", "5d", "9a", "ab", "ba", "db")
    nics = [
        Nic(f"ibp{int(bus, 16)}s0", f"0000:{bus}:00.0", "mlx5_core", 400 * _GBIT, 4092,
            at // 4, queues=63, rate=40_000_000)
        for at, bus in enumerate(fabric)
    ]  # fmt: skip
    nics += [
        Nic("enp41s0f0np0", "0000:29:00.0", "mlx5_core", 200 * _GBIT, 9000, 0, 63),
        Nic("enp170s0f0np0", "0000:aa:00.0", "mlx5_core", 200 * _GBIT, 9000, 1, 63, up=False),
        Nic("eno3", "0000:0b:00.0", "i210", 1 * _GBIT, 1500, 0, 4, rate=9_000),
    ]
    disks = [
        Disk(f"nvme{at}n1", f"0000:{bus:02x}:00.0", "nvme", at // 5, 113, 900, 2 * (at < 2))
        for at, bus in enumerate(range(0x50, 0x5A))
    ]
    machine = Machine(
        cpus=224, numa_nodes=2, sockets=2, threads=2, memory=2 * TIB, kernel=(5, 15),
        nics=tuple(nics), disks=tuple(disks), schedstat=True,
    )  # fmt: skip
    add_machine(tree, machine)
    return machine


def amd_two_socket_ib(tree: Tree) -> Machine:
    """Two Genoa of 96 cores, four NUMA nodes a socket, no SMT, InfiniBand, Linux 4.18."""
    nics = (
        Nic("ib0", "0000:21:00.0", "mlx5_core", 200 * _GBIT, 2044, 1, 63, rate=30_000_000),
        Nic("ens3f0", "0000:c1:00.0", "mlx5_core", 25 * _GBIT, 1500, 6, 32),
    )
    machine = Machine(
        cpus=192, numa_nodes=8, sockets=2, memory=768 * GIB, kernel=(4, 18), nics=nics,
        disks=(Disk("nvme0n1", "0000:41:00.0", "nvme", 2, 64, 700, 3),), psi=False,
    )  # fmt: skip
    add_machine(tree, machine)
    return machine


def grace(tree: Tree) -> Machine:
    """One Neoverse V2 of 72 cores with 64 KB pages."""
    machine = Machine(
        cpus=72, memory=480 * GIB, page=65_536, kernel=(6, 8), arch="aarch64",
        nics=(Nic("enP6p3s0f0np0", "0006:03:00.0", "mlx5_core", 200 * _GBIT, 9000, 0, 63),),
        disks=(Disk("nvme0n1", "0008:01:00.0", "nvme", 0, 72, 500, 2),),
    )  # fmt: skip
    add_machine(tree, machine)
    return machine


def vm_cloud(tree: Tree) -> Machine:
    """A small virtual machine without counters: steal, virtio, no pressure files."""
    machine = Machine(cpus=4, threads=2, psi=False, schedstat=False, virtual=True)
    add_machine(tree, machine)
    add_process(tree, 812, "python3", cpu=0.6)
    add_process(tree, 930, "nginx: worker", cpu=0.05)
    return machine


def recorded_vm(tree: Tree) -> None:
    """The recorded virtual machine: true files of one moment, nothing moves."""
    for name in ("proc", "sys", "cgroup"):
        shutil.copytree(RECORDED / name, tree.root / name, dirs_exist_ok=True)


HOSTS: dict[str, Callable[[Tree], object]] = {
    host.__name__: host for host in (dgx_h100, amd_two_socket_ib, grace, vm_cloud, recorded_vm)
}
