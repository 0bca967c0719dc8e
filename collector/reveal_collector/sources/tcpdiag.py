"""TCP sockets by state, and the data in flight of their connections, through inet_diag.

``/proc/net/tcp`` formats every socket as text and walks the same table (4 ms with one socket);
sock_diag(7) returns binary records.  The kernel still walks the whole hash table, so the source
is in the rare lane and stops at a number of sockets.  Sockets in TIME-WAIT are left out, as
``sockstat`` counts them.  Only the network namespace of the process is visible.

Data in flight covers connections that a process owns.  After a process closed its connection or
ended, the kernel retries unacknowledged data for minutes.  Such a connection is counted only by
its state, because nobody waits for its losses.
"""

from __future__ import annotations

import errno
import socket
import struct
from collections.abc import Iterator, Sequence

from reveal_collector.kernel_interfaces.errors import ParseError, Unsupported
from reveal_collector.kernel_interfaces.netlink import NetlinkSocket, find_attribute
from reveal_collector.readers.source import Roots, Source
from reveal_collector.readers.textfile import channel
from reveal_contract.channels import Channel
from reveal_contract.metric import Lane

_NETLINK_SOCK_DIAG, _SOCK_DIAG_BY_FAMILY, _INET_DIAG_INFO = 4, 20, 2
_REQUEST = struct.Struct("=BBBxI48x")  # family, protocol, extensions, states, socket id
_MESSAGE = struct.Struct("=BBBB48xIIIII")  # family, state, .., expires, rqueue, wqueue, uid, inode
_IN_FLIGHT = struct.Struct("=24xIIII")  # tcp_info: unacked, sacked, lost, retrans
_STATES = {
    1: "established", 2: "syn_sent", 3: "syn_recv", 4: "fin_wait1", 5: "fin_wait2", 7: "close",
    8: "close_wait", 9: "last_ack", 10: "listen", 11: "closing", 12: "syn_recv",
}  # fmt: skip
_LISTEN, _TIME_WAIT = 10, 6
_CLOSING = (4, 5, 9, 11)  # without an inode, no process owns the socket any more
_STATE_MASK = sum(1 << state for state in _STATES if state != _TIME_WAIT)
_SUMS = ("unacked", "lost_out", "retrans_out", "send_queue", "receive_queue", "accept_queue")
MAX_SOCKETS = 20_000


def sources(roots: Roots) -> list[Source]:
    return [TcpDiag(roots.live)]


class TcpDiag:
    """One netlink socket; each read dumps IPv4 and IPv6 sockets."""

    name, lane = "tcpdiag", Lane.RARE

    def __init__(self, live: bool) -> None:
        self.channels: tuple[Channel, ...] = ()
        self._live = live
        self._link = NetlinkSocket(_NETLINK_SOCK_DIAG)

    def open(self) -> None:
        if not self._live:
            raise Unsupported("sockets can be queried only on the running machine itself")
        try:
            self._link.open()
            next(self._dump(socket.AF_INET), None)  # check that the kernel answers
            self._link.open()
        except OSError as error:
            self.close()
            raise Unsupported(
                f"inet_diag: {error.strerror or error}", "use a kernel with CONFIG_INET_TCP_DIAG"
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
                _add_socket(message, counts, sums)
                if sum(counts.values()) > MAX_SOCKETS:
                    self._link.open()
                    raise OSError(errno.E2BIG, f"more than {MAX_SOCKETS} TCP sockets")
        return [*counts.values(), *sums.values()]

    def close(self) -> None:
        self._link.close()

    def _dump(self, family: int) -> Iterator[bytes]:
        """Return the inet_diag messages of one address family."""
        body = _REQUEST.pack(family, socket.IPPROTO_TCP, 1 << (_INET_DIAG_INFO - 1), _STATE_MASK)
        return self._link.dump(_SOCK_DIAG_BY_FAMILY, body)


def _add_socket(message: bytes, counts: dict[str, int], sums: dict[str, int]) -> None:
    """Add one socket to the counts and sums."""
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
    info = find_attribute(message, _MESSAGE.size, _INET_DIAG_INFO)
    if len(info) >= _IN_FLIGHT.size:
        unacked, _, lost, retrans = _IN_FLIGHT.unpack_from(info)
        sums["unacked"] += unacked
        sums["lost_out"] += lost
        sums["retrans_out"] += retrans
