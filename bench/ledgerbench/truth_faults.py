"""The faults of ``bench/lost_time.py``, and what a finding about each may rightly say.

Most are those of ``reveal demo``.  Own ones take CPU time with a larger weight, share a CPU that
the job is bound to, compact memory without a pause, and limit the memory of the job.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from reveal_cli.faults import Culprit, Fault, FaultError, FaultTarget, Injection, Needs, Undo, find
from reveal_cli.faults.base import program
from reveal_cli.faults.cgroups import Cgroup
from reveal_contract.metric import Subsystem

_CPU, _MEMORY = frozenset({Subsystem.CPU}), frozenset({Subsystem.MEMORY})
_HEAVY = {"cpu.shares": 8192, "cpu.weight": 800}  # eight times the default; version 1, version 2
_LIMITS = ("memory.limit_in_bytes", "memory.max")
_USES = ("memory.usage_in_bytes", "memory.current")
_MAPPED = ("mapped_file", "file_mapped")
_LEAST_MAPPED = 32 << 20
_COMPACT = "/proc/sys/vm/compact_memory"


def _file(group: Cgroup, *names: str) -> Path:
    """Return the first file of these names; that of the other version of cgroups is missing."""
    for path in (folder / name for folder in group.directories for name in names):
        if path.exists():
            return path
    raise FaultError(f"cgroup {group.name} has none of {', '.join(names)}")


def _spin_heavy(injection: Injection) -> None:
    if injection.group is None:
        raise FaultError("a weight needs a cgroup")
    path = _file(injection.group, *_HEAVY)
    path.write_text(str(_HEAVY[path.name]))
    injection.program("spin", 2)


def _squeeze(injection: Injection) -> None:
    """Bind all threads of the job, and a spinning process, to the last CPU."""
    group = injection.target.workload
    if group is None:
        raise FaultError("the job has no cgroup of its own")
    cpus = sorted(os.sched_getaffinity(0))
    for pid in map(str, sorted(group.processes())):
        every = ",".join(map(str, cpus))
        injection.ledger.add(Undo("command", ("taskset", "-a", "-p", "-c", every, pid)))
        injection.helper("taskset", "-a", "-p", "-c", str(cpus[-1]), pid)
    injection.program("spin", 1, cpus[-1])


def _compact(injection: Injection) -> None:
    injection.run("sh", "-c", f"while :; do echo 1 > {_COMPACT}; done")


def _mapped(target: FaultTarget) -> int:
    """Return the bytes of mapped files that the job is charged for."""
    if target.workload is None:
        return 0
    rows = (row.split() for row in _file(target.workload, "memory.stat").read_text().splitlines())
    return next((int(value) for name, value in rows if name in _MAPPED), 0)


def _little_mapped(target: FaultTarget) -> str:
    mib = _LEAST_MAPPED >> 20
    return "" if _mapped(target) >= _LEAST_MAPPED else f"the job maps less than {mib} MiB of files"


def _limit_memory(injection: Injection) -> None:
    """Limit the job to what it uses without half of its mapped files, which it reads again."""
    group = injection.target.workload
    if group is None:
        raise FaultError("the job has no cgroup of its own")
    used = int(_file(group, *_USES).read_text())
    injection.write(str(_file(group, *_LIMITS)), used - _mapped(injection.target) // 2)


_TASKSET = Needs(root=True, binaries=("taskset",), workload=True)
_LIMITED = Needs(root=True, controllers=("memory",), workload=True, check=_little_mapped)
_OWN = (
    Fault("hog", "CPU contention", _CPU, "one process that spins", program("spin", 1)),
    Fault(
        "hog_heavy", "CPU contention", _CPU, "2 spinning processes of eight times the weight",
        _spin_heavy, needs=Needs(root=True, controllers=("cpu",)),
    ),
    Fault(
        "squeeze", "one CPU overloaded", _CPU,
        "the job bound to one CPU, on which a process spins", _squeeze, needs=_TASKSET,
    ),
    Fault(
        "compaction", "compaction", _CPU | _MEMORY, "memory compacted without a pause", _compact,
        needs=Needs(root=True, files=(_COMPACT,)),
    ),
    Fault(
        "memory_limit", "memory limit", _MEMORY, "the job limited to less than the files it maps",
        _limit_memory, needs=_LIMITED, culprit=Culprit.WORKLOAD,
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Expected:
    """The causes that a finding about a fault may rightly name, and whether somebody did it.

    ``alters_own_waits``: threads of the job wait longer for each other, too, which its log cannot
    distinguish from time lost to others.  ``adds_cpu``: the kernel works in threads of the job.
    """

    causes: frozenset[str]
    culprit: Culprit
    alters_own_waits: bool = False
    adds_cpu: bool = False


_TAKEN = ("CPUTakenByNeighbor", "CPUContention", "OneCPUOverloaded")
_DISK = (
    *_TAKEN, "DiskTakenByNeighbor", "BlockedOnIO", "StorageReadBurst", "WritebackBurst",
    "WritersThrottled", "FlushStorm", "SlowDevice",
)  # fmt: skip
_CAUSES: dict[str, tuple[str, ...]] = {
    "hog": _TAKEN,
    "cpu_contend": _TAKEN,
    "hog_heavy": _TAKEN,
    "squeeze": _TAKEN,
    "ctxt_storm": (*_TAKEN, "ContextSwitchStorm"),
    "fork_storm": (*_TAKEN, "ForkStorm"),
    "page_faults": (*_TAKEN, "PageFaultStorm"),
    "compaction": (*_TAKEN, "CompactionStalls", "MemoryCompaction"),
    "quota_half": ("CPUQuotaThrottling",),
    "stalled": ("StalledSubject",),
    "read_burst": _DISK,
    "dirty": _DISK,
    "sync_storm": _DISK,
    "memcg_thrash": (*_DISK, "MemoryPressure"),
    "softirq": (*_TAKEN, "SoftirqPressure", "PacketStorm", "UDPBufferOverflow"),
    "memory_limit": ("MemoryPressure",),
}
_BY_NAME = {fault.name: fault for fault in _OWN}
FAULTS: tuple[Fault, ...] = tuple(_BY_NAME.get(name) or find(name) for name in _CAUSES)
EXPECTED: Mapping[str, Expected] = {
    fault.name: Expected(
        frozenset(_CAUSES[fault.name]),
        fault.culprit,
        alters_own_waits=fault.name == "squeeze",
        adds_cpu=fault.name == "memory_limit",
    )
    for fault in FAULTS
}
QUICK = ("cpu_contend", "fork_storm", "quota_half", "read_burst")
# so many switches that the ledger may go off, and stay off in that session
COSTLY = ("ctxt_storm", "softirq")
