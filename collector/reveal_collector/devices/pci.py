"""PCI devices that jobs use (GPUs, network, InfiniBand, NVMe) in sysfs.

Kernel: Documentation/ABI/testing/sysfs-bus-pci.  A device's real path contains the ports above it:
its parent folder is the other end of its link.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from reveal_collector.readers.sysfs_attributes import (
    entries,
    link_target,
    read_number,
    read_text,
    resolve_link,
)

_ADDRESS = re.compile(r"[0-9a-f]{4,}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]\Z")
_KINDS = {"0x03": "gpu", "0x12": "gpu", "0x02": "network", "0x0108": "storage"}
_DISPLAY = "0x03"
# other display controllers belong to servers' management chips, on which no job computes
GPU_VENDORS = ("0x10de", "0x1002", "0x8086")
# folders that contain the name by which users know a device
_NAMES = ("net", "infiniband", "nvme", "drm")
_CARD = re.compile(r"(?!renderD|controlD)")


@dataclass(frozen=True, slots=True)
class PciDevice:
    """One PCI device.

    ``kind`` is ``gpu``, ``network`` or ``storage``.  ``name`` is the users' name (``eth0``,
    ``mlx5_0``, ``nvme0``, ``card1``), else the driver.  ``port`` is the folder of the port at the
    other end of the link; ``None`` for devices without one (most of those of virtual machines).
    """

    address: str
    kind: str
    name: str
    path: Path
    port: Path | None

    @property
    def instance(self) -> str:
        """The instance name of its channels: address and name."""
        return f"{self.address} {self.name}" if self.name else self.address


def pci_devices(sys: Path) -> list[PciDevice]:
    """Return the devices of these kinds in the order of their addresses.

    Virtual functions are omitted: they have no link of their own and repeat the card.
    """
    folder = sys / "bus/pci/devices"
    found = (_device(folder / name) for name in entries(folder)[0] if _ADDRESS.match(name))
    return [device for device in found if device is not None]


def address_of(path: Path) -> str:
    """Return the PCI address of a sysfs folder's device; "" where it is on no PCI bus."""
    for part in reversed(resolve_link(path).parts):
        if _ADDRESS.match(part):
            return part
    return ""


def numa_node(device: Path) -> int | None:
    """Return the NUMA node of a device's folder; None where the kernel reports -1 (unknown)."""
    node = read_number(device / "numa_node")
    return node if node is not None and node >= 0 else None


def _device(link: Path) -> PciDevice | None:
    code = read_text(link / "class")
    kind = kind_of(code)
    if not kind or (link / "physfn").exists():
        return None
    if code.startswith(_DISPLAY) and read_text(link / "vendor") not in GPU_VENDORS:
        return None
    path = resolve_link(link)
    port = path.parent if _ADDRESS.match(path.parent.name) else None
    return PciDevice(link.name, kind, next(_names(path), ""), path, port)


def kind_of(code: str) -> str:
    """Return the kind of a PCI class code such as ``0x030200``; "" for other kinds."""
    return next((kind for prefix, kind in _KINDS.items() if code.startswith(prefix)), "")


def _names(path: Path) -> Iterator[str]:
    for folder in _NAMES:
        yield from (name for name in entries(path / folder)[0] if _CARD.match(name))
    yield link_target(path / "driver")
