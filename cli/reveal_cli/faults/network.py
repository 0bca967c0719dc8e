"""Faults of the network: loss, limits, overflows, softirqs, a flapping link.

Faults of a path act on the workload's own path if it has one, else on a path created for the
fault, with a paced TCP stream.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from reveal_cli.faults import launch
from reveal_cli.faults.base import Culprit, Fault, Injection, Needs
from reveal_cli.faults.ledger import Undo
from reveal_cli.faults.link import FAULT, VethLink, run
from reveal_contract.metric import Subsystem

_NETWORK = frozenset({Subsystem.NETWORK})
_TABLE = "reveal_fault"
_PORT = 47_301
_STREAM = 25_000_000  # bytes a second of the fault's own stream
_BACKLOG = "/proc/sys/net/core/netdev_max_backlog"
_DATAGRAM = 1400
_PROGRAMS = "reveal_cli.faults.programs"


def _path(injection: Injection) -> VethLink:
    """Return the path to impair, with traffic on it."""
    if injection.target.link is not None:
        return injection.target.link
    FAULT.create(injection.ledger)
    to = (FAULT.far_address, str(_PORT))
    injection.helper(*FAULT.inside(*launch.python(_PROGRAMS, "tcp_receive", *to)))
    injection.helper(*launch.python(_PROGRAMS, "tcp_send", *to, str(_STREAM)))
    return FAULT


def _loss(per_mille: int) -> Callable[[Injection], None]:
    """Return an injection that drops random packets at the far end.

    The near end, the host, gets no acknowledgment for them.
    """

    def inject(injection: Injection) -> None:
        link = _path(injection)
        table = link.inside("nft", "delete", "table", "ip", _TABLE)
        injection.ledger.add(Undo("command", table))
        run(*link.inside("nft", "add", "table", "ip", _TABLE))
        chain = ("chain", "ip", _TABLE, "input")
        run(*link.inside("nft", "add", *chain, "{ type filter hook input priority 0; }"))
        rule = f"numgen random mod 1000 < {per_mille} counter drop"
        run(*link.inside("nft", "add", "rule", *chain[1:], *rule.split()))

    return inject


def _rate_limit(injection: Injection) -> None:
    """Limit the near end with a token bucket (tc-tbf(8))."""
    link = _path(injection)
    qdisc = ("dev", link.near, "root")
    injection.ledger.add(Undo("command", ("tc", "qdisc", "del", *qdisc)))
    bucket = ("tbf", "rate", "40mbit", "burst", "32kb", "latency", "20ms")
    run("tc", "qdisc", "add", *qdisc, *bucket)


def _backlog(injection: Injection) -> None:
    """Limit the receive backlog to 2 packets for each CPU (``admin-guide/sysctl/net.rst``)."""
    _path(injection)
    injection.write(_BACKLOG, 2)


def _flap(injection: Injection) -> None:
    link = _path(injection)
    injection.ledger.add(Undo("command", ("ip", "link", "set", link.near, "up")))
    injection.helper(*launch.python(_PROGRAMS, "flap", link.near, "0.1", "1.4"))


def _udp_overflow(injection: Injection) -> None:
    """Send 20,000 datagrams a second to a receiver of 1,000, with a buffer of 4 KiB."""
    injection.program("udp_receive", "127.0.0.1", _PORT, 4096, 0.001)
    injection.program("udp_send", "127.0.0.1", _PORT, _DATAGRAM, 20_000)


def _small_packets(rate: int) -> Callable[[Injection], None]:
    """Return an injection of datagrams of 64 bytes to a receiver that never pauses."""

    def inject(injection: Injection) -> None:
        injection.program("udp_receive", "127.0.0.1", _PORT, 4 << 20, 0)
        injection.program("udp_send", "127.0.0.1", _PORT, 64, rate)

    return inject


_TOOLS = Needs(root=True, binaries=("ip", "ethtool"))
_LOSSY = Needs(root=True, binaries=("ip", "ethtool", "nft"))


def _on_path(
    name: str,
    kind: str,
    about: str,
    inject: Callable[[Injection], None],
    *,
    weak: bool = False,
    needs: Needs = _TOOLS,
) -> Fault:
    return Fault(name, kind, _NETWORK, about, inject, weak, needs, Culprit.NOBODY)


FAULTS: tuple[Fault, ...] = (
    _on_path("loss_5", "packet loss", "5 % of packets dropped", _loss(50), needs=_LOSSY),
    _on_path("loss_1", "packet loss", "1 % of packets dropped", _loss(10), needs=_LOSSY),
    _on_path(
        "loss_0.1", "packet loss", "0.1 % of packets dropped", _loss(1), weak=True, needs=_LOSSY
    ),
    _on_path(
        "rate_limit", "rate limit", "the path limited to 40 Mbit/s", _rate_limit,
        needs=Needs(root=True, binaries=("ip", "ethtool", "tc")),
    ),
    replace(
        _on_path(
            "backlog_drop", "receive backlog overflow", "a receive backlog of 2 packets", _backlog,
            needs=Needs(root=True, binaries=("ip", "ethtool"), files=(_BACKLOG,)),
        ),
        host_wide="packets of all connections of this host are dropped",
    ),
    _on_path("link_flap", "link flap", "the path down for 0.1 s every 1.5 s", _flap),
    Fault(
        "udp_rcvbuf", "UDP buffer overflow", _NETWORK,
        "20,000 datagrams a second to a receiver of 1,000", _udp_overflow,
    ),
    Fault(
        "softirq", "softirq storm", _NETWORK, "small datagrams as fast as they can be sent",
        _small_packets(0),
    ),
    Fault(
        "softirq_weak", "softirq storm", _NETWORK, "15,000 small datagrams a second",
        _small_packets(15_000), weak=True,
    ),
)  # fmt: skip
