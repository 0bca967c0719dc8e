"""Rules on memory and its NUMA nodes."""

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
from reveal_analyzer.formatting import human
from reveal_contract.facts import Facts, HugePool, NumaNode
from reveal_contract.finding import Evidence, Severity
from reveal_contract.metric import Kind, Subsystem

_GIB = 1 << 30
_IDLE_SHARE = 0.01  # of the host's memory
# they map huge pages, or start programs that do; names as in /proc/PID/comm
_HUGE_PAGE_SERVICES = frozenset({
    "cloud-hyperviso", "dpdk-testpmd", "firecracker", "libvirtd", "nvmf_tgt", "ovs-vswitchd",
    "qemu-kvm", "qemu-system-x86", "reactor_0", "spdk_tgt", "virtqemud", "vpp_main",
})  # fmt: skip
_USER_SPACE_DRIVERS = ("vfio-pci", "uio_pci_generic", "igb_uio")
_UNEVEN = 0.93  # of the largest node: 0.94 with one of sixteen modules missing, 0.88 of eight
_UNEVEN_BYTES = 4 * _GIB  # reservations of the kernel cause smaller differences


def idle_huge_pages(facts: Facts) -> Iterator[Verdict]:
    """Find pools of which no page is used or promised, unless programs that take pages run here.

    Virtual machines and DPDK take pages when they start: their pool is complete before that.
    """
    least = max(_GIB, _IDLE_SHARE * (facts.memory.total or 0))
    users = _huge_page_users(facts)
    for pool in facts.memory.huge:
        if pool.node is not None:
            continue
        if pool.total is None or pool.free is None:
            yield Unknown(f"{pool.size >> 10}kB")
            continue
        idle = pool.free - pool.reserved
        if users or idle * pool.size < least or idle < pool.total:
            continue
        yield Violation(
            f"{pool.size >> 10}kB",
            {
                "idle": human(idle * pool.size, "bytes", Kind.GAUGE),
                "size": human(pool.size, "bytes", Kind.GAUGE),
                "total": pool.total,
                "kb": pool.size >> 10,
            },
            (
                fact("memory.hugepages.free", f"{pool.size >> 10}kB", idle * pool.size, 0, "bytes",
                     "free_hugepages"),
                *_by_node(facts.memory.huge, pool.size),
            ),
        )  # fmt: skip


def _huge_page_users(facts: Facts) -> bool:
    """Return whether hypervisors, or user-space drivers of devices, run here."""
    bound = any(device.driver in _USER_SPACE_DRIVERS for device in facts.devices)
    return bound or not _HUGE_PAGE_SERVICES.isdisjoint(facts.kernel.services)


def _by_node(pools: tuple[HugePool, ...], size: int) -> Iterator[Evidence]:
    for pool in pools:
        if pool.node is not None and pool.size == size and pool.free is not None:
            instance = f"{size >> 10}kB:node{pool.node}"
            idle = pool.free * size
            yield fact("memory.hugepages.free", instance, idle, 0, "bytes", "free_hugepages")


def swappiness(facts: Facts) -> Iterator[Verdict]:
    """Find values above 100, which suit only swap in compressed memory."""
    value, memory = facts.kernel.sysctl.get("vm.swappiness", ""), facts.memory
    if not value:
        yield Unknown("")
    if not value.isdecimal() or int(value) <= 100 or not memory.swaps or memory.zswap:
        return
    slow = [swap.name for swap in memory.swaps if not swap.name.startswith("/dev/zram")]
    if slow:
        yield Violation(
            "",
            {"value": value, "swap": slow[0]},
            (fact("kernel.vm.swappiness", "", int(value), 100, known_as="vm.swappiness"),),
        )


def zone_reclaim(facts: Facts) -> Iterator[Verdict]:
    value = facts.kernel.sysctl.get("vm.zone_reclaim_mode", "")
    if not value or _any_unknown_size(facts):
        yield Unknown("")
    if value != "0" and value.isdecimal() and len(_with_memory(facts)) > 1:
        yield Violation(
            "",
            {"value": value},
            (fact("kernel.vm.zone_reclaim_mode", "", int(value), 0,
                  known_as="vm.zone_reclaim_mode"),),
        )  # fmt: skip


def stalling_thp(facts: Facts) -> Iterator[Verdict]:
    memory = facts.memory
    if not memory.thp_defrag or not memory.thp:
        yield Unknown("")
    if memory.thp_defrag == "always" and memory.thp == "always":
        yield Violation(
            "",
            {},
            (fact("memory.thp.defrag", "", "always", "madvise",
                  known_as="transparent_hugepage/defrag"),),
        )  # fmt: skip


def bare_node(facts: Facts) -> Iterator[Verdict]:
    if facts.kernel.virtual is None or not _with_memory(facts):
        yield Unknown(ALL)
    if facts.kernel.virtual is not False or not _with_memory(facts):
        return
    for node in facts.memory.nodes:
        if not node.cpus or node.memory is None:
            yield Unknown(f"node{node.node}")
        if node.cpus and node.memory == 0:
            yield Violation(
                f"node{node.node}",
                {"node": node.node, "cpus": node.cpus},
                (fact("memory.numa.total", f"node{node.node}", 0, unit="bytes",
                      known_as="MemTotal"),),
            )  # fmt: skip


def uneven_nodes(facts: Facts) -> Iterator[Verdict]:
    """Compare nodes with CPUs; the memory of CXL devices and GPUs is smaller by design."""
    nodes = [node for node in _with_memory(facts) if node.cpus]
    if facts.kernel.virtual is None or _any_unknown_size(facts):
        yield Unknown(ALL)
    if facts.kernel.virtual is not False or len(nodes) < 2:
        return
    largest = max(nodes, key=_memory)
    for node in nodes:
        if _memory(node) < min(_UNEVEN * _memory(largest), _memory(largest) - _UNEVEN_BYTES):
            has, should = (human(_memory(each), "bytes", Kind.GAUGE) for each in (node, largest))
            yield Violation(
                f"node{node.node}",
                {"node": node.node, "other": largest.node, "has": has, "should": should},
                (fact("memory.numa.total", f"node{node.node}", _memory(node), _memory(largest),
                      "bytes", "MemTotal"),),
            )  # fmt: skip


def _with_memory(facts: Facts) -> list[NumaNode]:
    return [node for node in facts.memory.nodes if node.memory]


def _any_unknown_size(facts: Facts) -> bool:
    return any(node.memory is None for node in facts.memory.nodes)


def _memory(node: NumaNode) -> int:
    return node.memory or 0


RULES = (
    ConfigurationRule(
        "IdleHugePages", Subsystem.MEMORY, Severity.LOW,
        "{idle} are reserved as huge pages of {size} and unused (0 of {total} pages in use):"
        " no other program can use this memory",
        "echo 0 > /sys/kernel/mm/hugepages/hugepages-{kb}kB/nr_hugepages (and remove"
        " hugepages= from the kernel command line and vm.nr_hugepages from sysctl.d), unless a pod"
        " will request them",
        "The pages of a huge page pool are unavailable for any other use as soon as they are"
        " reserved, whether or not a program maps them. A pool of which a page is in use has a"
        " user and is not reported, nor are pools of hosts with a hypervisor (libvirt, QEMU), Open"
        " vSwitch, DPDK or SPDK, or devices of vfio-pci or uio: programs take these pages when"
        " they start.",
        "kernel: admin-guide/mm/hugetlbpage.rst; paper 6, case 4",
        idle_huge_pages,
        ("memory.huge", "kernel", "devices"),
    ),
    ConfigurationRule(
        "SwapPreferredToFiles", Subsystem.MEMORY, Severity.LOW,
        "vm.swappiness is {value}: the kernel swaps programs to {swap} before it drops"
        " cached files",
        "sysctl -w vm.swappiness=60",
        "A value above 100 means that swapping is cheaper than reading a file again. That is true"
        " for swap in compressed memory (zram, zswap), which this host does not use.",
        "kernel: admin-guide/sysctl/vm.rst (swappiness)",
        swappiness,
        ("memory.swaps",),
    ),
    ConfigurationRule(
        "ZoneReclaim", Subsystem.MEMORY, Severity.LOW,
        "vm.zone_reclaim_mode is {value}: a full NUMA node drops its cached files and stalls the"
        " program that allocates, although other nodes have free memory",
        "sysctl -w vm.zone_reclaim_mode=0",
        "Reclaim within a node, before memory of another node is used, helps only if each job fits"
        " into a node. The kernel leaves it off by default.",
        "kernel: admin-guide/sysctl/vm.rst (zone_reclaim_mode)",
        zone_reclaim,
        ("memory.nodes",),
    ),
    ConfigurationRule(
        "StallingTHP", Subsystem.MEMORY, Severity.LOW,
        "page faults of all programs may stall to reclaim and compact memory for a transparent"
        " huge page",
        "echo madvise > /sys/kernel/mm/transparent_hugepage/defrag",
        "With enabled and defrag both `always`, a fault that finds no free huge page reclaims"
        " and compacts memory directly; `madvise` does so only for programs that asked for it.",
        "kernel: admin-guide/mm/transhuge.rst (defrag)",
        stalling_thp,
    ),
    ConfigurationRule(
        "NodeWithoutMemory", Subsystem.MEMORY, Severity.MEDIUM,
        "NUMA node {node} has CPUs ({cpus}) but no memory: all memory they use is remote",
        "dmidecode -t memory (install or re-enable memory modules of that socket)",
        "The CPUs of a socket (or a part of it) without a working memory module fetch all data"
        " through another one.",
        "kernel: admin-guide/mm/numaperf.rst, mm/numa.rst (memoryless nodes)",
        bare_node,
        ("memory.nodes",),
    ),
    ConfigurationRule(
        "UnevenMemory", Subsystem.MEMORY, Severity.LOW,
        "NUMA node {node} has {has} of memory, node {other} has {should}: a memory module may be"
        " missing or disabled, which also reduces the bandwidth",
        "dmidecode -t memory; dmesg | grep -i -e edac -e dimm",
        "Memory channels are normally populated evenly. Firmware disables a module that fails its"
        " test, and the host still boots. Nodes without CPUs are not compared.",
        "kernel: admin-guide/mm/numaperf.rst; dmidecode(8)",
        uneven_nodes,
        ("memory.nodes",),
    ),
)  # fmt: skip
