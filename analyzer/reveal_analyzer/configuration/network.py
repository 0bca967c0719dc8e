"""Rules on network interfaces, bonds and RDMA ports."""

from __future__ import annotations

from collections.abc import Iterator

from reveal_analyzer.configuration.rule import Broken, Rule, fact
from reveal_contract import cpulist
from reveal_contract.facts import Facts
from reveal_contract.finding import Severity
from reveal_contract.metric import Subsystem

_MANY_CPUS = 4


def small_ring(facts: Facts) -> Iterator[Broken]:
    for nic in facts.nics:
        now, most = nic.rx_ring, nic.rx_ring_most
        if nic.up and nic.missed and now and most and now < most:
            yield Broken(
                nic.name,
                {"nic": nic.name, "missed": nic.missed, "now": now, "most": most},
                (fact("nic.ring.rx", nic.name, now, most, "descriptors", "ethtool -g"),
                 fact("nic.missed", nic.name, nic.missed, 0, "packets", "rx_missed_errors")),
            )  # fmt: skip


def one_queue(facts: Facts) -> Iterator[Broken]:
    many = min(len(cpulist.parse(facts.cpu.online)), 8)
    for nic in facts.nics:
        if nic.up and nic.channels == 1 and (nic.channels_most or 1) > 1 and many >= _MANY_CPUS:
            yield Broken(
                nic.name,
                {"nic": nic.name, "most": nic.channels_most,
                 "wanted": min(many, nic.channels_most or 1)},
                (fact("nic.channels", nic.name, 1, nic.channels_most, known_as="ethtool -l"),),
            )  # fmt: skip


def half_duplex(facts: Facts) -> Iterator[Broken]:
    for nic in facts.nics:
        if nic.up and nic.duplex == "half":
            yield Broken(
                nic.name,
                {"nic": nic.name},
                (fact("nic.duplex", nic.name, "half", "full", known_as="duplex"),),
            )


def bond_part_down(facts: Facts) -> Iterator[Broken]:
    for bond in facts.bonds:
        for part in bond.down:
            yield Broken(
                f"{bond.name}/{part}",
                {"bond": bond.name, "part": part, "up": len(bond.parts) - len(bond.down),
                 "of": len(bond.parts), "mode": bond.mode},
                (fact("bond.link", f"{bond.name}/{part}", "down", "up", known_as="mii_status"),),
            )  # fmt: skip


def bond_mtu(facts: Facts) -> Iterator[Broken]:
    mtus = {nic.name: nic.mtu for nic in facts.nics}
    for bond in facts.bonds:
        for part in bond.parts:
            mtu = mtus.get(part)
            if mtu and bond.mtu and mtu != bond.mtu:
                yield Broken(
                    f"{bond.name}/{part}",
                    {"bond": bond.name, "part": part, "mtu": mtu, "should": bond.mtu},
                    (fact("nic.mtu", part, mtu, bond.mtu, "bytes", "mtu"),),
                )


def one_lane(facts: Facts) -> Iterator[Broken]:
    """InfiniBand ports of hosts have four lanes (two in split ones); RoCE ones may have one."""
    for port in facts.ports:
        if port.layer == "InfiniBand" and port.state == "ACTIVE" and "(1X" in port.rate:
            yield Broken(
                port.name,
                {"port": port.name, "rate": port.rate},
                (fact("port.rate", port.name, port.rate, known_as="rate"),),
            )


RULES = (
    Rule(
        "SmallReceiveRing", Subsystem.NETWORK, Severity.LOW,
        "interface {nic} lost {missed} packets for want of a free descriptor, with a receive ring"
        " of {now} out of {most}",
        "ethtool -G {nic} rx {most}",
        "Packets that come while every descriptor is in use are dropped by the card; a larger"
        " ring outlasts longer bursts. The count is since the driver was loaded.",
        "ethtool(8), -g and -G; kernel: networking/statistics.rst (rx_missed_errors)",
        small_ring,
    ),
    Rule(
        "OneNetworkQueue", Subsystem.NETWORK, Severity.LOW,
        "interface {nic} uses one of {most} queues: a single CPU does all its work",
        "ethtool -L {nic} combined {wanted}",
        "Each queue is served by a CPU of its own; with one queue the packets of all"
        " connections go through one CPU.",
        "kernel: networking/scaling.rst (RSS); ethtool(8), -l and -L",
        one_queue,
    ),
    Rule(
        "HalfDuplex", Subsystem.NETWORK, Severity.MEDIUM,
        "interface {nic} runs in half duplex: it cannot send and receive at once",
        "ethtool -s {nic} autoneg on (and the same at the switch's port)",
        "One end was set to a fixed mode and the other one negotiates: the link falls back to"
        " half duplex, with collisions under load.",
        "kernel: ABI/testing/sysfs-class-net (duplex); IEEE 802.3, clause 28",
        half_duplex,
    ),
    Rule(
        "BondPartDown", Subsystem.NETWORK, Severity.LOW,
        "link {part} of {bond} is down: {up} of {of} links are left ({mode})",
        "cat /proc/net/bonding/{bond}; ip link set {part} up; check cable and switch port",
        "A bond goes on with fewer links: less bandwidth where it balances, no spare where it"
        " stands by.",
        "kernel: networking/bonding.rst (link monitoring)",
        bond_part_down,
    ),
    Rule(
        "BondMTUMismatch", Subsystem.NETWORK, Severity.LOW,
        "link {part} has an MTU of {mtu}, its bond {bond} one of {should}",
        "ip link set {bond} mtu {should}",
        "Packets of the bond's size are dropped, or cut, by the link that takes less.",
        "kernel: networking/bonding.rst",
        bond_mtu,
    ),
    Rule(
        "InfiniBandOnOneLane", Subsystem.NETWORK, Severity.MEDIUM,
        "InfiniBand port {port} runs on one lane: {rate}",
        "ibstat; iblinkinfo; reseat or replace the cable",
        "Ports of host adapters have four lanes, two where a cable is split; one lane is what"
        " is left when the others failed to train.",
        "kernel: ABI/stable/sysfs-class-infiniband (rate); iblinkinfo(8)",
        one_lane,
    ),
)  # fmt: skip
