"""Faults of CPU time, scheduling and interrupts."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from reveal_cli.faults.base import (
    Culprit,
    Fault,
    FaultError,
    FaultTarget,
    Injection,
    Needs,
    program,
    stress,
)
from reveal_cli.faults.cgroups import Cgroup
from reveal_cli.faults.ledger import Undo
from reveal_contract.metric import Subsystem

_CPU = frozenset({Subsystem.CPU})
_CPUS = os.cpu_count() or 1
_LAST_CPU = str(_CPUS - 1)
_HOGS = max(8, 4 * _CPUS)
_MIN_QUOTA = 0.01  # cores: the kernel accepts no quota under 1 ms for each period
_NONE = Needs()
_START_TIME = 19  # in /proc/PID/stat, counted after the name (proc(5), field 22)


def _quota(share: float) -> Callable[[Injection], None]:
    """Return an injection that limits the workload's cgroup to a share of its average CPU use."""

    def inject(injection: Injection) -> None:
        group = injection.target.workload
        if group is None:
            raise FaultError("the workload has no cgroup of its own")
        injection.ledger.add(Undo("unlimit", (group.name,)))
        group.limit_cpu(max(share * _cores_used(group), _MIN_QUOTA))

    return inject


def _cores_used(group: Cgroup) -> float:
    """Return the average number of cores used since its oldest process started."""
    begun = min(_start_seconds(pid) for pid in group.processes())
    age = max(time.clock_gettime(time.CLOCK_BOOTTIME) - begun, 1.0)
    return group.cpu_seconds() / age


def _start_seconds(pid: int) -> float:
    stat = Path(f"/proc/{pid}/stat").read_text()
    ticks = int(stat[stat.rindex(")") + 2 :].split()[_START_TIME])
    return ticks / os.sysconf("SC_CLK_TCK")


def _stall(only_youngest: bool) -> Callable[[Injection], None]:
    """Return an injection that stops the workload's processes, or the youngest one."""

    def inject(injection: Injection) -> None:
        members = _members(injection.target)
        chosen = members[-1:] if only_youngest else members
        injection.ledger.add(Undo("resume", tuple(map(str, chosen))))
        for pid in chosen:
            os.kill(pid, signal.SIGSTOP)

    return inject


def _members(target: FaultTarget) -> list[int]:
    if target.workload is not None:
        return sorted(target.workload.processes())
    pids = (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit())
    return sorted(pid for pid in pids if _group_of(pid) == target.process_group)


def _group_of(pid: int) -> int:
    try:
        return os.getpgid(pid)
    except OSError:
        return 0


def _spin_beside(injection: Injection) -> None:
    """Run two spinning processes on each CPU that the workload may use."""
    for cpu in os.sched_getaffinity(_members(injection.target)[0]):
        injection.program("spin", 2, cpu)


def _single_process(target: FaultTarget) -> str:
    return "" if len(_members(target)) > 1 else "the workload is a single process"


def _fault(
    name: str,
    kind: str,
    about: str,
    inject: Callable[[Injection], None],
    *,
    weak: bool = False,
    needs: Needs = _NONE,
) -> Fault:
    return Fault(name, kind, _CPU, about, inject, weak, needs)


_STRESS = Needs(binaries=("stress-ng",))
_QUOTA = Needs(root=True, workload=True, controllers=("cpu",))

FAULTS: tuple[Fault, ...] = (
    _fault("cpu_contend", "CPU contention", f"{_HOGS} processes that spin", program("spin", _HOGS)),
    _fault(
        "cpu_beside", "CPU contention", "2 spinning processes on each CPU of the workload",
        _spin_beside, needs=Needs(workload=True),
    ),
    _fault(
        "pin_cpu1", "one CPU overloaded", f"2 spinning processes bound to CPU {_LAST_CPU}",
        program("spin", 2, _LAST_CPU),
    ),
    _fault(
        "cpu_hog1_half", "one CPU overloaded", f"half of CPU {_LAST_CPU} taken",
        program("spin", 1, _LAST_CPU, 0.5), weak=True,
    ),
    _fault(
        "ctxt_storm", "context-switch storm", "two pairs of processes passing a byte to and fro",
        program("switch", 2, 0),
    ),
    _fault(
        "ctxt_weak", "context-switch storm", "one pair, 2,000 round trips a second",
        program("switch", 1, 2000), weak=True,
    ),
    _fault(
        "fork_storm", "fork storm", "two loops that start processes as fast as they can",
        program("fork", 2, 0),
    ),
    _fault(
        "fork_weak", "fork storm", "100 short processes a second", program("fork", 1, 100),
        weak=True,
    ),
    _fault(
        "timer_irqs", "timer interrupts", "timers at 50 kHz",
        stress("--timer", "1", "--timer-freq", "50000"), needs=_STRESS,
    ),
    _fault(
        "timer_weak", "timer interrupts", "timers at 3 kHz",
        stress("--timer", "1", "--timer-freq", "3000"), weak=True, needs=_STRESS,
    ),
    Fault(
        "cpu_quota", "CPU quota", _CPU, "the workload's quota set to a fifth of what it uses",
        _quota(0.2), needs=_QUOTA, culprit=Culprit.WORKLOAD,
    ),
    Fault(
        "quota_half", "CPU quota", _CPU, "the workload's quota set to half of what it uses",
        _quota(0.5), weak=True, needs=_QUOTA, culprit=Culprit.WORKLOAD,
    ),
    Fault(
        "stalled", "stalled worker", _CPU | {Subsystem.NETWORK}, "the workload stopped (SIGSTOP)",
        _stall(only_youngest=False), needs=Needs(workload=True), culprit=Culprit.WORKLOAD,
    ),
    Fault(
        "stalled_one", "stalled worker", _CPU | {Subsystem.NETWORK},
        "one process of the workload stopped", _stall(only_youngest=True), weak=True,
        needs=Needs(workload=True, check=_single_process), culprit=Culprit.WORKLOAD,
    ),
)  # fmt: skip
