"""InfiniBand and RoCE ports as sysfs shows them, and the network interfaces on top of them.

Kernel: Documentation/ABI/stable/sysfs-class-infiniband.  A RoCE port lends its network interface
for its addresses: the GID table says which, and holds its IP addresses.  An InfiniBand port may
have interfaces of its own (IPoIB); those of one device tell their port by ``dev_port``.
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
_MAPPED = 0xFFFF  # ::ffff:a.b.c.d holds an IPv4 address


@dataclass(frozen=True, slots=True)
class RdmaPort:
    """One port: ``name`` is ``mlx5_0/1``.

    ``netdevs`` are the interfaces on top of it, ``addresses`` the IP addresses its GIDs hold,
    ``rate`` bits/s, ``state`` and ``phys_state`` the words of the kernel (``ACTIVE``, ``LinkUp``).
    What cannot be read is empty or ``None``.
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
        return f"{self.device}/{self.number}"


def ib_ports(sys: Path, addresses: bool = True) -> list[RdmaPort]:
    """The ports of all devices; without ``addresses`` the GIDs (hundreds of files) stay unread."""
    folder = sys / "class/infiniband"
    return [
        _port(folder / device, number, addresses)
        for device in entries(folder)[0]
        for number in sorted(int(n) for n in entries(folder / device / "ports")[0] if n.isdecimal())
    ]


def rate(text: bytes | str) -> int | None:
    """``200 Gb/sec (4X HDR)`` in tenths of Gbit/s; raises ``ValueError`` for other text."""
    words = text.decode("ascii", "replace") if isinstance(text, bytes) else text
    if not (found := _RATE.match(words)):
        raise ValueError(f"{words[:40]!r} is no rate")
    return int(found[1]) * 10 + int(found[2] or "0")


def state_number(text: bytes) -> int:
    """``4: ACTIVE`` as 4; raises ``ValueError`` for other text."""
    if not (found := _STATE.match(text.decode("ascii", "replace"))):
        raise ValueError(f"{text[:40]!r} is no state")
    return int(found[1])


def ip_of_gid(gid: str) -> str:
    """The IP address a GID holds; "" for one that is none (an InfiniBand GUID, an empty entry)."""
    try:
        address = ipaddress.IPv6Address(gid)
    except ValueError:
        return ""
    if int(address) >> 32 == _MAPPED:
        return str(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
    # every port has link-local ones made of its hardware address
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
    """Interface and GID of each entry of the table that belongs to an interface."""
    for entry in sorted(entries(port / "gid_attrs/ndevs")[0], key=lambda name: (len(name), name)):
        if name := read_text(port / "gid_attrs/ndevs" / entry):
            yield name, read_text(port / "gids" / entry)


def _interfaces(device: Path, number: int) -> Iterator[str]:
    """The interfaces of the same PCI device that sit on this port."""
    ports = len(entries(device / "ports")[0])
    folder = device / "device/net"
    for name in entries(folder)[0]:
        place = read_text(folder / name / "dev_port")
        if ports == 1 or (place.isdecimal() and int(place) == number - 1):
            yield name


def _word(text: str) -> str:
    """``4: ACTIVE`` as ``ACTIVE``."""
    return text.partition(":")[2].strip() or text
