"""Source: queue disciplines, where packets wait before an interface sends them.

No counter of the interface shows what a shaper delays (a bandwidth limit of a pod or an instance,
tc-tbf(8)) or what its full queue drops.  The source queries rtnetlink(7) with RTM_GETQDISC.  The
numbers are those of ``tc -s qdisc`` (gnet_stats_queue, linux/gen_stats.h) for the root of each
interface; the root of several queues sums over its children.  "noqueue" has no queue and no
columns.  Only the network namespace of the process is visible.

The kernel answers under the RTNL lock, which a driver holds while it waits for its device.
Therefore a thread of its own sends the query.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator, Sequence
from contextlib import suppress

from reveal_collector.kernel_interfaces.errors import LayoutChanged, Unsupported
from reveal_collector.kernel_interfaces.netlink import NetlinkSocket, find_attribute
from reveal_collector.readers.background import BackgroundSource
from reveal_collector.readers.source import Roots, Source
from reveal_collector.readers.textfile import channel
from reveal_contract.channels import Channel
from reveal_contract.metric import Lane

_GET_QDISC = 38  # RTM_GETQDISC
_TC = struct.Struct("=BBHiIII")  # tcmsg: family, .., ifindex, handle, parent, info
_ROOT = 0xFFFFFFFF  # TC_H_ROOT
_KIND, _STATS = 1, 7  # TCA_KIND, TCA_STATS2
_QUEUE = 3  # TCA_STATS_QUEUE
_QUEUE_STATS = struct.Struct("=IIIII")  # packets and bytes waiting, drops, requeues, overlimits
_REQUEST = _TC.pack(0, 0, 0, 0, 0, 0, 0)
_NOQUEUE = b"noqueue"
_METRICS = ("overlimits", "drops", "backlog")

QdiscNumbers = tuple[int, int, int]


def sources(roots: Roots) -> list[Source]:
    return [BackgroundSource(QueueDisciplines(roots.live))]


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
            raise Unsupported("queue disciplines can be queried only on the running machine itself")
        try:
            self._link.open()
            self._update_channels(dict(self._roots()))
        except OSError as error:
            self.close()
            reason = f"queue disciplines: {error.strerror or error}"
            raise Unsupported(reason, "use a kernel with CONFIG_NET_SCHED") from None

    def read(self) -> Sequence[int | None]:
        found = dict(self._roots())
        if list(found) != self._interfaces:
            self._update_channels(found)
            raise LayoutChanged(self.name)
        return [number for numbers in found.values() for number in numbers]

    def close(self) -> None:
        self._link.close()

    def _update_channels(self, found: dict[int, QdiscNumbers]) -> None:
        self._interfaces = list(found)
        self.channels = tuple(
            channel(f"network.qdisc.{metric}", _name(interface))
            for interface in found for metric in _METRICS
        )  # fmt: skip

    def _roots(self) -> Iterator[tuple[int, QdiscNumbers]]:
        try:
            for message in self._link.dump(_GET_QDISC, _REQUEST):
                _, _, _, interface, _, parent, _ = _TC.unpack_from(message)
                if parent == _ROOT and (numbers := parse_message(message)) is not None:
                    yield interface, numbers
        except (OSError, struct.error):
            with suppress(OSError):
                self._link.open()  # discard the rest of this dump: the next one must not read it
            raise


def parse_message(message: bytes) -> QdiscNumbers | None:
    """Return the numbers of a queue discipline; ``None`` if it has no queue or no counters."""
    if find_attribute(message, _TC.size, _KIND).rstrip(b"\0") == _NOQUEUE:
        return None
    queue = find_attribute(find_attribute(message, _TC.size, _STATS), 0, _QUEUE)
    if len(queue) < _QUEUE_STATS.size:
        return None
    _, waiting, drops, _, overlimits = _QUEUE_STATS.unpack_from(queue)
    return overlimits, drops, waiting


def _name(interface: int) -> str:
    try:
        return socket.if_indextoname(interface)
    except OSError:  # removed since the dump
        return str(interface)
