"""Source: the queue disciplines that packets wait in before an interface sends them.

What a shaper holds back (a bandwidth limit of a pod, of an instance, tc-tbf(8)) and what its full
queue drops is in no counter of the interface.  Asked through rtnetlink(7), RTM_GETQDISC; numbers
are those of ``tc -s qdisc`` (gnet_stats_queue, linux/gen_stats.h), of the root of each interface:
that of many queues adds up its children.  "noqueue" queues nothing and has no columns.  Only the
reader's network namespace is seen.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator, Sequence
from contextlib import suppress

from reveal_collector.kernel.errors import LayoutChanged, Unsupported
from reveal_collector.kernel.netlink import NetlinkSocket, find_attribute
from reveal_collector.readers.source import Roots, Source
from reveal_collector.readers.textfile import channel
from reveal_contract.channels import Channel
from reveal_contract.metric import Lane

_GET_QDISC = 38  # RTM_GETQDISC
_TC = struct.Struct("=BBHiIII")  # tcmsg: family, .., ifindex, handle, parent, info
_ROOT = 0xFFFFFFFF  # TC_H_ROOT
_KIND, _STATS = 1, 7  # TCA_KIND, TCA_STATS2
_QUEUE = 3  # TCA_STATS_QUEUE
_NUMBERS = struct.Struct("=IIIII")  # packets and bytes waiting, drops, requeues, overlimits
_ASK = _TC.pack(0, 0, 0, 0, 0, 0, 0)
_NONE = b"noqueue"
_METRICS = ("overlimits", "drops", "backlog")

Numbers = tuple[int, int, int]


def sources(roots: Roots) -> list[Source]:
    return [QueueDisciplines(roots.live)]


class QueueDisciplines:
    """One netlink socket; each read dumps the queue disciplines."""

    name, lane = "qdisc", Lane.SLOW

    def __init__(self, live: bool) -> None:
        self.channels: tuple[Channel, ...] = ()
        self._live = live
        self._link = NetlinkSocket(socket.NETLINK_ROUTE)
        self._interfaces: list[int] = []

    def open(self) -> None:
        if not self._live:
            raise Unsupported("queue disciplines can be asked for on the machine itself only")
        try:
            self._link.open()
            self._learn(dict(self._roots()))
        except OSError as error:
            self.close()
            reason = f"queue disciplines: {error.strerror or error}"
            raise Unsupported(reason, "a kernel with CONFIG_NET_SCHED") from None

    def read(self) -> Sequence[int | None]:
        found = dict(self._roots())
        if list(found) != self._interfaces:
            self._learn(found)
            raise LayoutChanged(self.name)
        return [number for numbers in found.values() for number in numbers]

    def close(self) -> None:
        self._link.close()

    def _learn(self, found: dict[int, Numbers]) -> None:
        self._interfaces = list(found)
        self.channels = tuple(
            channel(f"network.qdisc.{metric}", _name(interface))
            for interface in found for metric in _METRICS
        )  # fmt: skip

    def _roots(self) -> Iterator[tuple[int, Numbers]]:
        try:
            for message in self._link.dump(_GET_QDISC, _ASK):
                _, _, _, interface, _, parent, _ = _TC.unpack_from(message)
                if parent == _ROOT and (numbers := numbers_of(message)) is not None:
                    yield interface, numbers
        except (OSError, struct.error):
            with suppress(OSError):
                self._link.open()  # what is left of this dump is not the next one's
            raise


def numbers_of(message: bytes) -> Numbers | None:
    """What a queue discipline counts; nothing of one that queues nothing, or counts nothing."""
    if find_attribute(message, _TC.size, _KIND).rstrip(b"\0") == _NONE:
        return None
    queue = find_attribute(find_attribute(message, _TC.size, _STATS), 0, _QUEUE)
    if len(queue) < _NUMBERS.size:
        return None
    _, waiting, drops, _, overlimits = _NUMBERS.unpack_from(queue)
    return overlimits, drops, waiting


def _name(interface: int) -> str:
    try:
        return socket.if_indextoname(interface)
    except OSError:  # gone since
        return str(interface)
