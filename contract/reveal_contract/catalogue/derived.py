"""Catalogue rows: metrics that the analyzer computes from other channels."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from reveal_contract.metric import Harm, Kind, Lane, Metric, Scope, Subsystem

_QUOTIENT = partial(
    Metric, unit="ppm", kind=Kind.RATIO, subsystem=Subsystem.CPU, scope=Scope.NODE,
    source="derived", lane=Lane.DERIVED, quantum=20_000, harm=Harm.HIGHER, weight=0.5,
)  # fmt: skip
_PROCESSOR = (
    _QUOTIENT("cpu.ipc", unit="1", origin="IPC (instructions / cpu-cycles)", quantum=0.1,
              harm=Harm.LOWER, meaning="Instructions retired per cycle, over all CPUs"),
    _QUOTIENT("cpu.branch_miss_share", origin="branch-misses / branches",
              meaning="Mispredicted branches as a share of all branches, per million"),
    _QUOTIENT("cpu.backend_stall_share", origin="backend-bound (stall_backend / cpu-cycles)",
              meaning="Share of the cycles in which the back end accepted nothing, per million"),
    _QUOTIENT("cpu.busy_share", origin="Busy%", family="cpu.busy", harm=Harm.NEITHER,
              meaning="Share of the time that a CPU was not idle, mean over CPUs, per million"),
    _QUOTIENT("cpu.busy_frequency", unit="Hz", origin="Bzy_MHz", quantum=1e8, harm=Harm.LOWER,
              family="cpu.busy_frequency", meaning="Clock of the CPUs while they were busy"),
    _QUOTIENT("cpu.residency_share", origin="CPU%c1, CPU%c6", scope=Scope.STATE,
              quantum=100_000, harm=Harm.NEITHER,
              meaning="Share of the time that a core was in a C-state, mean over cores, per "
                      "million"),
    _QUOTIENT("memory.stall_share", subsystem=Subsystem.MEMORY,
              origin="stalls_l3_miss / cpu-cycles",
              meaning="Share of the cycles stalled on loads beyond the last-level cache, per "
                      "million"),
    _QUOTIENT("memory.llc_miss_share", subsystem=Subsystem.MEMORY, quantum=50_000,
              origin="cache-misses / cache-references",
              meaning="Share of the requests to the last-level cache that missed, per million"),
    _QUOTIENT("memory.loads_per_instruction", subsystem=Subsystem.MEMORY, unit="1", quantum=0.05,
              origin="mem-loads / instructions", harm=Harm.NEITHER,
              meaning="Loads per retired instruction"),
    _QUOTIENT("memory.remote_fill_share", subsystem=Subsystem.MEMORY, quantum=50_000, weight=1.0,
              origin="remote_dram / (local_dram + remote_dram)",
              meaning="Share of the cache lines fetched from memory of another NUMA node, per "
                      "million"),
)  # fmt: skip
_CARD = partial(_QUOTIENT, subsystem=Subsystem.GPU, scope=Scope.GPU)
_CARDS = (
    _CARD("gpu.memory.share", origin="memory.used / memory.total", harm=Harm.NEITHER,
          family="gpu.memory.used", meaning="Share of the device memory in use, per million"),
    _CARD("gpu.power.share", origin="power.draw / enforced.power.limit", harm=Harm.NEITHER,
          family="gpu.power", quantum=50_000,
          meaning="Power draw as a share of the enforced power limit, per million"),
    _CARD("gpu.clock_deficit", origin="1 - clocks.sm / clocks.max.sm", quantum=50_000,
          weight=1.0, meaning="Gap of the clock of a busy GPU to its maximum, per million"),
    _CARD("gpu.throttled_share", origin="NVML_FI_DEV_PERF_POLICY_*",
          meaning="Share of the time that clocks were lowered, of the reason with the largest "
                  "share except for the power limit, per million"),
)  # fmt: skip
_LOSS = partial(
    Metric, unit="1", kind=Kind.RATIO, subsystem=Subsystem.NETWORK, scope=Scope.NODE,
    source="derived", lane=Lane.DERIVED,
)  # fmt: skip
_LOSSES = (
    _LOSS("network.tcp.loss_clumping", origin="index of dispersion of retransmissions", quantum=5,
          meaning="Variance of the retransmissions per tick over 10 s, divided by the "
                  "variance of evenly spread losses: 1 means scattered loss, 10 and more an "
                  "overflowing queue"),
    _LOSS("network.tcp.recovery_length", quantum=2,
          origin="retransmissions / loss recoveries",
          meaning="Retransmitted segments per started recovery (SACK, Reno, timeout) over "
                  "10 s: low if losses are scattered, high if the tails of bursts are dropped"),
    _LOSS("network.tcp.in_bursts", unit="ppm", quantum=200_000,
          origin="retransmissions in step with sends",
          meaning="Share of the retransmissions during bursts (ticks that send at least twice "
                  "the mean of 10 s, and 200 ms after them), per million"),
)  # fmt: skip
_OF_LEDGER = partial(
    Metric, unit="ns", kind=Kind.RATIO, subsystem=Subsystem.CPU, scope=Scope.SUBJECT,
    source="derived", lane=Lane.DERIVED, origin="sched_switch", quantum=2e7, family="ledger",
)  # fmt: skip
_JUDGED = (
    _OF_LEDGER("ledger.taken_cpu",
               meaning="Time that others waited for a CPU on which this subject ran; of those who "
                       "lost to it a part of the time that they wanted, and got less than their "
                       "share"),
    _OF_LEDGER("ledger.taken_disk", subsystem=Subsystem.STORAGE, origin="block_rq_issue",
               meaning="Time that others waited for storage that this subject kept busy; of those "
                       "who lost to it a part of the time that they wanted"),
    _OF_LEDGER("ledger.stopped_share", unit="ppm", quantum=20_000,
               origin="sched_switch TASK_STOPPED, TASK_TRACED, TASK_FROZEN",
               meaning="Share of the time that a subject wanted in which it was stopped, traced or "
                       "frozen, of one that works in the same seconds, per million"),
)  # fmt: skip
ROWS: tuple[Metric, ...] = (
    *_PROCESSOR,
    *_CARDS,
    Metric(
        "cpu.busy", "ns", Kind.RATIO, Subsystem.CPU, Scope.NODE, "derived", Lane.DERIVED,
        "Busy%", "CPU time in which tasks or interrupts ran, over all CPUs; without stolen time",
        quantum=3e7, family="cpu.busy",
    ),
    Metric(
        "cpu.busiest", "ns", Kind.RATIO, Subsystem.CPU, Scope.NODE, "derived", Lane.DERIVED,
        "Busy% of one CPU", "CPU time of the busiest CPU, with stolen time",
        quantum=3e7, family="cpu.busy",
    ),
    Metric(
        "cpu.imbalance", "ns", Kind.RATIO, Subsystem.CPU, Scope.NODE, "derived", Lane.DERIVED,
        "max - min of Busy%",
        "Difference between the CPU times of the busiest and the least busy CPU, with stolen time",
        quantum=1e8,
    ),
    *_JUDGED,
    Metric(
        "cpu.longest_waiting", "ns", Kind.RATIO, Subsystem.CPU, Scope.NODE, "derived",
        Lane.DERIVED, "sched_switch, sched_wakeup",
        "Time that threads waited for a CPU which no quota kept from them, of the subject where it "
        "was longest",
        quantum=2e7, family="ledger",
    ),
    Metric(
        "cpu.interrupts.external", "events/s", Kind.RATIO, Subsystem.CPU, Scope.NODE, "derived",
        Lane.DERIVED, "intr - (RES + CAL)",
        "Interrupts of devices and timers, without those between CPUs",
        quantum=100, family="cpu.interrupts.total",
    ),
    Metric(
        "cpu.stalled_subjects", "1", Kind.RATIO, Subsystem.CPU, Scope.NODE, "derived",
        Lane.DERIVED, "cpuacct.usage, pids.current",
        "Subjects that worked steadily and now get no CPU time although they are alive",
        quantum=1, harm=Harm.HIGHER,
    ),
    Metric(
        "memory.huge_pages_reserved_share", "ppm", Kind.RATIO, Subsystem.MEMORY, Scope.NODE,
        "derived", Lane.DERIVED, "HugePages_Total * Hugepagesize / MemTotal",
        "Share of the memory that is reserved for huge pages of the default size, per million",
        quantum=2000, harm=Harm.HIGHER, family="memory.huge_pages_total",
    ),
    Metric(
        "network.tcp.retransmit_share", "ppm", Kind.RATIO, Subsystem.NETWORK, Scope.NODE,
        "derived", Lane.DERIVED, "TcpRetransSegs / TcpOutSegs",
        "Share of the sent TCP segments that were retransmissions, including those of subjects "
        "with a network namespace of their own, per million",
        quantum=300, harm=Harm.HIGHER, family="network.tcp.retransmit_share",
    ),
    Metric(
        "network.tcp.retransmitted", "events/s", Kind.RATIO, Subsystem.NETWORK, Scope.NODE,
        "derived", Lane.DERIVED, "TcpRetransSegs of all network namespaces",
        "Retransmitted TCP segments, including those of subjects with a network namespace of their "
        "own",
        quantum=30, family="network.tcp.retransmit_share",
    ),
    *_LOSSES,
    Metric(
        "storage.disk.await", "ns", Kind.RATIO, Subsystem.STORAGE, Scope.DISK, "derived",
        Lane.DERIVED, "await", "Mean time of a request on the device, including the queue",
        quantum=1e6, harm=Harm.HIGHER, family="storage.disk.await",
    ),
)  # fmt: skip
PATTERNS: tuple[Callable[[str], Metric | None], ...] = ()
