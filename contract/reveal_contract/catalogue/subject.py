"""Catalogue rows: pods, jobs, containers, units, cgroups, process groups.

A subject is context for attribution, and it can be harmed itself.  What it used is activity; what
it was refused (throttling, limits, stalls, kills) is harm.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from reveal_contract.metric import Capacity, Harm, Kind, Lane, Metric, Scope, Subsystem

_FAST = ("cpu.subject.usage", "cpu.subject.throttled_time", "cpu.subject.throttled_periods")
_OWNERS = {
    "cpu": Subsystem.CPU,
    "memory": Subsystem.MEMORY,
    "network": Subsystem.NETWORK,
    "storage": Subsystem.STORAGE,
}

# The sum over subjects is a counter of the host: both belong to one metric group.
_SAME_AS = {
    "memory.subject.major_faults": "memory.vm.pgmajfault",
    "memory.subject.oom_kills": "memory.vm.oom_kill",
    "cpu.subject.pressure": "cpu.pressure",
    "memory.subject.pressure": "memory.pressure",
    "storage.subject.pressure": "storage.pressure",
    "network.subject.retrans_segs": "network.tcp.retrans_segs",
    "network.subject.drops": "network.nic.rx_drop",
    "cpu.subject.context_switches": "cpu.context_switches",
}


def _counter(
    name: str, unit: str, quantum: float, origin: str, meaning: str, harm: Harm = Harm.NEITHER
) -> Metric:
    return Metric(
        name, unit, Kind.COUNTER, _OWNERS[name.partition(".")[0]], Scope.SUBJECT, "subjects",
        Lane.FAST if name in _FAST else Lane.SLOW, origin, meaning, quantum, harm,
        family=_SAME_AS.get(name, ""),
    )  # fmt: skip


def _of_pmu(name: str, unit: str, quantum: float, origin: str, meaning: str) -> Metric:
    return replace(_counter(name, unit, quantum, origin, meaning), source="subject-perf")


def _of_network(name: str, unit: str, quantum: float, origin: str, meaning: str,
                harm: Harm = Harm.NEITHER) -> Metric:  # fmt: skip
    row = _counter(f"network.subject.{name}", unit, quantum, origin, meaning, harm)
    return replace(row, source="subject-network")


def _bytes(name: str, origin: str, meaning: str) -> Metric:
    return Metric(
        name, "bytes", Kind.GAUGE, Subsystem.MEMORY, Scope.SUBJECT, "subjects", Lane.SLOW, origin,
        meaning, 1 / 512, capacity=Capacity.MEMORY, family="memory.subject.usage",
    )  # fmt: skip


ROWS: tuple[Metric, ...] = (
    _counter("cpu.subject.usage", "ns", 2e7, "cpuacct.usage, cpu.stat usage_usec",
             "CPU time of this subject."),
    _counter("cpu.subject.throttled_time", "ns", 2e7, "cpu.stat throttled_time, throttled_usec",
             "Time that runnable threads of this subject were throttled by its "
             "CPU quota. Analyzers add what the kernel loses of it, by the ledger.", Harm.HIGHER),
    _counter("cpu.subject.throttled_periods", "periods", 1, "cpu.stat nr_throttled",
             "Scheduling periods in which this subject was throttled by its CPU "
             "quota.", Harm.HIGHER),
    Metric(
        "cpu.subject.tasks", "threads", Kind.GAUGE, Subsystem.CPU, Scope.SUBJECT, "subjects",
        Lane.SLOW, "pids.current", "Threads and processes of this subject.", 8,
    ),
    _counter("cpu.subject.pressure", "ns", 2e7, "cpu.pressure some total",
             "Time in which at least one task of this subject waited for a CPU.", Harm.HIGHER),
    _bytes("memory.subject.usage", "memory.usage_in_bytes, memory.current, rss",
           "Memory charged to this subject; of a process group, its resident memory."),
    _bytes("memory.subject.anon", "memory.stat total_rss, anon",
           "Anonymous memory of this subject."),
    _bytes("memory.subject.file", "memory.stat total_cache, file",
           "Page cache charged to this subject."),
    _counter("memory.subject.major_faults", "faults", 50, "memory.stat pgmajfault",
             "Page faults of this subject that had to wait for storage.", Harm.HIGHER),
    _counter("memory.subject.page_faults", "faults", 1000, "memory.stat pgfault",
             "Page faults of this subject."),
    _counter("memory.subject.oom_kills", "kills", 1, "memory.oom_control, memory.events oom_kill",
             "Processes of this subject killed by the OOM killer.", Harm.HIGHER),
    _counter("memory.subject.limit_hits", "hits", 10, "memory.failcnt, memory.events max",
             "Times that this subject reached its memory limit.", Harm.HIGHER),
    _counter("memory.subject.refaults", "pages", 200, "memory.stat workingset_refault_*",
             "Pages of this subject read again soon after they were reclaimed, mostly page "
             "cache under a memory limit; the pressure shows whether tasks wait."),
    _counter("memory.subject.scanned", "pages", 200, "memory.stat pgscan",
             "Pages of this subject scanned for reclaim."),
    _counter("memory.subject.pressure", "ns", 5e6, "memory.pressure some total",
             "Time in which at least one task of this subject waited for memory.", Harm.HIGHER),
    _counter("storage.subject.pressure", "ns", 5e6, "io.pressure some total",
             "Time in which at least one task of this subject waited for storage.", Harm.HIGHER),
    _counter("storage.subject.read_bytes", "bytes", 1e6,
             "blkio Read, io.stat rbytes, read_bytes of its processes",
             "Bytes that this subject read from block devices."),
    _counter("storage.subject.write_bytes", "bytes", 1e6,
             "blkio Write, io.stat wbytes, write_bytes of its processes",
             "Bytes that this subject wrote to block devices."),
    _counter("storage.subject.reads", "requests", 50, "blkio io_serviced Read, io.stat rios",
             "Read requests of this subject to block devices."),
    _counter("storage.subject.writes", "requests", 50, "blkio io_serviced Write, io.stat wios",
             "Write requests of this subject to block devices."),
    _of_network("rx_bytes", "bytes", 5e4, "net/dev rx_bytes of its network namespace",
                "Bytes received in the network namespace of this subject."),
    _of_network("tx_bytes", "bytes", 5e4, "net/dev tx_bytes of its network namespace",
                "Bytes sent from the network namespace of this subject."),
    _of_network("rx_packets", "packets", 100, "net/dev rx_packets of its network namespace",
                "Packets received in the network namespace of this subject."),
    _of_network("tx_packets", "packets", 100, "net/dev tx_packets of its network namespace",
                "Packets sent from the network namespace of this subject."),
    _of_network("drops", "packets", 3, "net/dev rx_dropped + tx_dropped of its network namespace",
                "Packets dropped on the interfaces of this subject.", Harm.HIGHER),
    _of_network("out_segs", "packets", 50, "TcpOutSegs of its network namespace",
                "TCP segments that this subject sent."),
    _of_network("retrans_segs", "events", 3, "TcpRetransSegs of its network namespace",
                "TCP segments that this subject retransmitted.", Harm.HIGHER),
    Metric(
        "cpu.subject.usage.fine", "ns", Kind.GAUGE, Subsystem.CPU, Scope.SUBJECT, "subject-fine",
        Lane.FAST, "cpuacct.usage, cpu.stat usage_usec",
        "CPU time of this subject in one fifth of a tick; #1 is the oldest, #5 the latest.", 1e6,
    ),
    Metric(
        "cpu.subject.starts", "starts", Kind.COUNTER, Subsystem.CPU, Scope.SUBJECT,
        "subject-starts", Lane.SLOW, "paths and inodes of cgroups",
        "Starts of a container in this pod, or of this subject again, since it was found.", 1,
    ),
    _of_pmu("cpu.subject.context_switches", "switches", 100, "context-switches of a cgroup",
            "Context switches away from a task of this subject."),
    _of_pmu("cpu.subject.task_clock", "ns", 2e7, "task-clock of a cgroup",
            "CPU time of this subject, counted by perf."),
    _of_pmu("cpu.subject.instructions", "instructions", 1e8, "instructions of a cgroup",
            "Instructions that this subject retired."),
    _of_pmu("cpu.subject.cycles", "cycles", 1e8, "cycles of a cgroup",
            "CPU cycles of this subject."),
    _of_pmu("cpu.subject.llc_misses", "events", 1e5, "cache-misses of a cgroup",
            "Cache misses of this subject in the last-level cache."),
)  # fmt: skip
PATTERNS: tuple[Callable[[str], Metric | None], ...] = ()
