"""Rules on network interfaces, bonds and RDMA ports."""

from __future__ import annotations

from collections.abc import Iterator

from reveal_analyzer.configuration.rule import (
    ALL,
    ConfigurationRule,
    Unknown,
    Verdict,
    Violation,
    fact,
)
from reveal_contract import cpulist
from reveal_contract.facts import Facts
from reveal_contract.finding import Severity
from reveal_contract.metric import Subsystem

_MANY_CPUS = 4


def small_ring(facts: Facts) -> Iterator[Verdict]:
    for nic in facts.nics:
        now, most, missed = nic.rx_ring, nic.rx_ring_most, nic.missed
        if nic.up is None or missed is None or now is None or most is None:
            yield Unknown(nic.name)
            continue
        # a few frames are lost when the driver starts, before the first descriptors are posted
        if missed < now or nic.missed_per_million == 0:
            continue
        if nic.up and now < most:
            yield Violation(
                nic.name,
                {"nic": nic.name, "missed": missed, "now": now, "most": most},
                (fact("nic.ring.rx", nic.name, now, most, "descriptors", "ethtool -g"),
                 fact("nic.missed", nic.name, missed, 0, "packets", "rx_missed_errors")),
            )  # fmt: skip


def single_queue(facts: Facts) -> Iterator[Verdict]:
    many = min(len(cpulist.parse(facts.cpu.online)), 8)
    if not many:
        yield Unknown(ALL)
    for nic in facts.nics:
        if nic.up is None or nic.channels is None or nic.channels_most is None:
            yield Unknown(nic.name)
        if nic.up and nic.channels == 1 and (nic.channels_most or 1) > 1 and many >= _MANY_CPUS:
            yield Violation(
                nic.name,
                {"nic": nic.name, "most": nic.channels_most,
                 "recommended": min(many, nic.channels_most or 1)},
                (fact("nic.channels", nic.name, 1, nic.channels_most, known_as="ethtool -l"),),
            )  # fmt: skip


def half_duplex(facts: Facts) -> Iterator[Verdict]:
    for nic in facts.nics:
        if nic.up is None or nic.duplex not in ("full", "half"):
            yield Unknown(nic.name)
        if nic.up and nic.duplex == "half":
            yield Violation(
                nic.name,
                {"nic": nic.name},
                (fact("nic.duplex", nic.name, "half", "full", known_as="duplex"),),
            )


def bond_part_down(facts: Facts) -> Iterator[Verdict]:
    for bond in facts.bonds:
        yield from (Unknown(f"{bond.name}/{part}") for part in bond.unread)
        for part in bond.down:
            yield Violation(
                f"{bond.name}/{part}",
                {"bond": bond.name, "part": part, "up": len(bond.parts) - len(bond.down),
                 "of": len(bond.parts), "mode": bond.mode},
                (fact("bond.link", f"{bond.name}/{part}", "down", "up", known_as="mii_status"),),
            )  # fmt: skip


def bond_mtu(facts: Facts) -> Iterator[Verdict]:
    mtus = {nic.name: nic.mtu for nic in facts.nics}
    for bond in facts.bonds:
        for part in bond.parts:
            mtu = mtus.get(part)
            if mtu is None or bond.mtu is None:
                yield Unknown(f"{bond.name}/{part}")
            if mtu and bond.mtu and mtu != bond.mtu:
                yield Violation(
                    f"{bond.name}/{part}",
                    {"bond": bond.name, "part": part, "mtu": mtu, "should": bond.mtu},
                    (fact("nic.mtu", part, mtu, bond.mtu, "bytes", "mtu"),),
                )


def single_lane(facts: Facts) -> Iterator[Verdict]:
    """Find InfiniBand ports with one lane; RoCE ports may have one by design."""
    for port in facts.ports:
        if not port.layer or not port.state or not port.rate:
            yield Unknown(port.name)
        if port.layer == "InfiniBand" and port.state == "ACTIVE" and "(1X" in port.rate:
            yield Violation(
                port.name,
                {"port": port.name, "rate": port.rate},
                (fact("port.rate", port.name, port.rate, known_as="rate"),),
            )


RULES = (
    ConfigurationRule(
        "SmallReceiveRing", Subsystem.NETWORK, Severity.LOW,
        "interface {nic} lost {missed} packets because no descriptor was free; its receive"
        " ring has {now} of {most} descriptors",
        "ethtool -G {nic} rx {most}",
        "The card drops packets that arrive while every descriptor is in use. A larger ring holds"
        " longer bursts. The count starts when the driver is loaded. Nothing is reported below one"
        " packet in a million, or for fewer packets than the ring has descriptors.",
        "ethtool(8), -g and -G; kernel: networking/statistics.rst (rx_missed_errors)",
        small_ring,
        ("nics",),
    ),
    ConfigurationRule(
        "OneNetworkQueue", Subsystem.NETWORK, Severity.LOW,
        "interface {nic} uses one of {most} queues: a single CPU does all its work",
        "ethtool -L {nic} combined {recommended}",
        "Each queue can be served by another CPU. With one queue, the packets of all connections"
        " go through one CPU.",
        "kernel: networking/scaling.rst (RSS); ethtool(8), -l and -L",
        single_queue,
        ("nics", "cpu"),
    ),
    ConfigurationRule(
        "HalfDuplex", Subsystem.NETWORK, Severity.MEDIUM,
        "interface {nic} runs in half duplex: it cannot send and receive at once",
        "ethtool -s {nic} autoneg on (and the same on the switch port)",
        "One end is set to a fixed mode and the other negotiates: the link falls back to half"
        " duplex, with collisions under load.",
        "kernel: ABI/testing/sysfs-class-net (duplex); IEEE 802.3, clause 28",
        half_duplex,
        ("nics",),
    ),
    ConfigurationRule(
        "BondPartDown", Subsystem.NETWORK, Severity.LOW,
        "link {part} of {bond} is down: {up} of {of} links are left ({mode})",
        "cat /proc/net/bonding/{bond}; ip link set {part} up; check cable and switch port",
        "A bond continues with fewer links: with less bandwidth if it balances the load, without a"
        " backup if it has standby links.",
        "kernel: networking/bonding.rst (link monitoring)",
        bond_part_down,
        ("bonds",),
    ),
    ConfigurationRule(
        "BondMTUMismatch", Subsystem.NETWORK, Severity.LOW,
        "link {part} has an MTU of {mtu}, but its bond {bond} has {should}",
        "ip link set {bond} mtu {should}",
        "The link with the smaller MTU drops or fragments packets of the bond's size.",
        "kernel: networking/bonding.rst",
        bond_mtu,
        ("bonds", "nics"),
    ),
    ConfigurationRule(
        "InfiniBandOnOneLane", Subsystem.NETWORK, Severity.MEDIUM,
        "InfiniBand port {port} runs on one lane: {rate}",
        "ibstat; iblinkinfo; reseat or replace the cable",
        "Ports of host adapters have four lanes, or two with a split cable. One lane is left if the"
        " others failed to train.",
        "kernel: ABI/stable/sysfs-class-infiniband (rate); iblinkinfo(8)",
        single_lane,
        ("ports",),
    ),
)  # fmt: skip
