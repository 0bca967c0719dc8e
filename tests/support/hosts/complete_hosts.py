"""Whole hosts, put together from the pieces: what the collector meets on real machines."""

from __future__ import annotations

import shutil
from collections.abc import Callable

from support.hosts import cpuidle, cpuinfo
from support.hosts.amdgpu import add_amd_gpu
from support.hosts.base import add_base, add_machine
from support.hosts.configuration import Setup, add_huge_pages, add_setup
from support.hosts.cpufreq import add_cpufreq, add_throttling
from support.hosts.cpuidle import add_cpuidle
from support.hosts.cpuinfo import add_cpuinfo
from support.hosts.edac import add_edac
from support.hosts.hwmon import (
    add_coretemp,
    add_k10temp,
    add_nic_sensor,
    add_nvme_sensor,
    add_power_meters,
)
from support.hosts.infiniband import Adapter, add_adapter
from support.hosts.irq import add_vectors
from support.hosts.machine import GIB, Disk, Machine, Nic
from support.hosts.pci import INFINIBAND, NETWORK, NVME, Function, add_function
from support.hosts.pmu import add_amd_pmus, add_arm_pmus, add_intel_pmus, add_kernel_pmus
from support.hosts.pods import LAYOUTS, add_pods
from support.hosts.powercap import RANGE, add_powercap
from support.hosts.procfs import Vectors, add_process
from support.hosts.recorded_names import RECORDED
from support.hosts.swap import add_swaps, add_zram
from support.hosts.tree import Tree

_GBIT = 1000
_FABRIC = ("18", "2a", "3a", "5d", "9a", "ab", "ba", "db")
_GPUS = ("1b", "43", "52", "61", "9d", "c3", "d1", "df")


def dgx_h100(tree: Tree) -> Machine:
    """Two Sapphire Rapids of 56 cores, eight H100, eight ConnectX-7 for the fabric, two others."""
    nics = [
        Nic(f"ibp{int(bus, 16)}s0", f"0000:{bus}:00.0", "mlx5_core", 400 * _GBIT, 4092,
            index // 4, queues=63, rate=40_000_000)
        for index, bus in enumerate(_FABRIC)
    ]  # fmt: skip
    nics += [
        Nic("enp41s0f0np0", "0000:29:00.0", "mlx5_core", 200 * _GBIT, 9000, 0, 63),
        Nic("enp170s0f0np0", "0000:aa:00.0", "mlx5_core", 200 * _GBIT, 9000, 1, 63, up=False),
        # the management port's driver is loaded again during the last slice
        Nic("eno3", "0000:0b:00.0", "igb", 1 * _GBIT, 1500, 0, 4, rate=9_000, reset_after=2_500),
    ]
    disks = [
        Disk(
            f"nvme{index}n1", f"0000:{bus:02x}:00.0", "nvme", index // 5, 113, 900, 2 * (index < 2)
        )
        for index, bus in enumerate(range(0x70, 0x7A))
    ]
    machine = Machine(
        cpus=224, numa_nodes=2, sockets=2, threads=2, memory=2048 * GIB, kernel=(5, 15),
        nics=tuple(nics), disks=tuple(disks),
    )  # fmt: skip
    vectors = Vectors()
    add_machine(tree, machine, vectors)
    add_setup(tree, Setup("NVIDIA", "DGXH100", sysctls={"vm.swappiness": "1"}))
    add_huge_pages(tree, total=64, free=64)  # reserved, and nobody uses them
    add_cpuinfo(tree, machine, cpuinfo.SAPPHIRE_RAPIDS)
    add_cpufreq(tree, machine)
    add_throttling(tree, machine, hot=1)
    add_cpuidle(tree, machine)
    add_intel_pmus(tree, machine)
    add_powercap(tree, sockets=2, watts=310, start=RANGE - 500_000_000)  # wraps after 1.6 s
    add_coretemp(tree, machine)
    add_edac(tree, controllers=8, modules=4)
    for index, bus in enumerate(_GPUS):
        # the third GPU trained at half its width
        card = Function(f"0000:{bus}:00.0", port=f"0000:{bus}:01.0", numa=index // 4,
                        width=8 if index == 2 else 16)  # fmt: skip
        add_function(tree, card)
    _add_cards(tree, machine, INFINIBAND, vectors)
    add_pods(tree, LAYOUTS["v2_containerd_systemd"])
    return machine


def amd_two_socket_ib(tree: Tree) -> Machine:
    """Two Genoa of 96 cores, four NUMA nodes a socket, no SMT, InfiniBand, MI300, Linux 4.18."""
    nics = (
        Nic("ib0", "0000:21:00.0", "mlx5_core", 200 * _GBIT, 2044, 1, 63, rate=30_000_000),
        Nic("ens3f0", "0000:c1:00.0", "mlx5_core", 25 * _GBIT, 1500, 6, 32),
    )
    machine = Machine(
        cpus=192, numa_nodes=8, sockets=2, memory=768 * GIB, kernel=(4, 18), nics=nics,
        disks=(Disk("nvme0n1", "0000:41:00.0", "nvme", 2, 64, 700, 3),), psi=False,
    )  # fmt: skip
    vectors = Vectors()
    add_machine(tree, machine, vectors)
    add_setup(tree, Setup(sysctls={"kernel.numa_balancing": "1"}, clocksource="hpet"))
    add_cpuinfo(tree, machine, cpuinfo.GENOA)
    add_cpufreq(tree, machine, "acpi-cpufreq", "ondemand", 2_400_000)
    add_cpuidle(tree, machine, "acpi_idle", cpuidle.AMD)
    add_amd_pmus(tree, machine)
    add_k10temp(tree, machine.sockets, dies=12)
    add_edac(tree, controllers=2, modules=12, shape="csrow", driver="amd64_edac")
    for card, bus in enumerate(("05", "26", "46", "65")):
        add_amd_gpu(tree, card, f"0000:{bus}:00.0")
    add_swaps(tree, ("/dev/nvme0n1p3", 16 * GIB, GIB))
    _add_cards(tree, machine, NETWORK, vectors)
    add_pods(tree, LAYOUTS["v1_crio"])
    return machine


def grace(tree: Tree) -> Machine:
    """One Neoverse V2 of 72 cores with 64 KB pages."""
    machine = Machine(
        cpus=72, memory=480 * GIB, page=65_536, kernel=(6, 8), arch="aarch64",
        nics=(Nic("enP6p3s0f0np0", "0006:03:00.0", "mlx5_core", 200 * _GBIT, 9000, 0, 63),),
        disks=(Disk("nvme0n1", "0008:01:00.0", "nvme", 0, 72, 500, 2),),
    )  # fmt: skip
    vectors = Vectors()
    add_machine(tree, machine, vectors)
    add_setup(tree, Setup("NVIDIA", "Grace CPU P5042", clocksource="arch_sys_counter",
                          clocksources="arch_sys_counter"))  # fmt: skip
    add_cpuinfo(tree, machine, cpuinfo.NEOVERSE_V2)
    add_cpufreq(tree, machine, "cppc_cpufreq", fastest=3_447_000)
    add_cpuidle(tree, machine, "acpi_idle", cpuidle.ARM)
    add_arm_pmus(tree, machine)
    add_power_meters(tree)
    add_edac(tree, controllers=1, modules=16, driver="ghes_edac")
    _add_cards(tree, machine, NETWORK, vectors)
    add_pods(tree, LAYOUTS["v2_containerd_cgroupfs"])
    return machine


def k3s_nested(tree: Tree) -> Machine:
    """A node that is a container itself, on a virtual machine with both cgroup versions."""
    machine = add_base(tree, cpus=8, memory=32 * GIB, kernel=(6, 1))
    add_cpuinfo(tree, machine, cpuinfo.MILAN)
    add_kernel_pmus(tree)
    add_pods(tree, LAYOUTS["hybrid_nested"])
    return machine


def docker_cri(tree: Tree) -> Machine:
    """cri-dockerd on a machine of two NUMA nodes."""
    machine = add_base(tree, cpus=16, numa_nodes=2, memory=64 * GIB, kernel=(5, 15))
    add_cpuinfo(tree, machine, cpuinfo.MILAN)
    add_pods(tree, LAYOUTS["v2_cri_dockerd"])
    return machine


def vm_cloud(tree: Tree) -> Machine:
    """A small virtual machine without counters: steal, virtio, no pressure files."""
    machine = Machine(cpus=4, threads=2, psi=False, schedstat=False, virtual=True)
    add_machine(tree, machine)
    add_setup(tree, Setup("Google", "Google Compute Engine", clocksource="kvm-clock",
                          clocksources="kvm-clock tsc acpi_pm"))  # fmt: skip
    add_cpuinfo(tree, machine, cpuinfo.SKYLAKE_SP)
    add_kernel_pmus(tree)
    add_swaps(tree, ("/dev/zram0", 8 * GIB, 0))
    add_zram(tree)
    add_process(tree, 812, "python3", cpu=0.6)
    add_process(tree, 930, "nginx: worker", cpu=0.05)
    return machine


def recorded_vm(tree: Tree) -> None:
    """The recorded virtual machine: true files of one moment, nothing moves."""
    for name in ("proc", "sys", "cgroup"):
        shutil.copytree(RECORDED / name, tree.root / name, dirs_exist_ok=True)


def _add_cards(tree: Tree, machine: Machine, fabric: str, vectors: Vectors) -> None:
    """PCI functions, interrupts, RDMA devices and sensors of the NICs and NVMe drives."""
    number = 0
    for nic in machine.nics:
        infiniband = nic.name.startswith("ib")
        code = fabric if infiniband else NETWORK
        folder = add_function(tree, Function(nic.pci, code, nic.driver, numa=nic.numa))
        if nic.driver != "mlx5_core":
            continue
        add_nic_sensor(tree, nic.pci)
        rate = f"{nic.speed // _GBIT} Gb/sec (4X NDR)"
        add_adapter(tree, Adapter(f"mlx5_{number}", folder, 1, not infiniband, nic.name,
                                  f"10.0.{number}.7", rate, nic.rate))  # fmt: skip
        number += 1
    for index, disk in enumerate(machine.disks):
        add_function(tree, Function(disk.pci, NVME, "nvme", width=4, most_width=4, numa=disk.numa))
        add_nvme_sensor(tree, disk.pci, f"nvme{index}")
    for device in (*machine.nics, *machine.disks):
        lines = vectors.of(device.pci)
        add_vectors(tree, device.pci, lines[0].number, [line.cpu for line in lines])


HOSTS: dict[str, Callable[[Tree], object]] = {
    host.__name__: host
    for host in (
        dgx_h100, amd_two_socket_ib, grace, vm_cloud, k3s_nested, docker_cri, recorded_vm
    )
}  # fmt: skip
