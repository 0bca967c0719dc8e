"""What a network card says of itself when asked by ioctl(SIOCETHTOOL), linux/ethtool.h.

Any user may ask.  The kernel takes the RTNL lock for each request and drivers may ask their
firmware: this is for the rare lane.  A card is seen in the caller's network namespace only.
"""

from __future__ import annotations

import array
import fcntl
import socket
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from reveal_collector.kernel.errors import ParseError

_SIOCETHTOOL = 0x8946
_GDRVINFO, _GRINGPARAM, _GSTRINGS, _GSTATS = 0x03, 0x10, 0x1B, 0x1D
_GSSET_INFO, _GCHANNELS = 0x37, 0x3C
_SS_STATS = 1
_NAME = 32  # bytes of each name
_IFREQ = struct.Struct("16sP16x")  # name, pointer; a union makes up the rest
_DRIVER = struct.Struct("=I32s32s32s32s32s12sIIIII")
_RINGS = struct.Struct("=9I")  # cmd, 4 maxima, 4 settings: rx, mini, jumbo, tx
_CHANNELS = struct.Struct("=9I")  # cmd, 4 maxima, 4 settings: rx, tx, other, combined
_SSETS = struct.Struct("=IIQI")
_COUNTED = struct.Struct("=III")  # cmd, string set, count
_STATS = struct.Struct("=II")
_MOST_STATS = 65_536


@dataclass(frozen=True, slots=True)
class CurrentAndMaximum:
    """A setting and the most it can be."""

    now: int
    maximum: int


@dataclass(frozen=True, slots=True)
class NetworkCard:
    """Driver, firmware, ring sizes and queues of one card; ``None`` where it does not say."""

    driver: str
    version: str
    firmware: str
    bus: str
    rx_ring: CurrentAndMaximum | None
    tx_ring: CurrentAndMaximum | None
    queues: CurrentAndMaximum | None


class Ethtool:
    """Asks cards by name; raises ``OSError`` for what a card or driver does not answer."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)

    def close(self) -> None:
        self._socket.close()

    def statistics(self, name: str) -> dict[str, int]:
        """The driver's counters by its own names."""
        count = counters_of(self._ask(name, _SSETS.pack(_GSSET_INFO, 0, 1 << _SS_STATS, 0)))
        if not count:
            return {}
        head = _COUNTED.pack(_GSTRINGS, _SS_STATS, count)
        names = names_of(self._ask(name, head + bytes(count * _NAME)))
        values = values_of(self._ask(name, _STATS.pack(_GSTATS, count) + bytes(count * 8)))
        return dict(zip(names, values, strict=False))

    def card(self, name: str) -> NetworkCard:
        """What the card is and how it is set up."""
        answer = self._ask(name, _DRIVER.pack(_GDRVINFO, *(b"",) * 6, *(0,) * 5))
        driver, version, firmware, bus = driver_of(answer)
        rings = self._numbers(name, _RINGS, _GRINGPARAM)
        queues = self._numbers(name, _CHANNELS, _GCHANNELS)
        return NetworkCard(
            driver, version, firmware, bus,
            rx_ring=CurrentAndMaximum(rings[5], rings[1]) if rings else None,
            tx_ring=CurrentAndMaximum(rings[8], rings[4]) if rings else None,
            queues=queues_of(queues) if queues else None,
        )  # fmt: skip

    def _numbers(self, name: str, shape: struct.Struct, command: int) -> tuple[int, ...] | None:
        try:
            answer = self._ask(name, shape.pack(command, *(0,) * 8))
        except OSError:
            return None
        return tuple(shape.unpack(answer))

    def _ask(self, name: str, request: bytes) -> bytes:
        """One request; the kernel writes its answer over it."""
        buffer = array.array("B", request)
        address, _ = buffer.buffer_info()
        fcntl.ioctl(self._socket, _SIOCETHTOOL, _IFREQ.pack(name.encode()[:15], address))
        return buffer.tobytes()


def counters_of(answer: bytes) -> int:
    """How many counters the driver has (ethtool_sset_info with the one set asked for)."""
    _, _, sets, count = _SSETS.unpack(answer)
    if sets & (1 << _SS_STATS) == 0:
        return 0
    if count > _MOST_STATS:
        raise ParseError(f"a driver claims {count} counters")
    return int(count)


def names_of(answer: bytes) -> list[str]:
    """The names of an ethtool_gstrings: 32 bytes each, ended by NUL."""
    _, _, count = _COUNTED.unpack_from(answer)
    body = answer[_COUNTED.size :]
    if count * _NAME > len(body):
        raise ParseError(f"{count} names in {len(body)} bytes")
    return [_text(body[at * _NAME : (at + 1) * _NAME]) for at in range(count)]


def values_of(answer: bytes) -> Sequence[int]:
    """The counters of an ethtool_stats: 64 bits each."""
    _, count = _STATS.unpack_from(answer)
    if count * 8 > len(answer) - _STATS.size:
        raise ParseError(f"{count} counters in {len(answer)} bytes")
    return struct.unpack_from(f"={count}Q", answer, _STATS.size)


def driver_of(answer: bytes) -> tuple[str, str, str, str]:
    """Driver, its version, firmware and bus address of an ethtool_drvinfo."""
    _, driver, version, firmware, bus, *_ = _DRIVER.unpack(answer)
    return _text(driver), _text(version), _text(firmware), _text(bus)


def queues_of(numbers: Sequence[int]) -> CurrentAndMaximum:
    """Receive queues of an ethtool_channels: combined ones, and those that only receive."""
    _, rx_most, _, _, combined_most, rx, _, _, combined = numbers
    return CurrentAndMaximum(rx + combined, max(rx_most, combined_most))


def _text(data: bytes) -> str:
    return data.partition(b"\0")[0].decode("ascii", "replace").strip()
