"""The kernel and its environment: release, command line, clock, sysctls, services, machine.

Kernel: admin-guide/kernel-parameters.rst, admin-guide/sysctl/{vm,kernel,net}.rst,
timers/timekeeping.rst; os-release(5); ABI/testing/sysfs-firmware-dmi-entries.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from reveal_collector.facts import files
from reveal_collector.readers.source import Roots
from reveal_contract.facts import Kernel

SYSCTLS = (
    "kernel.numa_balancing", "kernel.perf_event_paranoid", "kernel.sched_rt_runtime_us",
    "net.core.busy_poll", "net.core.default_qdisc", "net.core.netdev_budget",
    "net.core.netdev_max_backlog", "net.core.rmem_max", "net.core.rps_sock_flow_entries",
    "net.core.somaxconn", "net.core.wmem_max", "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_mtu_probing", "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem",
    "vm.compaction_proactiveness", "vm.dirty_background_ratio", "vm.dirty_bytes",
    "vm.dirty_ratio", "vm.min_free_kbytes", "vm.nr_overcommit_hugepages",
    "vm.overcommit_memory", "vm.overcommit_ratio", "vm.swappiness",
    "vm.watermark_scale_factor", "vm.zone_reclaim_mode",
)  # fmt: skip

# the command line may contain secrets and names of disks: only known parameters are reported
_FLAGS = (
    "amd_iommu", "amd_pstate", "clocksource", "default_hugepagesz", "hugepages", "hugepagesz",
    "idle", "intel_idle.max_cstate", "intel_iommu", "intel_pstate", "iommu", "irqaffinity",
    "isolcpus", "kthread_cpus", "maxcpus", "mem", "mitigations", "nohz", "nohz_full", "nohpet",
    "nosmt", "nr_cpus", "numa", "numa_balancing", "nvme.poll_queues", "nvme_core.io_timeout",
    "pci", "pcie_aspm", "preempt", "processor.max_cstate", "psi", "rcu_nocbs",
    "skew_tick", "transparent_hugepage", "tsc",
)  # fmt: skip

_SERVICES = frozenset(
    {
        "cloud-hyperviso", "containerd", "crio", "dockerd", "dpdk-testpmd", "firecracker",
        "irqbalance", "kubelet", "kubelite", "libvirtd", "numad", "nvidia-fabricma",
        "nvidia-persiste", "nvmf_tgt", "ovs-vswitchd", "podman", "qemu-kvm", "qemu-system-x86",
        "reactor_0", "slurmd", "spdk_tgt", "thermald", "tlp", "tuned", "virtqemud", "vpp_main",
    }
)  # fmt: skip  # comm has 15 characters at most

# hypervisors whose guests may have no flag in cpuinfo (there is none on Arm)
_GUESTS = (
    ("QEMU", ""), ("KVM", ""), ("Xen", ""), ("VMware", ""), ("innotek", ""), ("Parallels", ""),
    ("Google", "Google Compute Engine"), ("Microsoft", "Virtual Machine"), ("Alibaba", "Cloud ECS"),
    ("OpenStack", ""), ("Red Hat", "KVM"), ("DigitalOcean", "Droplet"), ("Hetzner", "vServer"),
)  # fmt: skip


def identity(roots: Roots, clock_flags: Iterable[str]) -> Kernel:
    """Return facts that do not change while the host runs, and the services.

    To find the services, a file of every process is read.
    """
    dmi = roots.sys / "class/dmi/id"
    vendor, product = files.read_text(dmi / "sys_vendor"), files.read_text(dmi / "product_name")
    hypervisor = files.read_text(roots.sys / "hypervisor/type")
    return Kernel(
        release=files.read_text(roots.proc / "sys/kernel/osrelease"),
        os=os_name(files.read_text(roots.proc / "1/root/etc/os-release")),
        machine=f"{vendor} {product}".strip(),
        virtual=virtual(clock_flags, vendor, product, hypervisor),
        flags=tuple(flags(files.read_text(roots.proc / "cmdline"))),
        services=services(roots.proc),
    )


def settings(roots: Roots, known: Kernel) -> Kernel:
    """Return ``known`` with facts that an operator can change: the clock and the sysctls."""
    clock = roots.sys / "devices/system/clocksource/clocksource0"
    return replace(
        known,
        clocksource=files.read_text(clock / "current_clocksource"),
        clocksources=tuple(files.read_text(clock / "available_clocksource").split()),
        sysctl=sysctls(roots.proc / "sys"),
    )


def os_name(release: str) -> str:
    """Return PRETTY_NAME of os-release."""
    for line in release.splitlines():
        key, _, value = line.partition("=")
        if key == "PRETTY_NAME":
            return value.strip("\"' ")
    return ""


def virtual(clock_flags: Iterable[str], vendor: str, product: str, hypervisor: str) -> bool | None:
    """Return whether this is a virtual machine; ``None`` where neither CPU nor firmware shows it.

    Bare-metal instances of clouds have the cloud's name, but not that of its hypervisor.
    """
    if "hypervisor" in clock_flags or hypervisor:
        return True
    if vendor == "Amazon EC2":
        return not product.endswith("metal")
    if any(name in vendor and kind in product for name, kind in _GUESTS):
        return True
    return False if vendor else None


def flags(cmdline: str) -> list[str]:
    """Return the parameters of the command line that affect performance."""
    return [word for word in cmdline.split() if word.partition("=")[0] in _FLAGS]


def services(proc: Path) -> tuple[str, ...]:
    """Return the names of the known services among the processes."""
    pids = (name for name in files.names(proc) if name.isdecimal())
    return tuple(sorted({files.read_text(proc / pid / "comm") for pid in pids} & _SERVICES))


def sysctls(folder: Path) -> dict[str, str]:
    """Return the sysctls that affect performance."""
    values = {name: files.read_text(folder / name.replace(".", "/")) for name in SYSCTLS}
    return {name: " ".join(value.split()) for name, value in values.items() if value}
