"""Catalogue rows: CPU time, scheduling, interrupts."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from reveal_contract.bounds import CLOCK
from reveal_contract.metric import Harm, Kind, Lane, Metric, Role, Scope, Subsystem

# 3 ticks of 10 ms: a tick counter cannot resolve less within a second
_TIME = partial(
    Metric, unit="ns", kind=Kind.COUNTER, subsystem=Subsystem.CPU, scope=Scope.CPU,
    source="stat", lane=Lane.FAST, quantum=3e7,
)  # fmt: skip
_COUNT = partial(
    Metric, unit="events", kind=Kind.COUNTER, subsystem=Subsystem.CPU, scope=Scope.NODE,
    source="stat", lane=Lane.FAST, quantum=100,
)  # fmt: skip
_LOAD = partial(
    Metric, unit="tasks", kind=Kind.GAUGE, subsystem=Subsystem.CPU, scope=Scope.NODE,
    source="loadavg", lane=Lane.SLOW, quantum=0.5,
)  # fmt: skip
_IRQ = partial(
    Metric, unit="events", kind=Kind.COUNTER, subsystem=Subsystem.CPU, scope=Scope.NODE,
    source="interrupts", lane=Lane.SLOW,
)  # fmt: skip
_SOFTIRQ = partial(
    Metric, unit="events", kind=Kind.COUNTER, source="softirqs", lane=Lane.FAST, quantum=50,
)  # fmt: skip
_PRESSURE = partial(
    Metric, unit="ns", kind=Kind.COUNTER, subsystem=Subsystem.CPU, scope=Scope.NODE,
    source="psi", lane=Lane.FAST, quantum=5e6, harm=Harm.HIGHER,
)  # fmt: skip
_FREQUENCY = partial(
    Metric, unit="Hz", kind=Kind.GAUGE, subsystem=Subsystem.CPU, scope=Scope.CPU,
    source="cpufreq", lane=Lane.SLOW, quantum=1e8, bounds=CLOCK,
)  # fmt: skip

_TIMES = (
    _TIME("cpu.user", origin="user", meaning="CPU time of programs, including virtual machines"),
    _TIME("cpu.nice", origin="nice", meaning="CPU time of programs with lowered priority"),
    _TIME("cpu.system", origin="system", meaning="CPU time of the kernel on behalf of programs"),
    _TIME("cpu.idle", origin="idle", meaning="CPU time without a task to run"),
    _TIME(
        "cpu.iowait", origin="iowait", subsystem=Subsystem.STORAGE, harm=Harm.HIGHER,
        meaning="Idle CPU time while a task of this CPU waited for a block device",
    ),
    _TIME("cpu.irq", origin="irq", meaning="CPU time in hardware interrupts"),
    _TIME(
        "cpu.softirq", origin="softirq", subsystem=Subsystem.NETWORK,
        meaning="CPU time in softirqs, which are mostly network processing",
    ),
    _TIME(
        "cpu.steal", origin="steal", harm=Harm.HIGHER,
        meaning="Time that this virtual CPU was ready while the hypervisor ran something else",
    ),
    _TIME("cpu.guest", origin="guest", meaning="CPU time of virtual machines (part of user)"),
    _TIME(
        "cpu.guest_nice", origin="guest_nice",
        meaning="CPU time of virtual machines with lowered priority (part of nice)",
    ),
    _TIME(
        "cpu.run_time", origin="cpuacct.usage_percpu, schedstat run time or cpu.stat usage_usec",
        source="cpuclock", quantum=2e7,
        meaning="CPU time of tasks, from a clock that is finer than the ticks of the other CPU "
                "times",
    ),
    _TIME(
        "cpu.run_delay", origin="schedstat run_delay", source="schedstat", quantum=2e7,
        harm=Harm.HIGHER, meaning="Time that runnable tasks waited for this CPU",
    ),
)  # fmt: skip

_SCHEDULING = (
    _COUNT(
        "cpu.context_switches", origin="ctxt", family="cpu.context_switches",
        meaning="Switches from one task to another",
    ),
    _COUNT(
        "cpu.forks", origin="processes", quantum=3, meaning="Processes and threads created",
    ),
    _COUNT(
        "cpu.procs_running", unit="tasks", origin="procs_running", kind=Kind.GAUGE, quantum=0.5,
        harm=Harm.HIGHER, meaning="Tasks that run or are ready to run, on all CPUs",
    ),
    _COUNT("cpu.interrupts.total", origin="intr", meaning="Hardware interrupts served"),
    _COUNT("cpu.softirqs.total", origin="softirq", meaning="Softirqs run"),
    _LOAD(
        "cpu.load.1m", origin="loadavg 1 min",
        meaning="Mean number of running and blocked tasks over 1 min",
    ),
    _LOAD(
        "cpu.load.5m", origin="loadavg 5 min",
        meaning="Mean number of running and blocked tasks over 5 min",
    ),
    _LOAD(
        "cpu.load.15m", origin="loadavg 15 min",
        meaning="Mean number of running and blocked tasks over 15 min",
    ),
    _LOAD(
        "cpu.load.running", origin="loadavg running", family="cpu.procs_running",
        meaning="Tasks that are ready to run now",
    ),
    _LOAD("cpu.load.tasks", origin="loadavg tasks", quantum=5, meaning="Tasks that exist"),
    _COUNT(
        "cpu.online", unit="cpus", origin="/sys/devices/system/cpu/online", kind=Kind.GAUGE,
        source="online", lane=Lane.SLOW, quantum=0.5, harm=Harm.LOWER,
        meaning="CPUs that are online",
    ),
    _PRESSURE(
        "cpu.pressure.some", origin="psi cpu some", family="cpu.pressure",
        meaning="Time in which at least one ready task waited for a CPU",
    ),
    _PRESSURE(
        "cpu.pressure.irq", origin="psi irq full", family="cpu.pressure.irq",
        meaning="Time in which interrupts kept all tasks of a CPU from running",
    ),
    _FREQUENCY(
        "cpu.frequency", origin="scaling_cur_freq",
        meaning="Clock that the governor requested, or that the hardware measured",
    ),
    _FREQUENCY(
        "cpu.frequency.maximum", origin="scaling_max_freq", role=Role.STATIC, lane=Lane.RARE,
        source="frequency-limits", scope=Scope.PACKAGE,
        meaning="Lowest of the maximum clocks that the policies of the package allow",
    ),
)  # fmt: skip

_INTERRUPTS = (
    _IRQ(
        "cpu.interrupts", scope=Scope.CPU, origin="interrupts by CPU", quantum=100,
        meaning="Interrupts that this CPU served, from all sources",
    ),
    _IRQ(
        "cpu.interrupts.irq", scope=Scope.IRQ, origin="interrupts", quantum=50,
        meaning="Interrupts of one source, on all CPUs",
    ),
    _IRQ(
        "memory.tlb_shootdowns", subsystem=Subsystem.MEMORY, origin="TLB", quantum=50,
        meaning="Interrupts that make a CPU drop cached address translations",
    ),
    _IRQ(
        "cpu.interrupts.thermal", origin="TRM", quantum=1, harm=Harm.HIGHER,
        meaning="Interrupts of the CPU's thermal sensor",
    ),
    _IRQ(
        "cpu.interrupts.machine_check", origin="MCE", quantum=1, harm=Harm.HIGHER,
        meaning="Machine check exceptions: hardware errors that the CPU reported",
    ),
    _IRQ(
        "cpu.interrupts.errors", origin="ERR", quantum=1, harm=Harm.HIGHER,
        meaning="Erroneous interrupts",
    ),
    _SOFTIRQ(
        "cpu.softirqs", subsystem=Subsystem.CPU, scope=Scope.NODE, origin="softirqs",
        meaning="Softirqs of one kind (timer, scheduler, RCU), on all CPUs",
    ),
    _SOFTIRQ(
        "cpu.softirqs.percpu", subsystem=Subsystem.CPU, scope=Scope.CPU, origin="softirqs",
        family="cpu.softirqs", meaning="Softirqs of one kind on one CPU",
    ),
    _SOFTIRQ(
        "network.softirqs", subsystem=Subsystem.NETWORK, scope=Scope.NODE,
        origin="softirqs NET_RX, NET_TX",
        meaning="Softirqs of network receive or transmit, on all CPUs",
    ),
    _SOFTIRQ(
        "network.softirqs.percpu", subsystem=Subsystem.NETWORK, scope=Scope.CPU,
        origin="softirqs NET_RX, NET_TX", family="network.softirqs",
        meaning="Softirqs of network receive or transmit on one CPU",
    ),
    _SOFTIRQ(
        "storage.softirqs", subsystem=Subsystem.STORAGE, scope=Scope.NODE,
        origin="softirqs BLOCK, IRQ_POLL", meaning="Softirqs of block I/O completion, on all CPUs",
    ),
    _SOFTIRQ(
        "storage.softirqs.percpu", subsystem=Subsystem.STORAGE, scope=Scope.CPU,
        origin="softirqs BLOCK, IRQ_POLL", family="storage.softirqs",
        meaning="Softirqs of block I/O completion on one CPU",
    ),
)  # fmt: skip

ROWS: tuple[Metric, ...] = (*_TIMES, *_SCHEDULING, *_INTERRUPTS)
PATTERNS: tuple[Callable[[str], Metric | None], ...] = ()
