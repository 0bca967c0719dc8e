"""``/proc/1/net`` and ``/sys/class/net`` of a made-up host."""

from __future__ import annotations

from support.hosts import recorded_names
from support.hosts.machine import Machine, Nic
from support.hosts.tree import Moment, Tree, rising

_FRAME = 1200  # mean bytes a packet
_RATES = {
    "Ip": {"InReceives": 9_000, "InDelivers": 9_000, "OutRequests": 8_000},
    "Tcp": {"InSegs": 8_000, "OutSegs": 7_500, "RetransSegs": 2, "ActiveOpens": 3,
            "PassiveOpens": 4, "OutRsts": 1},
    "Udp": {"InDatagrams": 300, "OutDatagrams": 280},
    "TcpExt": {"TCPHPHits": 3_000, "TCPPureAcks": 900, "TCPHPAcks": 2_000, "DelayedACKs": 40,
               "TCPOrigDataSent": 5_000, "TCPDelivered": 5_000, "TCPLostRetransmit": 1,
               "TCPFastRetrans": 1, "TCPTimeouts": 0.2, "TW": 3},
    "IpExt": {"InOctets": 9_000_000, "OutOctets": 8_000_000, "InNoECTPkts": 9_000},
}  # fmt: skip
_FIXED = {
    ("Ip", "Forwarding"): 1, ("Ip", "DefaultTTL"): 64, ("Tcp", "RtoAlgorithm"): 1,
    ("Tcp", "RtoMin"): 200, ("Tcp", "RtoMax"): 120_000, ("Tcp", "MaxConn"): -1,
}  # fmt: skip
_SNMP6 = {"Ip6InReceives": 30, "Ip6InOctets": 9_000, "Ip6OutRequests": 20, "Ip6OutOctets": 5_000}
_STATISTICS = (
    "rx_bytes", "rx_packets", "rx_errors", "rx_dropped", "rx_crc_errors", "rx_length_errors",
    "rx_missed_errors", "rx_over_errors", "rx_fifo_errors", "rx_frame_errors", "rx_nohandler",
    "rx_compressed", "multicast", "collisions", "tx_bytes", "tx_packets", "tx_errors",
    "tx_dropped", "tx_aborted_errors", "tx_carrier_errors", "tx_fifo_errors",
    "tx_heartbeat_errors", "tx_window_errors", "tx_compressed",
)  # fmt: skip


def add_network(tree: Tree, machine: Machine) -> None:
    """The host's own network namespace, seen through process 1."""
    net = "proc/1/net"
    tree.write(f"{net}/dev", lambda now: dev(machine.nics, now))
    tree.write(f"{net}/netstat", lambda now: paired("netstat", now))
    tree.write(f"{net}/snmp", lambda now: paired("snmp", now))
    tree.write(f"{net}/snmp6", snmp6)
    tree.write(f"{net}/softnet_stat", lambda now: softnet(machine, now))
    tree.write(f"{net}/sockstat", sockstat)
    zero = "".join(f"{name}6: inuse 0\n" for name in ("TCP", "UDP", "UDPLITE", "RAW"))
    tree.write(f"{net}/sockstat6", zero + "FRAG6: inuse 0 memory 0\n")
    for nic in (Nic("lo", speed=-1, mtu=65_536, driver="", rate=100_000), *machine.nics):
        add_nic(tree, nic)


def dev(nics: tuple[Nic, ...], now: Moment) -> str:
    lines = [
        "Inter-|   Receive                                                |  Transmit",
        " face |bytes    packets errs drop fifo frame compressed multicast"
        "|bytes    packets errs drop fifo colls carrier compressed",
    ]
    for nic in (Nic("lo", rate=100_000), *nics):
        moved = now.count(nic.rate, nic.rate * 3600) if nic.up else 0
        if 0 < nic.reset_after <= now.time:
            moved = Moment(now.time, max(0, now.work - nic.reset_after)).count(nic.rate)
        packets = moved // _FRAME
        row = f"{moved} {packets} 0 0 0 0 0 {packets // 900}"
        lines.append(f"{nic.name:>6}: {row} {moved // 2} {packets // 2} 0 0 0 0 0 0")
    return "\n".join([*lines, ""])


def paired(file: str, now: Moment) -> str:
    """A line of names and a line of values for each protocol."""
    lines = []
    for protocol, names in recorded_names.protocols(file).items():
        rates = _RATES.get(protocol, {})
        values = [
            _FIXED.get((protocol, name), now.count(rates.get(name, 0), int(9 * rates.get(name, 0))))
            for name in names
        ]
        if "CurrEstab" in names:
            values[names.index("CurrEstab")] = now.level(42, 6)
        lines += [f"{protocol}: {' '.join(names)}", f"{protocol}: {' '.join(map(str, values))}"]
    return "\n".join([*lines, ""])


def snmp6(now: Moment) -> str:
    lines = [
        f"{name:<32}\t{now.count(_SNMP6.get(name, 0), 9 * _SNMP6.get(name, 0))}"
        for name in recorded_names.snmp6_names()
    ]
    return "\n".join([*lines, ""])


def softnet(machine: Machine, now: Moment) -> str:
    """Hexadecimal; the CPU's number is the 13th column since 5.10."""
    lines = []
    for cpu in range(machine.cpus):
        values = [0] * 13
        values[0] = now.count(400 * (cpu % 5 + 1), 500_000, 32)
        values[2] = now.count(1 if cpu % 7 == 0 else 0, 20, 32)
        values[12] = cpu
        lines.append(" ".join(f"{value:08x}" for value in values))
    return "\n".join([*lines, ""])


def sockstat(now: Moment) -> str:
    return (
        f"sockets: used {now.level(320, 20)}\n"
        f"TCP: inuse {now.level(48, 6)} orphan 0 tw {now.level(9, 4)} alloc 61 mem 12\n"
        "UDP: inuse 8 mem 2\nUDPLITE: inuse 0\nRAW: inuse 0\nFRAG: inuse 0 memory 0\n"
    )


def add_nic(tree: Tree, nic: Nic) -> None:
    """``/sys/class/net`` links to the device, below its PCI function or ``virtual``."""
    parent = f"pci{nic.pci[:7]}/{nic.pci}" if nic.pci else "virtual"
    path = f"sys/devices/{parent}/net/{nic.name}"
    _attributes(tree, path, nic)
    tree.folder("sys/class/net")
    tree.link(f"sys/class/net/{nic.name}", f"../../devices/{parent}/net/{nic.name}")
    if nic.pci:
        tree.link(f"{path}/device", f"../../../{nic.pci}")
        tree.write(
            f"sys/devices/{parent}/uevent", f"DRIVER={nic.driver}\nPCI_SLOT_NAME={nic.pci}\n"
        )
        tree.write(f"sys/devices/{parent}/numa_node", nic.numa)
        tree.folder(f"sys/bus/pci/drivers/{nic.driver}")
        tree.link(f"sys/devices/{parent}/driver", f"../../../bus/pci/drivers/{nic.driver}")


def _attributes(tree: Tree, folder: str, nic: Nic) -> None:
    tree.write(f"{folder}/operstate", ("up" if nic.up else "down") + "\n")
    tree.write(f"{folder}/carrier_changes", 2)
    tree.write(f"{folder}/carrier_down_count", 1)
    tree.write(f"{folder}/mtu", nic.mtu)
    tree.write(f"{folder}/address", "02:42:ac:11:00:02\n")
    tree.write(f"{folder}/type", 772 if nic.name == "lo" else 32 if nic.name[:2] == "ib" else 1)
    if nic.driver:
        tree.write(f"{folder}/speed", nic.speed)
        tree.write(f"{folder}/duplex", "full\n")
    rates = {"rx_bytes": nic.rate, "tx_bytes": nic.rate // 2}
    rates |= {"rx_packets": nic.rate // _FRAME, "tx_packets": nic.rate // _FRAME // 2}
    for name in _STATISTICS:
        rate = rates.get(name, 0) if nic.up else 0
        tree.write(f"{folder}/statistics/{name}", rising(rate, 3600 * rate) if rate else 0)
    for queue in range(nic.queues):
        tree.write(f"{folder}/queues/rx-{queue}/rps_cpus", "00000000\n")
        tree.write(f"{folder}/queues/tx-{queue}/xps_cpus", "00000000\n")
