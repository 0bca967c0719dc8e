"""Catalogue rows: cgroups, units, process groups.

A subject is context for attribution as well as a tenant that can be harmed: what it used is
activity, what it was refused (throttling, limits, stalls, kills) is harm.
"""

from __future__ import annotations

from collections.abc import Callable

from reveal_contract.metric import Capacity, Harm, Kind, Lane, Metric, Scope, Subsystem

_FAST = ("cpu.subject.usage", "cpu.subject.throttled_time", "cpu.subject.throttled_periods")
_OWNERS = {
    "cpu": Subsystem.CPU,
    "memory": Subsystem.MEMORY,
    "storage": Subsystem.STORAGE,
}

# what subjects sum up to is a host counter: one vote for both
_SAME_AS = {
    "memory.subject.major_faults": "memory.vm.pgmajfault",
    "memory.subject.oom_kills": "memory.vm.oom_kill",
    "cpu.subject.pressure": "cpu.pressure",
    "memory.subject.pressure": "memory.pressure",
    "storage.subject.pressure": "storage.pressure",
}


def _counter(
    name: str, unit: str, quantum: float, origin: str, meaning: str, harm: Harm = Harm.NEITHER
) -> Metric:
    return Metric(
        name, unit, Kind.COUNTER, _OWNERS[name.partition(".")[0]], Scope.SUBJECT, "subjects",
        Lane.FAST if name in _FAST else Lane.SLOW, origin, meaning, quantum, harm,
        family=_SAME_AS.get(name, ""),
    )  # fmt: skip


def _bytes(name: str, origin: str, meaning: str) -> Metric:
    return Metric(
        name, "bytes", Kind.GAUGE, Subsystem.MEMORY, Scope.SUBJECT, "subjects", Lane.SLOW, origin,
        meaning, 1 / 512, capacity=Capacity.MEMORY, family="memory.subject.usage",
    )  # fmt: skip


ROWS: tuple[Metric, ...] = (
    _counter("cpu.subject.usage", "ns", 2e7, "cpuacct.usage, cpu.stat usage_usec",
             "CPU time this subject used."),
    _counter("cpu.subject.throttled_time", "ns", 2e7, "cpu.stat throttled_time, throttled_usec",
             "Time runnable threads of this subject were held back by its CPU quota.", Harm.HIGHER),
    _counter("cpu.subject.throttled_periods", "periods", 1, "cpu.stat nr_throttled",
             "Scheduling periods in which this subject ran into its CPU quota.", Harm.HIGHER),
    Metric(
        "cpu.subject.tasks", "threads", Kind.GAUGE, Subsystem.CPU, Scope.SUBJECT, "subjects",
        Lane.SLOW, "pids.current", "Threads and processes of this subject.", 8,
    ),
    _counter("cpu.subject.pressure", "ns", 5e6, "cpu.pressure some total",
             "Time at least one task of this subject waited for a CPU.", Harm.HIGHER),
    _bytes("memory.subject.usage", "memory.usage_in_bytes, memory.current, rss",
           "Memory charged to this subject; of a process group, its resident memory."),
    _bytes("memory.subject.anon", "memory.stat total_rss, anon",
           "Memory of this subject that no file stands behind."),
    _bytes("memory.subject.file", "memory.stat total_cache, file",
           "Page cache charged to this subject."),
    _counter("memory.subject.major_faults", "faults", 50, "memory.stat pgmajfault",
             "Page faults of this subject that had to wait for storage.", Harm.HIGHER),
    _counter("memory.subject.page_faults", "faults", 1000, "memory.stat pgfault",
             "Page faults of this subject."),
    _counter("memory.subject.oom_kills", "kills", 1, "memory.oom_control, memory.events oom_kill",
             "Processes of this subject killed for want of memory.", Harm.HIGHER),
    _counter("memory.subject.limit_hits", "hits", 10, "memory.failcnt, memory.events max",
             "Times this subject ran into its memory limit.", Harm.HIGHER),
    _counter("memory.subject.refaults", "pages", 200, "memory.stat workingset_refault_*",
             "Pages this subject needed back soon after they were reclaimed: how a memory "
             "limit treats page cache; pressure tells whether anybody waits."),
    _counter("memory.subject.scanned", "pages", 200, "memory.stat pgscan",
             "Pages of this subject scanned in search of reclaimable ones."),
    _counter("memory.subject.pressure", "ns", 5e6, "memory.pressure some total",
             "Time at least one task of this subject waited for memory.", Harm.HIGHER),
    _counter("storage.subject.pressure", "ns", 5e6, "io.pressure some total",
             "Time at least one task of this subject waited for storage.", Harm.HIGHER),
    _counter("storage.subject.read_bytes", "bytes", 1e6, "blkio Read, io.stat rbytes",
             "Bytes this subject read from block devices."),
    _counter("storage.subject.write_bytes", "bytes", 1e6, "blkio Write, io.stat wbytes",
             "Bytes this subject wrote to block devices."),
    _counter("storage.subject.reads", "requests", 50, "blkio io_serviced Read, io.stat rios",
             "Read requests of this subject to block devices."),
    _counter("storage.subject.writes", "requests", 50, "blkio io_serviced Write, io.stat wios",
             "Write requests of this subject to block devices."),
)  # fmt: skip
PATTERNS: tuple[Callable[[str], Metric | None], ...] = ()
