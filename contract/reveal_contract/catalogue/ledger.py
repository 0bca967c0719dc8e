"""Catalogue rows: the lost-time ledger (``reveal_contract.ledger``).

None of them has a direction of harm: the ledger is judged by shares of time, not by a baseline.
"""

from __future__ import annotations

from collections.abc import Callable

from reveal_contract.ledger import SOURCE
from reveal_contract.metric import Kind, Lane, Metric, Scope, Subsystem

_PREFIX = f"{SOURCE}."


def _row(
    name: str, unit: str, origin: str, meaning: str, scope: Scope = Scope.SUBJECT,
    subsystem: Subsystem = Subsystem.CPU, kind: Kind = Kind.COUNTER,
) -> Metric:  # fmt: skip
    quantum = 2e7 if unit == "ns" else 1
    return Metric(
        _PREFIX + name, unit, kind, subsystem, scope, SOURCE, Lane.SLOW, origin, meaning, quantum,
        family=SOURCE,
    )  # fmt: skip


def _part(name: str, origin: str, meaning: str, subsystem: Subsystem = Subsystem.CPU) -> Metric:
    return _row(name, "ns", origin, meaning, subsystem=subsystem)


ROWS: tuple[Metric, ...] = (
    _part("run", "sched_switch", "Time that threads of this subject ran."),
    _part("wait_others", "sched_switch, sched_wakeup",
          "Time that threads of this subject waited for a CPU because other subjects ran."),
    _part("wait_self", "sched_switch, sched_wakeup",
          "Time that threads of this subject waited for a CPU because it has more of them than "
          "CPUs that it may use."),
    _part("wait_idle", "sched_switch, sched_wakeup",
          "Time that threads of this subject waited while their CPU was idle: it had to wake up."),
    _part("throttled", "sched_switch, task_struct throttled",
          "Time that threads of this subject were kept from a CPU by the subject's own quota."),
    _part("io_others", "sched_switch in_iowait, block_rq_issue",
          "Time that threads of this subject waited for storage beyond what its requests take "
          "alone. Where that is not known: times the share of other subjects in the requests "
          "under way on its disks.", Subsystem.STORAGE),
    _part("io_own", "sched_switch in_iowait, block_rq_issue",
          "The rest of the time that threads of this subject waited for storage.",
          Subsystem.STORAGE),
    _part("memory", "sched_switch in_memstall, mm_vmscan_*, mm_compaction_*",
          "Time that threads of this subject waited for memory or reclaimed it themselves.",
          Subsystem.MEMORY),
    _part("irq", "softirq_entry, softirq_exit",
          "Time that soft interrupts took from running threads of this subject; of loopback "
          "traffic the subject's own."),
    _part("locked", "sched_switch TASK_UNINTERRUPTIBLE",
          "Time that threads of this subject waited for a lock or an event of the kernel, "
          "without I/O of their own.", Subsystem.STORAGE),
    _part("killable", "sched_switch TASK_KILLABLE",
          "Time that threads of this subject waited killably: for a child after vfork, for NFS."),
    _part("stopped", "sched_switch TASK_STOPPED, TASK_TRACED, TASK_FROZEN",
          "Time that threads of this subject were stopped, traced or frozen."),
    _part("sleep", "sched_switch TASK_INTERRUPTIBLE",
          "Time that threads of this subject slept because they had nothing to do."),
    _part("thread_time", "sched_wakeup_new, sched_process_free",
          "Time that threads of this subject existed, counted apart from the other parts, "
          "which add up to it."),
    _part("disk", "block_rq_issue, block_rq_complete",
          "Time that requests of this subject to block devices were under way.",
          Subsystem.STORAGE),
    _row("waits", "waits", "sched_switch", "Waits of threads of this subject for a CPU."),
    _row("waits_1ms", "waits", "sched_switch", "Those of the waits for a CPU of 1 ms or more."),
    _row("waits_10ms", "waits", "sched_switch", "Those of the waits for a CPU of 10 ms or more."),
    _row("waits_100ms", "waits", "sched_switch", "Those of the waits for a CPU of 100 ms or more."),
    _row("lost_cpu", "ns", "sched_switch",
         "Time that the first subject waited for a CPU because the second one ran.", Scope.PAIR),
    _row("lost_disk", "ns", "block_rq_issue",
         "Part of `ledger.io_others` of the first subject by the share of the second one in the "
         "requests of others under way on the disks of the first.", Scope.PAIR, Subsystem.STORAGE),
    _row("tier", "tier", "schedstat, taskstats, bpf(2)",
         "What the ledger is read from: 0 schedstat, 1 taskstats, 3 BPF.", Scope.NODE,
         kind=Kind.STATE),
    _row("missed", "switches", "sched_switch",
         "Gaps in the context switches that the kernel reported to the ledger.", Scope.NODE),
    _row("folded", "subjects", "sched_switch",
         "Subjects above 1 % of a CPU without a name in the ledger: they are in `other`.",
         Scope.NODE, kind=Kind.GAUGE),
    _row("cost", "ns", "sched_switch", "CPU time that the programs of the ledger took.",
         Scope.NODE),
)  # fmt: skip
PATTERNS: tuple[Callable[[str], Metric | None], ...] = ()
