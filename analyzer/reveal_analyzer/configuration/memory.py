"""Rules on memory and its NUMA nodes."""

from __future__ import annotations

from collections.abc import Iterator

from reveal_analyzer.configuration.rule import Broken, Rule, fact
from reveal_analyzer.formatting import human
from reveal_contract.facts import Facts, HugePool, NumaNode
from reveal_contract.finding import Evidence, Severity
from reveal_contract.metric import Kind, Subsystem

_GIB = 1 << 30
_IDLE_SHARE = 0.01  # of the host's memory
_UNEVEN = 0.93  # of the largest node: a module of sixteen missing is 0.94, of eight 0.88
_UNEVEN_BYTES = 4 * _GIB  # the kernel's own reservations make less


def idle_huge_pages(facts: Facts) -> Iterator[Broken]:
    least = max(_GIB, _IDLE_SHARE * (facts.memory.total or 0))
    for pool in facts.memory.huge:
        idle = pool.free - pool.reserved
        if pool.node is not None or idle * pool.size < least or 2 * idle < pool.total:
            continue
        yield Broken(
            f"{pool.size >> 10}kB",
            {
                "idle": human(idle * pool.size, "bytes", Kind.GAUGE),
                "size": human(pool.size, "bytes", Kind.GAUGE),
                "free": idle,
                "total": pool.total,
                "used": pool.total - idle,
                "kb": pool.size >> 10,
            },
            (
                fact("memory.hugepages.free", f"{pool.size >> 10}kB", idle * pool.size, 0, "bytes",
                     "free_hugepages"),
                *_by_node(facts.memory.huge, pool.size),
            ),
        )  # fmt: skip


def _by_node(pools: tuple[HugePool, ...], size: int) -> Iterator[Evidence]:
    for pool in pools:
        if pool.node is not None and pool.size == size:
            instance = f"{size >> 10}kB:node{pool.node}"
            idle = pool.free * size
            yield fact("memory.hugepages.free", instance, idle, 0, "bytes", "free_hugepages")


def swappiness(facts: Facts) -> Iterator[Broken]:
    """Over 100 the kernel takes swap for cheaper than files: true of compressed memory only."""
    value, memory = facts.kernel.sysctl.get("vm.swappiness", ""), facts.memory
    if not value.isdecimal() or int(value) <= 100 or not memory.swaps or memory.zswap:
        return
    slow = [swap.name for swap in memory.swaps if not swap.name.startswith("/dev/zram")]
    if slow:
        yield Broken(
            "",
            {"value": value, "swap": slow[0]},
            (fact("kernel.vm.swappiness", "", int(value), 100, known_as="vm.swappiness"),),
        )


def zone_reclaim(facts: Facts) -> Iterator[Broken]:
    value = facts.kernel.sysctl.get("vm.zone_reclaim_mode", "0")
    if value != "0" and value.isdecimal() and len(_with_memory(facts)) > 1:
        yield Broken(
            "",
            {"value": value},
            (fact("kernel.vm.zone_reclaim_mode", "", int(value), 0,
                  known_as="vm.zone_reclaim_mode"),),
        )  # fmt: skip


def stalling_thp(facts: Facts) -> Iterator[Broken]:
    memory = facts.memory
    if memory.thp_defrag == "always" and memory.thp == "always":
        yield Broken(
            "",
            {},
            (fact("memory.thp.defrag", "", "always", "madvise",
                  known_as="transparent_hugepage/defrag"),),
        )  # fmt: skip


def bare_node(facts: Facts) -> Iterator[Broken]:
    if facts.kernel.virtual is not False or not _with_memory(facts):
        return
    for node in facts.memory.nodes:
        if node.cpus and node.memory == 0:
            yield Broken(
                f"node{node.node}",
                {"node": node.node, "cpus": node.cpus},
                (fact("memory.numa.total", f"node{node.node}", 0, unit="bytes",
                      known_as="MemTotal"),),
            )  # fmt: skip


def uneven_nodes(facts: Facts) -> Iterator[Broken]:
    """Nodes with CPUs only: memory behind CXL or a GPU's own is smaller by design."""
    nodes = [node for node in _with_memory(facts) if node.cpus]
    if facts.kernel.virtual is not False or len(nodes) < 2:
        return
    largest = max(nodes, key=_memory)
    for node in nodes:
        if _memory(node) < min(_UNEVEN * _memory(largest), _memory(largest) - _UNEVEN_BYTES):
            has, should = (human(_memory(one), "bytes", Kind.GAUGE) for one in (node, largest))
            yield Broken(
                f"node{node.node}",
                {"node": node.node, "other": largest.node, "has": has, "should": should},
                (fact("memory.numa.total", f"node{node.node}", _memory(node), _memory(largest),
                      "bytes", "MemTotal"),),
            )  # fmt: skip


def _with_memory(facts: Facts) -> list[NumaNode]:
    return [node for node in facts.memory.nodes if node.memory]


def _memory(node: NumaNode) -> int:
    return node.memory or 0


RULES = (
    Rule(
        "IdleHugePages", Subsystem.MEMORY, Severity.LOW,
        "{idle} are set aside as huge pages of {size} and unused ({used} of {total} pages in"
        " use): no other program can have this memory",
        "echo {used} > /sys/kernel/mm/hugepages/hugepages-{kb}kB/nr_hugepages (and take"
        " hugepages= off the kernel's command line, vm.nr_hugepages out of sysctl.d)",
        "Pages of a huge page pool are taken from all other use when they are reserved, whether"
        " a program maps them or not.",
        "kernel: admin-guide/mm/hugetlbpage.rst; paper 6, case 4",
        idle_huge_pages,
    ),
    Rule(
        "SwapPreferredToFiles", Subsystem.MEMORY, Severity.LOW,
        "vm.swappiness is {value}: programs are swapped to {swap} rather than cached files"
        " dropped",
        "sysctl -w vm.swappiness=60",
        "Values over 100 say that swapping is cheaper than reading a file again, which is so"
        " for swap in compressed memory (zram, zswap), of which this host has none.",
        "kernel: admin-guide/sysctl/vm.rst (swappiness)",
        swappiness,
    ),
    Rule(
        "ZoneReclaim", Subsystem.MEMORY, Severity.LOW,
        "vm.zone_reclaim_mode is {value}: a NUMA node that is full drops its cached files, and"
        " stalls the program that allocates, though other nodes have memory free",
        "sysctl -w vm.zone_reclaim_mode=0",
        "Reclaiming within the node before memory of another one is used pays only where each"
        " job is cut to fit a node; the kernel leaves it off.",
        "kernel: admin-guide/sysctl/vm.rst (zone_reclaim_mode)",
        zone_reclaim,
    ),
    Rule(
        "StallingTHP", Subsystem.MEMORY, Severity.LOW,
        "page faults of all programs may stall to reclaim and compact memory for a transparent"
        " huge page",
        "echo madvise > /sys/kernel/mm/transparent_hugepage/defrag",
        "With enabled and defrag both `always`, a fault that finds no free huge page reclaims"
        " and compacts memory directly; `madvise` does so only for programs that asked for it.",
        "kernel: admin-guide/mm/transhuge.rst (defrag)",
        stalling_thp,
    ),
    Rule(
        "NodeWithoutMemory", Subsystem.MEMORY, Severity.MEDIUM,
        "NUMA node {node} has CPUs ({cpus}) but no memory: all they use is remote",
        "dmidecode -t memory (fit or re-enable memory modules at that socket)",
        "A socket (or a part of it) without a working memory module has its CPUs fetch"
        " everything through another one.",
        "kernel: admin-guide/mm/numaperf.rst, mm/numa.rst (memoryless nodes)",
        bare_node,
    ),
    Rule(
        "UnevenMemory", Subsystem.MEMORY, Severity.LOW,
        "NUMA node {node} has {has} of memory, node {other} has {should}: a memory module may be"
        " missing or switched off, and bandwidth with it",
        "dmidecode -t memory; dmesg | grep -i -e edac -e dimm",
        "Memory channels are filled alike; firmware leaves out a module that fails its test"
        " without stopping the host. Nodes without CPUs are not compared.",
        "kernel: admin-guide/mm/numaperf.rst; dmidecode(8)",
        uneven_nodes,
    ),
)  # fmt: skip
