"""Catalogue rows: counters of IP, TCP, UDP and MPTCP (``netstat``, ``snmp``, ``snmp6``).

There are hundreds of counters, which differ by kernel, so most rows are created from the name.
``nstat`` names a counter ``TcpExtTCPTimeouts``; the catalogue name is
``network.tcp_ext.tcp_timeouts``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

from reveal_contract.metric import Harm, Kind, Lane, Metric, Scope, Subsystem
from reveal_contract.names import snake

_COUNTER = partial(
    Metric, unit="events", kind=Kind.COUNTER, subsystem=Subsystem.NETWORK, scope=Scope.NODE,
)  # fmt: skip
_NAME = re.compile(r"network\.([a-z]+(?:_[a-z]+)*6?)\.([a-z0-9_]+)\Z")
# word of the name -> (prefix of the kernel, file)
_PROTOCOLS = {
    "ip": ("Ip", "snmp"), "icmp": ("Icmp", "snmp"), "icmp_msg": ("IcmpMsg", "snmp"),
    "tcp": ("Tcp", "snmp"), "udp": ("Udp", "snmp"), "udp_lite": ("UdpLite", "snmp"),
    "tcp_ext": ("TcpExt", "netstat"), "ip_ext": ("IpExt", "netstat"),
    "mp_tcp_ext": ("MPTcpExt", "netstat"), "ip6": ("Ip6", "snmp6"), "icmp6": ("Icmp6", "snmp6"),
    "udp6": ("Udp6", "snmp6"), "udp_lite6": ("UdpLite6", "snmp6"),
}  # fmt: skip
# ``snake`` joins runs of capitals: no rule can restore these names
_IRREGULAR = """
DelayedACKs DelayedACKLocked DelayedACKLost PAWSOldAck TW TWRecycled TWKilled TSEcrRejected
TCPHPHits TCPHPAcks TCPSACKReneging TCPSACKReorder TCPTSReorder TCPDSACKUndo TCPDSACKOldSent
TCPDSACKOfoSent TCPDSACKRecv TCPDSACKOfoRecv TCPSACKDiscard TCPDSACKIgnoredOld
TCPDSACKIgnoredNoUndo TCPDSACKRecvSegs TCPDSACKIgnoredDubious TCPSpuriousRTOs TCPMD5NotFound
TCPMD5Unexpected TCPMD5Failure PFMemallocDrop TCPMinTTLDrop IPReversePathFilter TCPOFOQueue
TCPOFODrop TCPOFOMerge TCPChallengeACK TCPSYNChallenge TCPACKSkippedSynRecv TCPACKSkippedPAWS
TCPACKSkippedSeq TCPACKSkippedFinWait2 TCPACKSkippedTimeWait TCPACKSkippedChallenge TCPMTUPFail
TCPMTUPSuccess TCPDeliveredCE TcpTimeoutRehash TcpDuplicateDataRehash TCPPLBRehash TCPAORequired
TCPAOBad TCPAOKeyNotFound TCPAOGood TCPAODroppedIcmps InNoECTPkts InECT1Pkts InECT0Pkts InCEPkts
MPCapableSYNRX MPCapableSYNTX MPCapableSYNACKRX MPCapableACKRX MPCapableFallbackACK
MPCapableFallbackSYNACK MPCapableSYNTXDrop MPCapableSYNTXDisabled MPTCPRetrans
MPJoinSynAckHMacFailure MPJoinAckHMacFailure DSSNotMatching DSSCorruptionFallback
DSSCorruptionReset DSSNoMatchTCP OFOQueueTail OFOQueue OFOMerge NoDSSInWindow MD5SigFallback
ReasmOKs FragOKs InMLDv2Reports OutMLDv2Reports DefaultTTL
"""
_KERNEL_NAMES = {snake(name): name for name in _IRREGULAR.split()}
_CAPITALS = {"tcp": "TCP", "paws": "PAWS", "mp": "MP"}

_TRAFFIC = re.compile(
    r"(in|out)_(receives|requests|delivers|segs|datagrams|transmits|msgs|\w*pkts)"
    r"|tcp(hp_hits|hp_acks|_pure_acks|_delivered|_orig_data_sent|_rcv_coalesce)"
    r"|tcp_backlog_coalesce|tcp_auto_corking"
)
_OCTETS = re.compile(r"\w*octets\Z")
_HARM = re.compile(
    r"retrans|lost|timeout|recover|sack|drop|err(or)?s?\Z|overflow|prune|collapse|discard"
    r"|memory_pressure|abort_on_memory|reasm_fails"
)
_MEANINGS = {
    "tcp.active_opens": "TCP connections opened by this host",
    "tcp.passive_opens": "TCP connections accepted by this host",
    "tcp.attempt_fails": "TCP connections that could not be opened",
    "tcp.estab_resets": "Established TCP connections that were reset",
    "tcp.curr_estab": "TCP connections established or waiting to be closed",
    "tcp.in_segs": "TCP segments received",
    "tcp.out_segs": "TCP segments sent, without retransmitted ones",
    "tcp.retrans_segs": "TCP segments retransmitted because the first one was considered lost",
    "tcp.in_errs": "Damaged TCP segments received",
    "tcp.out_rsts": "TCP resets sent",
    "udp.in_datagrams": "UDP datagrams delivered to programs",
    "udp.out_datagrams": "UDP datagrams sent",
    "udp.no_ports": "UDP datagrams to a port without a listener",
    "udp.in_errors": "UDP datagrams that could not be delivered, including full buffers",
    "udp.rcvbuf_errors": "UDP datagrams dropped because the receiver's buffer was full",
    "udp.sndbuf_errors": "UDP datagrams dropped because the sender's buffer was full",
    "tcp_ext.tcp_lost_retransmit": "Retransmitted TCP segments that were lost again",
    "tcp_ext.tcp_fast_retrans": "TCP segments retransmitted after duplicate acknowledgments",
    "tcp_ext.tcp_slow_start_retrans": "TCP segments retransmitted after a timeout",
    "tcp_ext.tcp_timeouts": "TCP retransmission timeouts",
    "tcp_ext.tcp_loss_probes": "TCP probes for a lost tail",
    "tcp_ext.tcp_sack_recovery": "TCP loss recoveries started by SACK",
    "tcp_ext.tcp_sack_shift_fallback": "SACK blocks that could not be merged because of many "
                                       "small gaps",
    "tcp_ext.tcpdsack_recv": "Reports of duplicate segments: unnecessary retransmissions",
    "tcp_ext.tcp_spurious_rt_os": "TCP timeouts that were unnecessary",
    "tcp_ext.tcp_syn_retrans": "SYN or SYN-ACK segments retransmitted",
    "tcp_ext.listen_overflows": "Connections refused because the accept queue was full",
    "tcp_ext.listen_drops": "Connections dropped by a listening socket, for any reason",
    "tcp_ext.tcp_backlog_drop": "TCP segments dropped because a socket's backlog was full",
    "tcp_ext.tcp_rcv_q_drop": "TCP segments dropped because the receive queue was full",
    "tcp_ext.prune_called": "Times that TCP freed receive buffers because of low memory",
    "tcp_ext.tcp_rcv_collapsed": "TCP segments merged to save memory of buffers",
    "tcp_ext.tcpofo_queue": "TCP segments received out of order",
    "tcp_ext.tcp_memory_pressures": "Times that TCP entered memory pressure",
    "tcp_ext.tcp_delivered": "TCP segments delivered, as acknowledgments confirmed",
    "tcp_ext.tcp_orig_data_sent": "TCP data segments sent for the first time",
    "ip_ext.in_octets": "Bytes of IP received",
    "ip_ext.out_octets": "Bytes of IP sent",
    "ip_ext.in_ce_pkts": "Packets that a congested router on the path marked (CE)",
    "ip.in_discards": "Packets discarded because of low memory",
    "ip.reasm_fails": "Fragmented packets that could not be reassembled",
}  # fmt: skip


def row(name: str) -> Metric | None:
    """Return the row of ``network.PROTOCOL.COUNTER`` for the protocols above."""
    named = _NAME.match(name)
    protocol = _PROTOCOLS.get(named[1]) if named else None
    if named is None or protocol is None:
        return None
    key = named[2]
    prefix, file = protocol
    origin = prefix + kernel_name(key)
    lane = Lane.SLOW if file == "snmp6" else Lane.FAST
    meaning = _MEANINGS.get(f"{named[1]}.{key}", f"{prefix} counter of {key.replace('_', ' ')}")
    if key in ("curr_estab", "mp_curr_estab"):
        return _COUNTER(
            name, kind=Kind.GAUGE, unit="sockets", source=file, lane=lane, origin=origin,
            meaning=meaning, quantum=5,
        )  # fmt: skip
    unit, quantum = _size(key)
    return _COUNTER(
        name, unit=unit, source=file, lane=lane, origin=origin, meaning=meaning,
        quantum=quantum, harm=_harm(key),
    )  # fmt: skip


def kernel_name(key: str) -> str:
    """Return a catalogue word as the kernel spells it: ``tcp_timeouts`` -> ``TCPTimeouts``."""
    if key in _KERNEL_NAMES:
        return _KERNEL_NAMES[key]
    return "".join(_CAPITALS.get(word, word.capitalize()) for word in key.split("_"))


def _size(key: str) -> tuple[str, float]:
    if _OCTETS.match(key):
        return "bytes", 5e4
    return ("packets", 50.0) if _TRAFFIC.match(key) else ("events", 3.0)


def _harm(key: str) -> Harm:
    return Harm.HIGHER if _HARM.search(key) else Harm.NEITHER


ROWS: tuple[Metric, ...] = tuple(
    metric for key in _MEANINGS if (metric := row(f"network.{key}")) is not None
)
PATTERNS: tuple[Callable[[str], Metric | None], ...] = (row,)
