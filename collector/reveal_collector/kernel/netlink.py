"""Dumps over a netlink socket: a question in, the kernel's messages out (netlink(7))."""

from __future__ import annotations

import errno
import os
import socket
import struct
from collections.abc import Iterator

from reveal_collector.kernel.errors import ParseError

_REQUEST_DUMP = 0x301  # NLM_F_REQUEST | NLM_F_DUMP
_ERROR, _DONE = 2, 3  # nlmsghdr.nlmsg_type
_HEADER = struct.Struct("=IHHII")
_ATTRIBUTE = struct.Struct("=HH")
_KIND = 0x3FFF  # NLA_TYPE_MASK: without the flags
_BUFFER = 1 << 17
_TIMEOUT = 1.0  # seconds


class NetlinkSocket:
    """One socket of a netlink protocol, to be opened; only its network namespace is seen."""

    def __init__(self, protocol: int) -> None:
        self._protocol = protocol
        self._socket: socket.socket | None = None
        self._sequence = 0

    def open(self) -> None:
        """Also anew: a dump that was begun cannot be called off."""
        self.close()
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, self._protocol)
        self._socket.settimeout(_TIMEOUT)

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def dump(self, kind: int, body: bytes) -> Iterator[bytes]:
        """The bodies of the messages that answer a request; raises what the kernel refuses."""
        if self._socket is None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        self._sequence += 1
        size = _HEADER.size + len(body)
        self._socket.send(_HEADER.pack(size, kind, _REQUEST_DUMP, self._sequence, 0) + body)
        return self._messages(self._socket, self._sequence)

    def _messages(self, link: socket.socket, wanted: int) -> Iterator[bytes]:
        while True:
            for kind, sequence, body in split_messages(link.recv(_BUFFER)):
                if sequence != wanted:
                    continue  # the end of a dump given up
                if kind == _DONE:
                    return
                if kind == _ERROR:
                    code = -struct.unpack_from("=i", body)[0]
                    raise OSError(code, os.strerror(code))
                yield body


def split_messages(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Netlink messages of a datagram: type, sequence number, body."""
    at = 0
    while at + _HEADER.size <= len(data):
        length, kind, _, sequence, _ = _HEADER.unpack_from(data, at)
        if not _HEADER.size <= length <= len(data) - at:
            raise ParseError(f"netlink: a message claims {length} bytes")
        yield kind, sequence, data[at + _HEADER.size : at + length]
        at += (length + 3) & ~3


def find_attribute(data: bytes, at: int, wanted: int) -> bytes:
    """The first attribute of this type from ``at`` on; empty where there is none."""
    while at + _ATTRIBUTE.size <= len(data):
        length, kind = _ATTRIBUTE.unpack_from(data, at)
        if kind & _KIND == wanted:
            return data[at + _ATTRIBUTE.size : at + length]
        at += max((length + 3) & ~3, _ATTRIBUTE.size)
    return b""
