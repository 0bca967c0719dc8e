"""``/sys/class/net``: attributes of an interface that ``net/dev`` does not have.

Link state and its changes cost nothing and are read once a second: of cards, and of the ``eth0``
that stands for one in a node that is a container.  Other virtual interfaces are left out, because
their state says nothing about the host.  The host's end of a pod's veth pair goes down when the
pod ends, a bridge with its last pod, and bonds and VLANs with their cards.  Speed takes the RTNL
lock, and statistics may query the card, so both are read in the rare lane and only of cards.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from reveal_collector.readers.joined import NumberFiles
from reveal_collector.readers.source import Roots, Source
from reveal_collector.readers.textfile import channel
from reveal_contract.channels import Channel
from reveal_contract.metric import Lane

_LINK = {
    "carrier_changes": "carrier_changes",
    "carrier_down_count": "link_downed",  # since Linux 4.16
    "operstate": "up",
}
_STATISTICS = (
    "rx_crc_errors", "rx_missed_errors", "rx_length_errors", "rx_over_errors", "rx_nohandler",
    "tx_aborted_errors", "tx_window_errors",
)  # fmt: skip
_BITS_PER_MBIT = 1e6
_NO_CARD = "this host has only virtual network interfaces"


def sources(roots: Roots) -> list[Source]:
    folder = roots.sys / "class/net"
    return [
        NumberFiles("nic", Lane.SLOW, folder, lambda: dict(_links(folder)), _NO_CARD),
        NumberFiles("nicstats", Lane.RARE, folder, lambda: dict(_cards(folder)), _NO_CARD),
    ]


def _links(folder: Path) -> Iterator[tuple[Path, Channel]]:
    for path in sorted(folder.iterdir()):
        if path.name.startswith(("eth", "en")) or (path / "device").exists():
            for file, field in _LINK.items():
                yield path / file, channel(f"network.nic.{field}", path.name)


def _cards(folder: Path) -> Iterator[tuple[Path, Channel]]:
    for path in sorted(folder.iterdir()):
        if not (path / "device").exists():
            continue
        yield path / "speed", channel("network.nic.speed", path.name, _BITS_PER_MBIT)
        yield path / "mtu", channel("network.nic.mtu", path.name)
        for name in _STATISTICS:
            yield path / "statistics" / name, channel(f"network.nic.{name}", path.name)
