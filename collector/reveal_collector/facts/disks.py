"""Disks: kernel ABI/stable/sysfs-block, block/queue-sysfs.rst."""

from __future__ import annotations

from pathlib import Path

from reveal_collector.devices.pci import address_of
from reveal_collector.facts import files
from reveal_collector.readers.source import Roots
from reveal_contract.facts import Disk


def disks(roots: Roots) -> tuple[Disk, ...]:
    """Return the block devices with a device behind them: no loop, RAM or mapped devices."""
    folder = roots.sys / "block"
    return tuple(
        _disk(folder / name) for name in files.names(folder) if (folder / name / "device").exists()
    )


def _disk(path: Path) -> Disk:
    spins = files.read_number(path / "queue/rotational")
    return Disk(
        name=path.name,
        model=files.read_text(path / "device/model"),
        rotational=None if spins is None else bool(spins),
        scheduler=files.selected_choice(files.read_text(path / "queue/scheduler")),
        requests=files.read_number(path / "queue/nr_requests"),
        pci=address_of(path / "device"),
    )
