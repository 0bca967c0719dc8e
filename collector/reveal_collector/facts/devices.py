"""PCI devices that jobs use: GPUs, network cards, NVMe; their links, NUMA nodes and interrupts.

Kernel: ABI/testing/sysfs-bus-pci (numa_node, msi_irqs, current_link_*, max_link_*),
core-api/irq/irq-affinity.rst, ABI/testing/sysfs-kernel-irq.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from reveal_collector.devices import pci
from reveal_collector.facts import files
from reveal_collector.readers.source import Roots
from reveal_contract import cpulist
from reveal_contract.facts import DeviceFacts, InterruptVectors, PcieLink

_INFINIBAND = "0x0207"  # PCI class; cards that run Ethernet have 0x0200


def devices(roots: Roots, known: Mapping[str, InterruptVectors]) -> tuple[DeviceFacts, ...]:
    """Return every such device by address; ``known`` interrupt vectors are not read again.

    A large host has thousands of vectors, each with files of its own.
    """
    found = (_device(roots, device, known) for device in pci.pci_devices(roots.sys))
    return tuple(device for device in found if device)


def _device(
    roots: Roots, found: pci.PciDevice, known: Mapping[str, InterruptVectors]
) -> DeviceFacts | None:
    path = found.path
    vendor = files.read_text(path / "vendor")
    if found.kind == "gpu" and vendor not in pci.GPU_VENDORS:  # accelerators of other vendors
        return None
    return DeviceFacts(
        address=found.address,
        kind=found.kind,
        ids=f"{vendor.removeprefix('0x')}:{files.read_text(path / 'device').removeprefix('0x')}",
        driver=files.link_target(path / "driver"),
        node=pci.numa_node(path),
        link=link(path, found.port),
        vectors=known.get(found.address) or vectors(roots, files.numbered(path / "msi_irqs", "")),
        infiniband=files.read_text(path / "class").startswith(_INFINIBAND) or None,
    )


def link(path: Path, port: Path | None) -> PcieLink:
    """Return the link of a device, with the capabilities of the device and of its port."""
    return PcieLink(
        width=_width(path / "current_link_width"),
        device_width=_width(path / "max_link_width"),
        port_width=_width(port / "max_link_width") if port else None,
        speed=_speed(path / "current_link_speed"),
        device_speed=_speed(path / "max_link_speed"),
        port_speed=_speed(port / "max_link_speed") if port else None,
    )


def _width(path: Path) -> int | None:
    """Return the number of lanes; None for 0 (no link), 63 and 255 (unknown)."""
    return files.read_level(path, "gpu.pcie.width")  # the lanes of any device have these bounds


def _speed(path: Path) -> float | None:
    """Return the GT/s of ``16.0 GT/s PCIe``; kernels before 5.8 omit the last word."""
    word, _, unit = files.read_text(path).partition(" ")
    try:
        return float(word) if unit.startswith("GT/s") else None
    except ValueError:
        return None


def vectors(roots: Roots, numbers: list[int]) -> InterruptVectors:
    """Return the CPUs that serve, and may serve, the interrupts of a device that are in use."""
    irqs = roots.sys / "kernel/irq"
    used = [number for number in numbers if files.read_text(irqs / f"{number}/actions")]
    served, allowed, managed = set[int](), set[int](), False
    for number in used:
        path = roots.proc / f"irq/{number}"
        managed = managed or files.is_read_only(path / "smp_affinity_list")
        served |= cpulist.parse(files.cpu_list(path / "effective_affinity_list"))
        if len(served) == 1:  # only then the other allowed CPUs matter
            allowed |= cpulist.parse(files.cpu_list(path / "smp_affinity_list"))
    if len(served) > 1:
        allowed = set()
    return InterruptVectors(
        len(used) or None, cpulist.render(served), cpulist.render(allowed), managed or None
    )
