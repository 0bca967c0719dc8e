"""Data of network cards from ioctl(SIOCETHTOOL), linux/ethtool.h.

Any user may request them.  The kernel takes the RTNL lock for each request, and drivers may query
their firmware: use this in the rare lane only.  A card is visible in its own network namespace
only.
"""

from __future__ import annotations

import array
import fcntl
import os
import socket
import struct
from collections.abc import Sequence
from dataclasses import dataclass

from reveal_collector.kernel_interfaces.errors import ParseError

_SIOCETHTOOL = 0x8946
_GDRVINFO, _GRINGPARAM, _GSTRINGS, _GSTATS = 0x03, 0x10, 0x1B, 0x1D
_GSSET_INFO, _GCHANNELS = 0x37, 0x3C
_SS_STATS = 1
_NAME = 32  # bytes of each name
_IFREQ = struct.Struct("16sP16x")  # name, pointer; the rest is padding of a union
_DRIVER = struct.Struct("=I32s32s32s32s32s12sIIIII")
_RINGS = struct.Struct("=9I")  # cmd, 4 maxima, 4 settings: rx, mini, jumbo, tx
_CHANNELS = struct.Struct("=9I")  # cmd, 4 maxima, 4 settings: rx, tx, other, combined
_SSETS = struct.Struct("=IIQI")
_COUNTED = struct.Struct("=III")  # cmd, string set, count
_STATS = struct.Struct("=II")
_MOST_STATS = 65_536


@dataclass(frozen=True, slots=True)
class CurrentAndMaximum:
    """A setting and its maximum."""

    current: int
    maximum: int


@dataclass(frozen=True, slots=True)
class NetworkCard:
    """Driver, firmware, ring sizes and queues of one card; ``None`` without a value."""

    driver: str
    version: str
    firmware: str
    bus: str
    rx_ring: CurrentAndMaximum | None
    tx_ring: CurrentAndMaximum | None
    queues: CurrentAndMaximum | None


class Ethtool:
    """Queries cards by name; raises ``OSError`` for requests that a driver does not support."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def statistics(self, name: str) -> dict[str, int]:
        """Return the driver's counters by the driver's own names."""
        count = counters_of(self._request(name, _SSETS.pack(_GSSET_INFO, 0, 1 << _SS_STATS, 0)))
        if not count:
            return {}
        head = _COUNTED.pack(_GSTRINGS, _SS_STATS, count)
        names = names_of(self._request(name, head + bytes(count * _NAME)))
        values = values_of(self._request(name, _STATS.pack(_GSTATS, count) + bytes(count * 8)))
        return dict(zip(names, values, strict=False))

    def card(self, name: str) -> NetworkCard:
        """Return the identity and the settings of a card."""
        answer = self._request(name, _DRIVER.pack(_GDRVINFO, *(b"",) * 6, *(0,) * 5))
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
            answer = self._request(name, shape.pack(command, *(0,) * 8))
        except OSError:
            return None
        return tuple(shape.unpack(answer))

    def _request(self, name: str, request: bytes) -> bytes:
        """Send one request; the kernel overwrites it with the answer."""
        buffer = array.array("B", request)
        address, _ = buffer.buffer_info()
        fcntl.ioctl(self._socket, _SIOCETHTOOL, _IFREQ.pack(os.fsencode(name)[:15], address))
        return buffer.tobytes()


def counters_of(answer: bytes) -> int:
    """Return the number of the driver's counters (ethtool_sset_info with the one requested set)."""
    _, _, sets, count = _SSETS.unpack(answer)
    if sets & (1 << _SS_STATS) == 0:
        return 0
    if count > _MOST_STATS:
        raise ParseError(f"a driver claims {count} counters")
    return int(count)


def names_of(answer: bytes) -> list[str]:
    """Return the names in an ethtool_gstrings: 32 bytes each, terminated by NUL."""
    _, _, count = _COUNTED.unpack_from(answer)
    body = answer[_COUNTED.size :]
    if count * _NAME > len(body):
        raise ParseError(f"{count} names in {len(body)} bytes")
    return [_text(body[index * _NAME : (index + 1) * _NAME]) for index in range(count)]


def values_of(answer: bytes) -> Sequence[int]:
    """Return the counters in an ethtool_stats: 64 bits each."""
    _, count = _STATS.unpack_from(answer)
    if count * 8 > len(answer) - _STATS.size:
        raise ParseError(f"{count} counters in {len(answer)} bytes")
    return struct.unpack_from(f"={count}Q", answer, _STATS.size)


def driver_of(answer: bytes) -> tuple[str, str, str, str]:
    """Return driver, version, firmware and bus address of an ethtool_drvinfo."""
    _, driver, version, firmware, bus, *_ = _DRIVER.unpack(answer)
    return _text(driver), _text(version), _text(firmware), _text(bus)


def queues_of(numbers: Sequence[int]) -> CurrentAndMaximum:
    """Return the receive queues of an ethtool_channels: combined queues and receive-only ones."""
    _, rx_most, _, _, combined_most, rx, _, _, combined = numbers
    return CurrentAndMaximum(rx + combined, max(rx_most, combined_most))


def _text(data: bytes) -> str:
    return data.partition(b"\0")[0].decode("ascii", "surrogateescape").strip()
