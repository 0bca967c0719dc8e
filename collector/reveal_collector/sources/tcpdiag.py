"""TCP sockets by state, and what their connections have in flight, asked through inet_diag.

``/proc/net/tcp`` would format every socket as text and walk the same table (4 ms with one
socket); sock_diag(7) hands out binary records.  The kernel still walks the whole hash table, so
this is a matter for the rare lane, and it ends at a number of sockets.  Sockets in TIME-WAIT
are left out (``sockstat`` counts them).  Only the reader's network namespace is seen.

What is in flight is told of connections that a program holds.  One whose program closed it, or
died, with data that nobody acknowledges is tried again by the kernel for minutes: it is counted
by its state, and what it loses nobody waits for.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
from collections.abc import Iterator, Sequence

from reveal_collector.source import ParseError, Roots, Source, Unsupported
from reveal_collector.textfile import channel
from reveal_contract.channels import Channel
from reveal_contract.metric import Lane

_NETLINK_SOCK_DIAG, _SOCK_DIAG_BY_FAMILY, _INET_DIAG_INFO = 4, 20, 2
_REQUEST_DUMP = 0x301  # NLM_F_REQUEST | NLM_F_DUMP
_ERROR, _DONE = 2, 3  # nlmsghdr.nlmsg_type
_HEADER = struct.Struct("=IHHII")
_REQUEST = struct.Struct("=BBBxI48x")  # family, protocol, extensions, states, socket id
_MESSAGE = struct.Struct("=BBBB48xIIIII")  # family, state, .., expires, rqueue, wqueue, uid, inode
_ATTRIBUTE = struct.Struct("=HH")
_IN_FLIGHT = struct.Struct("=24xIIII")  # tcp_info: unacked, sacked, lost, retrans
_STATES = {
    1: "established", 2: "syn_sent", 3: "syn_recv", 4: "fin_wait1", 5: "fin_wait2", 7: "close",
    8: "close_wait", 9: "last_ack", 10: "listen", 11: "closing", 12: "syn_recv",
}  # fmt: skip
_LISTEN, _TIME_WAIT = 10, 6
_CLOSING = (4, 5, 9, 11)  # without an inode, no program holds it any more
_MASK = sum(1 << state for state in _STATES if state != _TIME_WAIT)
_SUMS = ("unacked", "lost_out", "retrans_out", "send_queue", "receive_queue", "accept_queue")
_BUFFER = 1 << 17
_TIMEOUT = 1.0  # seconds
MOST_SOCKETS = 20_000


def sources(roots: Roots) -> list[Source]:
    return [TcpDiag(roots.live)]


class TcpDiag:
    """One netlink socket; each read dumps IPv4 and IPv6 sockets."""

    name, lane = "tcpdiag", Lane.RARE

    def __init__(self, live: bool) -> None:
        self.channels: tuple[Channel, ...] = ()
        self._live = live
        self._socket: socket.socket | None = None
        self._sequence = 0

    def open(self) -> None:
        if not self._live:
            raise Unsupported("sockets can be asked for on the machine itself only")
        try:
            self._renew()
            next(self._dump(socket.AF_INET), None)  # whether it is answered at all
            self._renew()
        except OSError as error:
            self.close()
            raise Unsupported(
                f"inet_diag: {error.strerror or error}", "a kernel with CONFIG_INET_TCP_DIAG"
            ) from None
        states = dict.fromkeys(_STATES.values())
        self.channels = tuple(channel(f"network.tcp.state.{state}") for state in states) + tuple(
            channel(f"network.tcp.{name}") for name in _SUMS
        )

    def read(self) -> Sequence[int | None]:
        counts = dict.fromkeys(_STATES.values(), 0)
        sums = dict.fromkeys(_SUMS, 0)
        for family in (socket.AF_INET, socket.AF_INET6):
            for message in self._dump(family):
                _count(message, counts, sums)
                if sum(counts.values()) > MOST_SOCKETS:
                    self._renew()
                    raise OSError(errno.E2BIG, f"more than {MOST_SOCKETS} TCP sockets")
        return [*counts.values(), *sums.values()]

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _renew(self) -> None:
        """A new socket, for a dump that was begun cannot be called off."""
        self.close()
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _NETLINK_SOCK_DIAG)
        self._socket.settimeout(_TIMEOUT)

    def _dump(self, family: int) -> Iterator[bytes]:
        """The inet_diag messages of one address family."""
        if self._socket is None:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        self._sequence += 1
        body = _REQUEST.pack(family, socket.IPPROTO_TCP, 1 << (_INET_DIAG_INFO - 1), _MASK)
        head = _HEADER.pack(
            _HEADER.size + len(body), _SOCK_DIAG_BY_FAMILY, _REQUEST_DUMP, self._sequence, 0
        )
        self._socket.send(head + body)
        return self._messages(self._socket, self._sequence)

    def _messages(self, link: socket.socket, wanted: int) -> Iterator[bytes]:
        while True:
            for kind, sequence, body in split(link.recv(_BUFFER)):
                if sequence != wanted:
                    continue  # the end of a dump given up
                if kind == _DONE:
                    return
                if kind == _ERROR:
                    code = -struct.unpack_from("=i", body)[0]
                    raise OSError(code, os.strerror(code))
                yield body


def split(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Netlink messages of a datagram: type, sequence number, body."""
    at = 0
    while at + _HEADER.size <= len(data):
        length, kind, _, sequence, _ = _HEADER.unpack_from(data, at)
        if not _HEADER.size <= length <= len(data) - at:
            raise ParseError(f"inet_diag: a message claims {length} bytes")
        yield kind, sequence, data[at + _HEADER.size : at + length]
        at += (length + 3) & ~3


def _count(message: bytes, counts: dict[str, int], sums: dict[str, int]) -> None:
    """Add one socket."""
    if len(message) < _MESSAGE.size:
        raise ParseError(f"inet_diag: a socket of {len(message)} bytes")
    _, state, _, _, _, received, sent, _, inode = _MESSAGE.unpack_from(message)
    counts[_STATES.get(state, "close")] += 1
    if not inode and state in _CLOSING:
        return
    if state == _LISTEN:
        sums["accept_queue"] += received
        return
    sums["receive_queue"] += received
    sums["send_queue"] += sent
    info = _info(message)
    if len(info) >= _IN_FLIGHT.size:
        unacked, _, lost, retrans = _IN_FLIGHT.unpack_from(info)
        sums["unacked"] += unacked
        sums["lost_out"] += lost
        sums["retrans_out"] += retrans


def _info(message: bytes) -> bytes:
    """The tcp_info attribute; empty where the kernel sent none."""
    at = _MESSAGE.size
    while at + _ATTRIBUTE.size <= len(message):
        length, kind = _ATTRIBUTE.unpack_from(message, at)
        if kind == _INET_DIAG_INFO:
            return message[at + _ATTRIBUTE.size : at + length]
        at += max((length + 3) & ~3, _ATTRIBUTE.size)
    return b""
