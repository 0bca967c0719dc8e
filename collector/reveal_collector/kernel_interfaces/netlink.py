"""Dump requests over a netlink socket (netlink(7))."""

from __future__ import annotations

import errno
import os
import socket
import struct
from collections.abc import Iterator

from reveal_collector.kernel_interfaces.errors import ParseError

_REQUEST_DUMP = 0x301  # NLM_F_REQUEST | NLM_F_DUMP
_ERROR, _DONE = 2, 3  # nlmsghdr.nlmsg_type
_HEADER = struct.Struct("=IHHII")
_ATTRIBUTE = struct.Struct("=HH")
_TYPE_MASK = 0x3FFF  # NLA_TYPE_MASK: without the flags
_BUFFER = 1 << 17
_TIMEOUT = 1.0  # seconds


class NetlinkSocket:
    """One socket of a netlink protocol; it covers only the network namespace it was opened in."""

    def __init__(self, protocol: int) -> None:
        self._protocol = protocol
        self._socket: socket.socket | None = None
        self._sequence = 0

    def open(self) -> None:
        """Open the socket, or reopen it: a dump that was started cannot be cancelled."""
        self.close()
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, self._protocol)
        self._socket.settimeout(_TIMEOUT)

    def close(self) -> None:
        """Close the socket."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def dump(self, message_type: int, body: bytes) -> Iterator[bytes]:
        """Send a dump request; return an iterator over the bodies of its messages.

        Raises the kernel's errors as ``OSError``.
        """
        if self._socket is None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        self._sequence += 1
        size = _HEADER.size + len(body)
        self._socket.send(_HEADER.pack(size, message_type, _REQUEST_DUMP, self._sequence, 0) + body)
        return self._messages(self._socket, self._sequence)

    def _messages(self, link: socket.socket, sequence_sent: int) -> Iterator[bytes]:
        while True:
            for message_type, sequence, body in split_messages(link.recv(_BUFFER)):
                if sequence != sequence_sent:
                    continue  # the rest of an abandoned dump
                if message_type == _DONE:
                    return
                if message_type == _ERROR:
                    code = -struct.unpack_from("=i", body)[0]
                    raise OSError(code, os.strerror(code))
                yield body


def split_messages(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Yield type, sequence number and body of each netlink message in a datagram."""
    offset = 0
    while offset + _HEADER.size <= len(data):
        length, message_type, _, sequence, _ = _HEADER.unpack_from(data, offset)
        if not _HEADER.size <= length <= len(data) - offset:
            raise ParseError(f"netlink: a message claims {length} bytes")
        yield message_type, sequence, data[offset + _HEADER.size : offset + length]
        offset += (length + 3) & ~3


def find_attribute(data: bytes, start: int, attribute_type: int) -> bytes:
    """Return the first attribute of this type from offset ``start`` on; empty if there is none."""
    offset = start
    while offset + _ATTRIBUTE.size <= len(data):
        length, found_type = _ATTRIBUTE.unpack_from(data, offset)
        if found_type & _TYPE_MASK == attribute_type:
            return data[offset + _ATTRIBUTE.size : offset + length]
        offset += max((length + 3) & ~3, _ATTRIBUTE.size)
    return b""
