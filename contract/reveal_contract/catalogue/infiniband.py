"""Catalogue rows: InfiniBand and RoCE ports."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

from reveal_contract.metric import Harm, Kind, Lane, Metric, Scope, Subsystem

_PORT = partial(
    Metric, unit="packets", kind=Kind.COUNTER, subsystem=Subsystem.NETWORK, scope=Scope.PORT,
    source="infiniband", lane=Lane.FAST, quantum=100,
)  # fmt: skip
_BYTES = partial(_PORT, unit="bytes", quantum=5e5)
_STATE = partial(
    _PORT, unit="state", kind=Kind.STATE, source="infiniband-errors", lane=Lane.SLOW, quantum=1
)
_ERRORS = partial(
    _PORT, unit="errors", source="infiniband-errors", lane=Lane.SLOW, quantum=1, harm=Harm.HIGHER
)
_LOST = partial(_ERRORS, unit="packets")
_DRIVER = partial(_ERRORS, unit="events", quantum=3)

_PORTS = (
    _BYTES("network.infiniband.rx_bytes", origin="port_rcv_data",
           meaning="Bytes that the port received"),
    _BYTES("network.infiniband.tx_bytes", origin="port_xmit_data",
           meaning="Bytes that the port sent"),
    _PORT("network.infiniband.rx_packets", origin="port_rcv_packets",
          meaning="Packets that the port received"),
    _PORT("network.infiniband.tx_packets", origin="port_xmit_packets",
          meaning="Packets that the port sent"),
    _STATE("network.infiniband.state", origin="state", harm=Harm.LOWER,
           meaning="State of the port: 1 down, 2 initializing, 3 armed, 4 active"),
    _STATE("network.infiniband.phys_state", origin="phys_state",
           meaning="Physical state: 2 polling, 3 disabled, 5 link up, 6 recovering"),
    _STATE("network.infiniband.rate", unit="bits/s", origin="rate", quantum=1e9, harm=Harm.LOWER,
           meaning="Rate of the port: number of lanes times their speed"),
    _ERRORS("network.infiniband.symbol_error", origin="symbol_error", quantum=10, weight=0.5,
            meaning="Damaged symbols on the wire, caused by a bad cable or module"),
    _ERRORS("network.infiniband.link_error_recovery", unit="events",
            origin="link_error_recovery", meaning="Times that the link recovered from errors"),
    _ERRORS("network.infiniband.link_downed", unit="events", origin="link_downed",
            meaning="Times that the link did not recover and went down"),
    _LOST("network.infiniband.port_rcv_errors", origin="port_rcv_errors",
          meaning="Damaged or malformed packets received"),
    _LOST("network.infiniband.port_rcv_remote_physical_errors",
          origin="port_rcv_remote_physical_errors",
          meaning="Packets that were marked as damaged before they arrived"),
    _LOST("network.infiniband.port_rcv_switch_relay_errors",
          origin="port_rcv_switch_relay_errors",
          meaning="Packets that a switch could not forward"),
    _LOST("network.infiniband.port_xmit_discards", origin="port_xmit_discards", quantum=3,
          meaning="Packets discarded because the port was down or congested"),
    _LOST("network.infiniband.port_xmit_constraint_errors", origin="port_xmit_constraint_errors",
          meaning="Packets not sent because of partition rules"),
    _LOST("network.infiniband.port_rcv_constraint_errors", origin="port_rcv_constraint_errors",
          meaning="Packets refused because of partition rules"),
    _ERRORS("network.infiniband.local_link_integrity_errors", unit="events",
            origin="local_link_integrity_errors",
            meaning="Times that local errors exceeded their threshold"),
    _ERRORS("network.infiniband.excessive_buffer_overrun_errors", unit="events",
            origin="excessive_buffer_overrun_errors",
            meaning="Times that buffers overran in several updates in a row"),
    _LOST("network.infiniband.vl15_dropped", origin="VL15_dropped", weight=0.5,
          meaning="Management packets dropped because of missing resources"),
    _PORT("network.infiniband.utilization", unit="ppm", kind=Kind.RATIO, source="derived",
          lane=Lane.DERIVED, quantum=20_000, origin="port_xmit_data, port_rcv_data / rate",
          meaning="Utilization of the port by its busier direction, per million"),
    # The ticks differ by card: they show that the port waited, not for how long.
    _ERRORS("network.infiniband.port_xmit_wait", unit="ticks", origin="port_xmit_wait",
            quantum=1e5, meaning="Ticks with data to send and no credit, caused by congestion"),
)  # fmt: skip

_COUNTER = "network.infiniband."
_HARDWARE = "network.infiniband.hw."
# Meaning of a driver's counter by its name: the first match counts, None means activity.
_NAMES: tuple[tuple[re.Pattern[str], str | None], ...] = tuple(
    (re.compile(pattern), meaning)
    for pattern, meaning in (
        (r"out_of_sequence", "Packets received out of order because some were lost or overtaken"),
        (r"packet_seq_err", "Packets sent again because the receiver missed some"),
        (r"local_ack_timeout_err", "Acknowledgments that did not arrive in time"),
        (r"rnr_nak_retry_err", "Requests to a sender to wait because no receive buffer was "
                               "posted"),
        (r"out_of_buffer", "Packets dropped because no receive buffer was posted"),
        (r"duplicate_request", "Requests received twice because their answer was lost or late"),
        (r"implied_nak_seq_err", "Answers out of order because some were lost"),
        (r"np_cnp_sent", "Congestion notifications sent to peers"),
        (r"np_ecn_marked_roce_packets", "Packets received that a switch marked as congested"),
        (r"rp_cnp_handled", "Congestion notifications that slowed this port down"),
        (r"rp_cnp_ignored", "Congestion notifications that were ignored"),
        (r"rx_icrc_encapsulated", "Packets received with a wrong checksum"),
        (r"roce_adp_retrans(?:_to)?", "Packets sent again by adaptive retransmission"),
        (r"roce_slow_restart\w*", "Restarts of sending at a low rate"),
        (r"re?s[pq]\w*_(?:cqe|local|remote|rnr|transport)\w*err\w*", "Operations that failed"),
        (r"\w*retrans\w*", "Retransmissions"),
        (r"\w*(?:timeout|drop|discard|nak|oos|out_of_seq|missing)\w*", "Losses or refusals"),
        (r"\w*err(?:or)?s?(?:_\w+)?", "Errors"),
    )
)  # fmt: skip
# what a driver's counter counts, where its name says so
_SIZES = re.compile(r"\w*_?(?:bytes|octets)(?:_cnt)?")
_PACKETS = re.compile(r"\w*_?(?:pkts?|packets)(?:_cnt)?")


def _unlisted(name: str) -> Metric | None:
    """Return the row of other counters of a card: of the driver, wider or later ones."""
    hardware = name.removeprefix(_HARDWARE)
    key = hardware if hardware != name else name.removeprefix(_COUNTER)
    if not name.startswith(_COUNTER) or not key or "." in key:
        return None
    if _SIZES.fullmatch(key):
        return _DRIVER(name, origin=key, unit="bytes", quantum=5e5, harm=Harm.NEITHER,
                    meaning=f"Bytes that the card counts as {key}")  # fmt: skip
    meaning = next((text for pattern, text in _NAMES if pattern.fullmatch(key)), None)
    if meaning is None:
        unit = "packets" if _PACKETS.fullmatch(key) else "events"
        return _DRIVER(name, origin=key, unit=unit, quantum=100, harm=Harm.NEITHER,
                    meaning=f"{unit.capitalize()} that the card counts as {key}")  # fmt: skip
    # Congestion control is normal under load; the losses that it could not prevent are not.
    weight = 0.5 if "cnp" in key or "ecn" in key else 1.0
    return _DRIVER(name, origin=key, weight=weight, meaning=meaning)


ROWS: tuple[Metric, ...] = _PORTS
PATTERNS: tuple[Callable[[str], Metric | None], ...] = (_unlisted,)
