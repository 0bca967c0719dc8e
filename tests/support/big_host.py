"""A made-up host unlike the recorded one: 8 CPUs (one offline), 2 NUMA nodes, an old kernel."""

from __future__ import annotations

from pathlib import Path

from reveal_collector.readers.source import Roots
from support.hosts.tree import Tree

CPUS = (0, 1, 2, 3, 4, 6, 7)  # 5 is offline
NODES = (0, 1)


def write(root: Path, cpus: tuple[int, ...] = CPUS) -> Roots:
    """The tree, with values that tell where they come from."""
    files = {
        "proc/stat": stat(cpus),
        "proc/softirqs": softirqs(cpus),
        "proc/interrupts": interrupts(cpus),
        "proc/meminfo": "MemTotal:  800000 kB\nMemFree:  500000 kB\nCached:  1000 kB\n",
        "proc/vmstat": "nr_free_pages 125000\nnr_mlock 7\npgpgin 100\npgfault 5\nallocstall 3\n",
        "proc/diskstats": DISKSTATS,
        "proc/schedstat": schedstat(cpus),
        "proc/net/dev": NET_DEV,
        "proc/net/netstat": "TcpExt: SyncookiesSent TCPTimeouts\nTcpExt: 1 2\n",
        "proc/net/snmp": "Tcp: MaxConn CurrEstab RetransSegs\nTcp: -1 4 5\n",
        "proc/net/softnet_stat": "".join(f"{cpu + 16:08x} 0000000a 00000001\n" for cpu in cpus),
        "sys/devices/system/cpu/online": ",".join(map(str, cpus)) + "\n",
    }
    for node in NODES:
        base = f"sys/devices/system/node/node{node}"
        files[f"{base}/numastat"] = f"numa_hit {node + 1}\nnuma_miss 0\n"
        keys = ("MemTotal: 400000 kB", "HugePages_Total: 8")
        files[f"{base}/meminfo"] = "".join(f"Node {node} {key}\n" for key in keys)
    for cpu in cpus:
        folder = f"sys/devices/system/cpu/cpu{cpu}"
        files[f"{folder}/cpufreq/scaling_cur_freq"] = f"{1_000_000 + cpu}\n"
        files[f"{folder}/thermal_throttle/core_throttle_count"] = f"{cpu}\n"
    tree = Tree(root)
    for name, text in files.items():
        tree.write(name, text)
    return tree.roots


def stat(cpus: tuple[int, ...]) -> str:
    """As before 2.6.11: no steal, no guest."""
    rows = [f"cpu{cpu} {100 + cpu} 0 3 4 5 6 7" for cpu in cpus]
    total = sum(100 + cpu for cpu in cpus)
    return "\n".join([f"cpu  {total} 0 21 28 35 42 49", *rows, "intr 99 1 2 3", "ctxt 12345", ""])


def softirqs(cpus: tuple[int, ...]) -> str:
    head = "".join(f" CPU{cpu}" for cpu in cpus)
    return f"{head}\nNET_RX: {' '.join(map(str, cpus))}\nTIMER: {' '.join('1' * len(cpus))}\n"


def interrupts(cpus: tuple[int, ...]) -> str:
    zeros, single = " 0" * len(cpus), " 1" * len(cpus)
    head = "".join(f"  CPU{cpu}" for cpu in cpus)
    return (
        f"{head}\n"
        f" 16:{single}  IR-IO-APIC   16-fasteoi   i801_smbus, xhci_hcd\n"
        f" 99:{zeros} IR-PCI-MSI 524288-edge      nvme0q0\n"
        f"100:{single}   GICv3  27 Level     arch_timer\n"
        f"LOC:{single}   Local timer interrupts\n"
        f"TLB:{single}   TLB shootdowns\n"
        "ERR:          3\n"
        "a line of another kind\n"
    )


def schedstat(cpus: tuple[int, ...]) -> str:
    rows = [f"cpu{cpu} 0 0 1 2 3 4 {1000 + cpu} {50 + cpu} 9\ndomain0 00ff 1 2 3" for cpu in cpus]
    return "version 15\ntimestamp 4295\n" + "\n".join(rows) + "\n"


DISKSTATS = """\
   8       0 sda 10 1 80 4 20 2 160 8 1 12 13
   8       1 sda1 9 1 72 4 19 2 150 8 0 12 13
 259       0 nvme0n1 10 1 80 4 20 2 160 8 1 12 13 5 0 40 1
 259       1 nvme0n1p1 9 1 72 4 19 2 150 8 0 12 13 5 0 40 1
   9       0 md0 1 0 8 0 2 0 16 0 0 0 0 0 0 0 0 3 4
   8      17 sdb1 1 2 3 4
   7       0 loop0 0 0 0 0 0 0 0 0 0 0 0
"""

NET_DEV = """\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop
  ib0: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16
 sit0: 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0
"""
