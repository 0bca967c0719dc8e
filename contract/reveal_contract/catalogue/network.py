"""Catalogue rows: network interfaces, sockets, receive queues; ``protocols`` has the counters."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from reveal_contract.bounds import Bounds
from reveal_contract.metric import Harm, Kind, Lane, Metric, Role, Scope, Subsystem

_NIC = partial(
    Metric, unit="packets", kind=Kind.COUNTER, subsystem=Subsystem.NETWORK, scope=Scope.NIC,
    source="netdev", lane=Lane.FAST, quantum=100,
)  # fmt: skip
_BYTES = partial(_NIC, unit="bytes", quantum=5e4)
_LOSS = partial(_NIC, quantum=3, harm=Harm.HIGHER)
_LINK = partial(_NIC, source="nic", lane=Lane.SLOW, quantum=1)
_CARD = partial(_NIC, source="nicstats", lane=Lane.RARE, quantum=3, harm=Harm.HIGHER)
_QDISC = partial(_LOSS, source="qdisc", lane=Lane.SLOW)
_SOFTNET = partial(
    Metric, unit="events", kind=Kind.COUNTER, subsystem=Subsystem.NETWORK, scope=Scope.CPU,
    source="softnet", lane=Lane.SLOW,
)  # fmt: skip
_SOCKETS = partial(
    Metric, kind=Kind.GAUGE, subsystem=Subsystem.NETWORK, scope=Scope.NODE, source="sockstat",
    lane=Lane.SLOW,
)  # fmt: skip
_STATES = partial(
    Metric, unit="sockets", kind=Kind.GAUGE, subsystem=Subsystem.NETWORK, scope=Scope.NODE,
    source="tcpdiag", lane=Lane.RARE, quantum=5,
)  # fmt: skip
# Mbit/s of a link without a speed: -1, as a u32 or as a u16 (ethtool's SPEED_UNKNOWN)
_LINK_SPEED = Bounds(1e6, 1e13, unknown=65_535e6)

_INTERFACES = (
    _BYTES("network.nic.rx_bytes", origin="rx_bytes (rxkB/s)", meaning="Bytes received"),
    _NIC("network.nic.rx_packets", origin="rx_packets (rxpck/s)", meaning="Packets received"),
    _LOSS("network.nic.rx_errs", origin="rx_errors", meaning="Damaged packets received"),
    _LOSS(
        "network.nic.rx_drop", origin="rx_dropped",
        meaning="Intact packets dropped before they reached a protocol",
    ),
    _LOSS(
        "network.nic.rx_fifo", origin="rx_fifo_errors",
        meaning="Packets lost because the buffer of the card was full",
    ),
    _LOSS("network.nic.rx_frame", origin="rx_frame_errors", meaning="Packets with framing errors"),
    _NIC(
        "network.nic.rx_compressed", origin="rx_compressed",
        meaning="Compressed packets received",
    ),
    _NIC("network.nic.rx_multicast", origin="multicast", meaning="Multicast packets received"),
    _BYTES("network.nic.tx_bytes", origin="tx_bytes (txkB/s)", meaning="Bytes sent"),
    _NIC("network.nic.tx_packets", origin="tx_packets (txpck/s)", meaning="Packets sent"),
    _LOSS("network.nic.tx_errs", origin="tx_errors", meaning="Packets that could not be sent"),
    _LOSS("network.nic.tx_drop", origin="tx_dropped", meaning="Packets dropped instead of sent"),
    _LOSS(
        "network.nic.tx_fifo", origin="tx_fifo_errors",
        meaning="Underruns of the send queue of the card",
    ),
    _LOSS("network.nic.tx_colls", origin="collisions", meaning="Collisions on a shared link"),
    _LOSS(
        "network.nic.tx_carrier", origin="tx_carrier_errors",
        meaning="Losses of the carrier while sending",
    ),
    _NIC("network.nic.tx_compressed", origin="tx_compressed", meaning="Compressed packets sent"),
    _LINK(
        "network.nic.carrier_changes", unit="events", origin="carrier_changes", harm=Harm.HIGHER,
        meaning="Times that the link of a card went up or down",
    ),
    _LINK(
        "network.nic.link_downed", unit="events", origin="carrier_down_count", harm=Harm.HIGHER,
        meaning="Times that a card lost its link",
    ),
    _LINK(
        "network.nic.up", unit="state", kind=Kind.STATE, origin="operstate", quantum=0.05,
        harm=Harm.LOWER, meaning="Whether the card can carry packets: 1 up, 0 down",
    ),
    _CARD(
        "network.nic.speed", unit="bits/s", kind=Kind.STATE, origin="speed", quantum=1e9,
        harm=Harm.LOWER, meaning="Negotiated speed of the link", bounds=_LINK_SPEED,
    ),
    _CARD(
        "network.nic.mtu", unit="bytes", kind=Kind.STATE, origin="mtu", quantum=100,
        harm=Harm.NEITHER, role=Role.STATIC,
        meaning="Largest packet that the interface sends without fragmentation",
    ),
    _CARD(
        "network.nic.rx_crc_errors", origin="rx_crc_errors",
        meaning="Packets with a wrong checksum",
    ),
    _CARD(
        "network.nic.rx_missed_errors", origin="rx_missed_errors",
        meaning="Packets lost because the host did not read the card in time",
    ),
    _CARD(
        "network.nic.rx_length_errors", origin="rx_length_errors",
        meaning="Packets with a wrong length",
    ),
    _CARD(
        "network.nic.rx_over_errors", origin="rx_over_errors",
        meaning="Overruns of the receive ring",
    ),
    _CARD(
        "network.nic.rx_nohandler", origin="rx_nohandler", harm=Harm.NEITHER,
        meaning="Packets dropped on an inactive interface because no protocol handles them",
    ),
    _CARD("network.nic.tx_aborted_errors", origin="tx_aborted_errors",
          meaning="Aborted transmissions"),
    _CARD("network.nic.tx_window_errors", origin="tx_window_errors", meaning="Late collisions"),
)  # fmt: skip

_QUEUES = (
    _SOFTNET(
        "network.softnet.processed", origin="softnet_stat processed", quantum=50,
        meaning="Packets processed from receive queues",
    ),
    _SOFTNET(
        "network.softnet.dropped", origin="softnet_stat dropped", quantum=3, harm=Harm.HIGHER,
        meaning="Packets dropped because the backlog of a CPU was full",
    ),
    _SOFTNET(
        "network.softnet.squeezed", origin="softnet_stat time_squeeze", quantum=3, harm=Harm.HIGHER,
        meaning="Times that receive processing stopped with packets left because its budget "
                "was used up",
    ),
    _SOFTNET(
        "network.softnet.received_rps", origin="softnet_stat received_rps", quantum=50,
        meaning="Times that another CPU woke this one to process its packets",
    ),
    _SOFTNET(
        "network.softnet.flow_limit", origin="softnet_stat flow_limit_count", quantum=3,
        harm=Harm.HIGHER, meaning="Packets of large flows dropped to protect small ones",
    ),
    _SOFTNET(
        "network.softnet.backlog", unit="packets", kind=Kind.GAUGE,
        origin="softnet_stat backlog_len", quantum=100, harm=Harm.HIGHER,
        meaning="Packets that wait in the backlog of a CPU",
    ),
)  # fmt: skip

_DISCIPLINES = (
    _QDISC(
        "network.qdisc.overlimits", unit="events", origin="tc -s qdisc: overlimits", quantum=20,
        meaning="Times that the queue discipline of an interface delayed packets to keep its rate",
    ),
    _QDISC(
        "network.qdisc.drops", origin="tc -s qdisc: dropped",
        meaning="Packets that the queue discipline of an interface dropped because its queue "
                "was full",
    ),
    _QDISC(
        "network.qdisc.backlog", unit="bytes", kind=Kind.GAUGE, origin="tc -s qdisc: backlog",
        quantum=1e5, harm=Harm.NEITHER,
        meaning="Bytes that wait in the queue discipline of an interface",
    ),
)  # fmt: skip

_STATE_NAMES = {
    "established": "ESTAB", "syn_sent": "SYN-SENT", "syn_recv": "SYN-RECV",
    "fin_wait1": "FIN-WAIT-1", "fin_wait2": "FIN-WAIT-2",
    "close": "UNCONN", "close_wait": "CLOSE-WAIT", "last_ack": "LAST-ACK", "listen": "LISTEN",
    "closing": "CLOSING",
}  # fmt: skip
_CONNECTIONS = (
    *(
        _STATES(
            f"network.tcp.state.{state}", origin=f"ss {label}", meaning=f"TCP sockets in {label}"
        )
        for state, label in _STATE_NAMES.items()
    ),
    _STATES(
        "network.tcp.unacked", unit="packets", origin="tcp_info unacked", quantum=100,
        meaning="Segments sent and not acknowledged, on connections with an owner process",
    ),
    _STATES(
        "network.tcp.lost_out", unit="packets", origin="tcp_info lost", quantum=3, harm=Harm.HIGHER,
        meaning="Segments currently considered lost, on connections with an owner process",
    ),
    _STATES(
        "network.tcp.retrans_out", unit="packets", origin="tcp_info retrans", quantum=3,
        harm=Harm.HIGHER,
        meaning="Segments retransmitted and not acknowledged, on connections with an owner "
                "process",
    ),
    _STATES(
        "network.tcp.accept_queue", unit="connections", origin="ss Recv-Q of LISTEN", quantum=5,
        harm=Harm.HIGHER, meaning="Connections that wait for a program to accept them",
    ),
    _STATES(
        "network.tcp.send_queue", unit="bytes", origin="ss Send-Q", quantum=1e6,
        meaning="Bytes that programs wrote and that are not acknowledged, on all connections",
    ),
    _STATES(
        "network.tcp.receive_queue", unit="bytes", origin="ss Recv-Q", quantum=1e6,
        meaning="Bytes received that programs have not read yet, on all connections",
    ),
)  # fmt: skip

ROWS: tuple[Metric, ...] = (*_INTERFACES, *_QUEUES, *_DISCIPLINES, *_CONNECTIONS)


def _sockets(name: str) -> Metric | None:
    """Return the row of ``network.sockets.PROTOCOL.FIELD`` of sockstat and sockstat6."""
    protocol, _, field = name.removeprefix("network.sockets.").partition(".")
    if not name.startswith("network.sockets.") or not field or "." in field:
        return None
    origin = f"{protocol.upper()} {field}"
    if field == "memory":
        return _SOCKETS(
            name, unit="bytes", quantum=512 * 4096, origin=f"{origin} (mem)",
            meaning=f"Memory of {protocol.upper()} socket buffers",
        )  # fmt: skip
    label = {"inuse": "in use", "tw": "in TIME-WAIT", "alloc": "allocated", "orphan": "orphaned"}
    return _SOCKETS(
        name, unit="sockets", quantum=5, origin=origin,
        meaning=f"{protocol.upper()} sockets {label.get(field, field)}",
    )  # fmt: skip


PATTERNS: tuple[Callable[[str], Metric | None], ...] = (_sockets,)
