"""InfiniBand and RoCE ports in sysfs, and their network interfaces.

Kernel: Documentation/ABI/stable/sysfs-class-infiniband.  A RoCE port uses the addresses of its
network interface: the GID table has the interface and its IP addresses.  An InfiniBand port may
have interfaces of its own (IPoIB); their ``dev_port`` is the port's number minus 1.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from reveal_collector.devices.pci import address_of
from reveal_collector.readers.sysfs_attributes import entries, read_text

_RATE = re.compile(r"(\d+)(?:\.(\d))?\d* Gb/sec")
_STATE = re.compile(r"\s*(\d+)\s*:")
_MAPPED = 0xFFFF  # ::ffff:a.b.c.d contains an IPv4 address


@dataclass(frozen=True, slots=True)
class RdmaPort:
    """One port; ``name`` is ``mlx5_0/1``.

    ``netdevs`` are its network interfaces, ``addresses`` the IP addresses in its GIDs, ``rate``
    bits/s.  ``state`` and ``phys_state`` are the kernel's words (``ACTIVE``, ``LinkUp``).  Values
    that cannot be read are empty or ``None``.
    """

    device: str
    number: int
    path: Path
    pci: str
    link_layer: str
    state: str
    phys_state: str
    rate: int | None
    netdevs: tuple[str, ...]
    addresses: tuple[str, ...]

    @property
    def name(self) -> str:
        """Device and number."""
        return f"{self.device}/{self.number}"


def ib_ports(sys: Path, addresses: bool = True) -> list[RdmaPort]:
    """Return the ports of all devices; ``addresses=False`` skips the GIDs (hundreds of files)."""
    folder = sys / "class/infiniband"
    return [
        _port(folder / device, number, addresses)
        for device in entries(folder)[0]
        for number in sorted(int(n) for n in entries(folder / device / "ports")[0] if n.isdecimal())
    ]


def rate(text: bytes | str) -> int | None:
    """Return ``200 Gb/sec (4X HDR)`` in tenths of Gbit/s; raises ``ValueError`` for other text."""
    words = text.decode("ascii", "replace") if isinstance(text, bytes) else text
    if not (found := _RATE.match(words)):
        raise ValueError(f"{words[:40]!r} is not a rate")
    return int(found[1]) * 10 + int(found[2] or "0")


def state_number(text: bytes) -> int:
    """Return ``4: ACTIVE`` as 4; raises ``ValueError`` for other text."""
    if not (found := _STATE.match(text.decode("ascii", "replace"))):
        raise ValueError(f"{text[:40]!r} is not a state")
    return int(found[1])


def ip_of_gid(gid: str) -> str:
    """Return the IP address in a GID; "" where it has none (InfiniBand GUID, empty entry)."""
    try:
        address = ipaddress.IPv6Address(gid)
    except ValueError:
        return ""
    if int(address) >> 32 == _MAPPED:
        return str(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
    # every port has a link-local address derived from its hardware address
    return "" if address.is_link_local or not int(address) else str(address)


def _port(device: Path, number: int, addresses: bool) -> RdmaPort:
    path = device / "ports" / str(number)
    layer = read_text(path / "link_layer")
    gids = list(_gids(path)) if addresses else []
    ethernet = layer == "Ethernet"
    netdevs = [name for name, _ in gids] + list(_interfaces(device, number))
    known = [ip for _, gid in gids if (ip := ip_of_gid(gid))] if ethernet else []
    try:
        tenths = rate(read_text(path / "rate"))
    except ValueError:
        tenths = None
    return RdmaPort(
        device.name, number, path, address_of(device / "device"), layer,
        _word(read_text(path / "state")), _word(read_text(path / "phys_state")),
        None if tenths is None else tenths * 10**8,
        tuple(dict.fromkeys(netdevs)), tuple(dict.fromkeys(known)),
    )  # fmt: skip


def _gids(port: Path) -> Iterator[tuple[str, str]]:
    """Yield interface and GID of each entry in the table that belongs to an interface."""
    for entry in sorted(entries(port / "gid_attrs/ndevs")[0], key=lambda name: (len(name), name)):
        if name := read_text(port / "gid_attrs/ndevs" / entry):
            yield name, read_text(port / "gids" / entry)


def _interfaces(device: Path, number: int) -> Iterator[str]:
    """Yield the interfaces of the same PCI device on this port."""
    ports = len(entries(device / "ports")[0])
    folder = device / "device/net"
    for name in entries(folder)[0]:
        dev_port = read_text(folder / name / "dev_port")
        if ports == 1 or (dev_port.isdecimal() and int(dev_port) == number - 1):
            yield name


def _word(text: str) -> str:
    """Return ``4: ACTIVE`` as ``ACTIVE``."""
    return text.partition(":")[2].strip() or text
