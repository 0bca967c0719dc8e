"""Faults of the network: loss, limits, overflows, softirqs, a flapping link.

Those of a path act on the workload's own path where it has one; else on a path made for the
fault, with a paced TCP stream over it.
"""

from __future__ import annotations

from collections.abc import Callable

from reveal_cli.faults import launch
from reveal_cli.faults.base import Culprit, Fault, Injection, Needs
from reveal_cli.faults.ledger import Undo
from reveal_cli.faults.link import FAULT, Link, run
from reveal_contract.metric import Subsystem

_NETWORK = frozenset({Subsystem.NETWORK})
_TABLE = "reveal_fault"
_PORT = 47_301
_STREAM = 25_000_000  # bytes a second of the fault's own stream
_BACKLOG = "/proc/sys/net/core/netdev_max_backlog"
_DATAGRAM = 1400
_PROGRAMS = "reveal_cli.faults.programs"


def _path(injection: Injection) -> Link:
    """The path to be hurt, with traffic on it."""
    if injection.stage.link is not None:
        return injection.stage.link
    FAULT.create(injection.ledger)
    to = (FAULT.far_address, str(_PORT))
    injection.helper(*FAULT.inside(*launch.python(_PROGRAMS, "tcp_receive", *to)))
    injection.helper(*launch.python(_PROGRAMS, "tcp_send", *to, str(_STREAM)))
    return FAULT


def _loss(per_mille: int) -> Callable[[Injection], None]:
    """Drop packets at the far end, at random: the near end, the host, sees them unacknowledged."""

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
    """A token bucket on the near end (tc-tbf(8))."""
    link = _path(injection)
    qdisc = ("dev", link.near, "root")
    injection.ledger.add(Undo("command", ("tc", "qdisc", "del", *qdisc)))
    bucket = ("tbf", "rate", "40mbit", "burst", "32kb", "latency", "20ms")
    run("tc", "qdisc", "add", *qdisc, *bucket)


def _backlog(injection: Injection) -> None:
    """A receive backlog of 2 packets a CPU (kernel docs, ``admin-guide/sysctl/net.rst``)."""
    _path(injection)
    injection.write(_BACKLOG, 2)


def _flap(injection: Injection) -> None:
    link = _path(injection)
    injection.ledger.add(Undo("command", ("ip", "link", "set", link.near, "up")))
    injection.helper(*launch.python(_PROGRAMS, "flap", link.near, "0.1", "1.4"))


def _udp_overflow(injection: Injection) -> None:
    """A receiver that takes 1,000 datagrams a second of 20,000, through a 4 KiB buffer."""
    injection.program("udp_receive", "127.0.0.1", _PORT, 4096, 0.001)
    injection.program("udp_send", "127.0.0.1", _PORT, _DATAGRAM, 20_000)


def _small_packets(rate: int) -> Callable[[Injection], None]:
    """Datagrams of 64 bytes to a receiver that keeps up as well as it can."""

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
    _on_path(
        "backlog_drop", "receive backlog overflow", "a receive backlog of 2 packets", _backlog,
        needs=Needs(root=True, binaries=("ip", "ethtool"), files=(_BACKLOG,)),
    ),
    _on_path("link_flap", "link flap", "the path down for 0.1 s every 1.5 s", _flap),
    Fault(
        "udp_rcvbuf", "UDP buffer overflow", _NETWORK,
        "20,000 datagrams a second to a receiver that takes 1,000", _udp_overflow,
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
