"""How a host is set up: firmware, kernel command line, clock, sysctls, huge pages, services."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from support.hosts.tree import Tree

_SYSCTLS = {
    "vm.swappiness": "60", "vm.zone_reclaim_mode": "0", "vm.min_free_kbytes": "90112",
    "vm.dirty_ratio": "20", "kernel.numa_balancing": "0", "kernel.perf_event_paranoid": "2",
    "net.core.rmem_max": "212992", "net.ipv4.tcp_rmem": "4096\t131072\t6291456",
    "net.ipv4.tcp_congestion_control": "cubic",
}  # fmt: skip


@dataclass(frozen=True)
class Setup:
    """What operators and firmware decide; ``services`` are names of processes."""

    vendor: str = "Supermicro"
    product: str = "SYS-821GE"
    cmdline: str = "BOOT_IMAGE=/vmlinuz root=UUID=1 ro quiet"
    clocksource: str = "tsc"
    clocksources: str = "tsc hpet acpi_pm"
    thp: str = "always [madvise] never"
    thp_defrag: str = "always defer defer+madvise [madvise] never"
    sysctls: Mapping[str, str] = field(default_factory=dict)
    services: tuple[str, ...] = ("irqbalance", "containerd", "bash")


def add_setup(tree: Tree, setup: Setup | None = None) -> None:
    setup = setup or Setup()
    if setup.vendor:
        tree.write("sys/class/dmi/id/sys_vendor", setup.vendor + "\n")
        tree.write("sys/class/dmi/id/product_name", setup.product + "\n")
    tree.write("proc/cmdline", setup.cmdline + "\n")
    clock = "sys/devices/system/clocksource/clocksource0"
    tree.write(f"{clock}/current_clocksource", setup.clocksource + "\n")
    tree.write(f"{clock}/available_clocksource", setup.clocksources + " \n")
    tree.write("sys/kernel/mm/transparent_hugepage/enabled", setup.thp + "\n")
    tree.write("sys/kernel/mm/transparent_hugepage/defrag", setup.thp_defrag + "\n")
    tree.write("sys/module/zswap/parameters/enabled", "N\n")
    for name, value in {**_SYSCTLS, **setup.sysctls}.items():
        tree.write(f"proc/sys/{name.replace('.', '/')}", value + "\n")
    tree.write("proc/1/root/etc/os-release", 'ID=ubuntu\nPRETTY_NAME="Ubuntu 24.04.1 LTS"\n')
    for pid, name in enumerate(setup.services, 900):
        tree.write(f"proc/{pid}/comm", name + "\n")
    folder = "sys/devices/system/cpu/vulnerabilities"
    tree.write(f"{folder}/meltdown", "Not affected\n")
    tree.write(f"{folder}/spectre_v2", "Mitigation: Enhanced / Automatic IBRS\n")


def add_huge_pages(
    tree: Tree, total: int, free: int, size_kb: int = 1_048_576, node: int | None = None
) -> None:
    """A pool of the host or, with ``node``, of one NUMA node; reservations are the host's."""
    above = "sys/kernel/mm" if node is None else f"sys/devices/system/node/node{node}"
    folder = f"{above}/hugepages/hugepages-{size_kb}kB"
    tree.write(f"{folder}/nr_hugepages", total)
    tree.write(f"{folder}/free_hugepages", free)
    if node is None:
        tree.write(f"{folder}/resv_hugepages", 0)
        tree.write(f"{folder}/nr_overcommit_hugepages", 0)
    tree.write(f"{folder}/surplus_hugepages", 0)


def add_bond(tree: Tree, name: str, mode: str, parts: Mapping[str, bool], mtu: int = 1500) -> None:
    """A bond of interfaces that are there; each says whether its link is up."""
    folder = f"sys/devices/virtual/net/{name}"
    tree.write(f"{folder}/bonding/mode", mode + "\n")
    tree.write(f"{folder}/bonding/slaves", " ".join(parts) + "\n")
    tree.write(f"{folder}/mtu", mtu)
    tree.write(f"{folder}/operstate", "up\n")
    tree.link(f"sys/class/net/{name}", f"../../devices/virtual/net/{name}")
    for part, up in parts.items():
        tree.write(f"sys/class/net/{part}/bonding_slave/mii_status", "up\n" if up else "down\n")
        depth = "../" * 5 if (tree.root / f"sys/class/net/{part}").is_symlink() else ""
        tree.link(f"sys/class/net/{part}/master", f"{depth}virtual/net/{name}")


def add_gpu_process(
    tree: Tree, pid: int, cpus: str, nodes: str, name: str = "python3", cgroup: str = "/job"
) -> None:
    """Where a process may run, as in proc_pid_status(5)."""
    tree.write(
        f"proc/{pid}/status",
        f"Name:\t{name}\nUmask:\t0022\nState:\tS (sleeping)\nPid:\t{pid}\nThreads:\t16\n"
        f"Cpus_allowed:\tff\nCpus_allowed_list:\t{cpus}\nMems_allowed:\t1\n"
        f"Mems_allowed_list:\t{nodes}\n",
    )
    tree.write(f"proc/{pid}/cgroup", f"0::{cgroup}\n")
    tree.write(f"proc/{pid}/comm", name + "\n")
