"""Network interfaces that have a device, bonds, and the ports of RDMA devices.

Kernel: ABI/testing/sysfs-class-net{,-queues,-statistics}, networking/{bonding,scaling}.rst,
ABI/stable/sysfs-class-infiniband.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from reveal_collector.devices.pci import address_of
from reveal_collector.devices.rdma import ib_ports
from reveal_collector.facts import files
from reveal_collector.readers.source import Roots
from reveal_contract.facts import Bond, Nic, RdmaPortFacts

_UP = {"up": True, "down": False, "lowerlayerdown": False}
_BITS_PER_MBIT = 1e6
_LOST = ("rx_missed_errors", "rx_fifo_errors")


@dataclass(frozen=True)
class NicSizes:
    """Sizes that only the driver knows (ethtool -g, -l): ring and channels, current and maximum."""

    rx_ring: int | None = None
    rx_ring_most: int | None = None
    channels: int | None = None
    channels_most: int | None = None


QuerySizes = Callable[[str], NicSizes]


def nics(roots: Roots, query: QuerySizes) -> tuple[Nic, ...]:
    """Return the interfaces of hardware, also of the virtual hardware of a guest."""
    folder = roots.sys / "class/net"
    return tuple(
        _nic(folder / name, query(name))
        for name in files.names(folder)
        if (folder / name / "device").exists()
    )


def _nic(path: Path, sizes: NicSizes) -> Nic:
    queues = files.names(path / "queues")
    rx = [name for name in queues if name.startswith("rx-")]
    missed = lost(path / "statistics")
    return Nic(
        name=path.name,
        driver=files.link_target(path / "device/driver"),
        pci=address_of(path / "device"),
        up=_UP.get(files.read_text(path / "operstate")),
        speed=files.read_level(path / "speed", "network.nic.speed", _BITS_PER_MBIT),
        duplex=files.read_text(path / "duplex"),
        mtu=files.read_number(path / "mtu"),
        rx_queues=len(rx),
        tx_queues=len(queues) - len(rx),
        rps=_any_steering(path / "queues", rx),
        channels=sizes.channels,
        channels_most=sizes.channels_most,
        rx_ring=sizes.rx_ring,
        rx_ring_most=sizes.rx_ring_most,
        missed=missed,
        missed_per_million=_per_million(missed, path / "statistics/rx_packets"),
        bond=files.link_target(path / "master") if _in_bond(path) else "",
    )


def _any_steering(queues: Path, names: list[str]) -> bool | None:
    """Return whether receive packet steering is on; a queue's mask of zeros is off."""
    masks = [files.read_text(queues / name / "rps_cpus") for name in names]
    known = [mask for mask in masks if mask]
    return any(mask.strip("0,") for mask in known) if known else None


def lost(statistics: Path) -> int | None:
    """Return the frames that found no free descriptor; drivers use either counter."""
    counts = [files.read_number(statistics / name) for name in _LOST]
    known = [count for count in counts if count is not None]
    return max(known) if known else None


def _per_million(missed: int | None, received: Path) -> int | None:
    """Return the lost frames in a million received ones; None where none are lost or it is unknown.

    Whole numbers: facts must not change with every packet.
    """
    packets = files.read_number(received)
    return missed * 1_000_000 // packets if missed and packets else None


def _in_bond(path: Path) -> bool:
    return (path / "master/bonding").is_dir()


def bonds(roots: Roots) -> tuple[Bond, ...]:
    """Return the bonds and their interfaces."""
    folder = roots.sys / "class/net"
    return tuple(
        _bond(folder / name) for name in files.names(folder) if (folder / name / "bonding").is_dir()
    )


def _bond(path: Path) -> Bond:
    parts = files.read_text(path / "bonding/slaves").split()
    states = {
        part: files.read_text(path.parent / part / "bonding_slave/mii_status") for part in parts
    }
    return Bond(
        name=path.name,
        mode=files.read_text(path / "bonding/mode").partition(" ")[0],
        mtu=files.read_number(path / "mtu"),
        parts=tuple(parts),
        down=tuple(part for part, state in states.items() if state == "down"),
        unread=tuple(part for part, state in states.items() if not state),
    )


def ports(roots: Roots) -> tuple[RdmaPortFacts, ...]:
    """Return the ports of InfiniBand and RoCE devices with their interfaces."""
    return tuple(
        RdmaPortFacts(
            name=port.name,
            layer=port.link_layer,
            state=port.state,
            rate=files.read_text(port.path / "rate"),
            pci=port.pci,
            nics=port.netdevs,
        )
        for port in ib_ports(roots.sys, addresses=False)
    )
