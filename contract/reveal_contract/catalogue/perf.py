"""Catalogue rows: hardware and software events and tracepoints of perf_event_open."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from reveal_contract.metric import Harm, Kind, Lane, Metric, Scope, Subsystem

_EVENT = partial(
    Metric, unit="events", kind=Kind.COUNTER, subsystem=Subsystem.CPU, scope=Scope.CPU,
    source="perf", lane=Lane.SLOW, quantum=100,
)  # fmt: skip
_TRACE = partial(
    Metric, unit="events", kind=Kind.COUNTER, scope=Scope.NODE, source="tracepoints",
    lane=Lane.SLOW,
)  # fmt: skip
_PMU = partial(
    Metric, unit="events", kind=Kind.COUNTER, subsystem=Subsystem.CPU, scope=Scope.NODE,
    source="pmu", lane=Lane.SLOW, quantum=1e8, family="cpu.pmu.cycles",
)  # fmt: skip
_MEMORY, _STORAGE, _NETWORK = Subsystem.MEMORY, Subsystem.STORAGE, Subsystem.NETWORK
_HIGHER = Harm.HIGHER

_EVENTS = (
    _EVENT(
        "cpu.perf.context_switches", origin="context-switches", family="cpu.context_switches",
        meaning="Switches from one task to another, including the idle task",
    ),
    _EVENT(
        "cpu.perf.migrations", origin="cpu-migrations", quantum=50,
        meaning="Tasks moved to another CPU",
    ),
    _EVENT(
        "memory.perf.minor_faults", origin="minor-faults", subsystem=_MEMORY,
        family="memory.vm.pgfault", meaning="Page faults served without I/O",
    ),
    _EVENT(
        "memory.perf.major_faults", origin="major-faults", subsystem=_MEMORY, quantum=50,
        harm=_HIGHER, family="memory.vm.pgmajfault", meaning="Page faults that waited for I/O",
    ),
    _EVENT(
        "cpu.perf.alignment_faults", origin="alignment-faults", quantum=10, harm=_HIGHER,
        meaning="Unaligned accesses that the kernel emulated",
    ),
    _EVENT(
        "cpu.perf.emulation_faults", origin="emulation-faults", quantum=10, harm=_HIGHER,
        meaning="Instructions that the kernel emulated",
    ),
    _EVENT(
        "cpu.perf.cgroup_switches", origin="cgroup-switches",
        meaning="Switches to a task of another cgroup",
    ),
)  # fmt: skip


def _trace(
    subsystem: Subsystem, origin: str, meaning: str, quantum: float, harm: Harm = Harm.NEITHER,
    family: str = "",
) -> Metric:  # fmt: skip
    area = subsystem.value.lower()
    return _TRACE(
        f"{area}.trace.{origin.partition(':')[2]}", subsystem=subsystem, origin=origin,
        meaning=meaning, quantum=quantum, harm=harm, family=family,
    )  # fmt: skip


_TRACEPOINTS = (
    _trace(_MEMORY, "oom:mark_victim", "Processes selected for the OOM killer", 1,
           _HIGHER, "memory.vm.oom_kill"),
    _trace(_NETWORK, "tcp:tcp_retransmit_skb", "TCP segments retransmitted", 3, _HIGHER,
           "network.tcp.retrans_segs"),
    _trace(_NETWORK, "tcp:tcp_retransmit_synack", "SYN-ACK segments retransmitted", 3, _HIGHER),
    _trace(_NETWORK, "tcp:tcp_receive_reset", "TCP resets received", 3),
    _trace(_NETWORK, "tcp:tcp_send_reset", "TCP resets sent", 3),
    _trace(_NETWORK, "udp:udp_fail_queue_rcv_skb",
           "UDP datagrams that did not fit into the receive queue of a socket", 3,
           _HIGHER, "network.udp.rcvbuf_errors"),
    _trace(_NETWORK, "sock:sock_rcvqueue_full",
           "Packets refused because the receive queue of a socket was full", 3,
           _HIGHER),
    _trace(_NETWORK, "sock:sock_exceed_buf_limit",
           "Times that a socket buffer reached its limit", 3,
           _HIGHER),
    _trace(_NETWORK, "net:net_dev_xmit_timeout",
           "Send queues of a card that timed out", 1, _HIGHER),
    _trace(_STORAGE, "block:block_rq_issue", "Requests issued to block devices", 5),
    _trace(_STORAGE, "block:block_rq_complete", "Requests that block devices completed", 5),
    _trace(_STORAGE, "block:block_rq_error", "Requests that failed", 1, _HIGHER),
    _trace(_STORAGE, "block:block_rq_requeue", "Requests that a device could not accept yet", 100,
           _HIGHER),
    _trace(_STORAGE, "writeback:balance_dirty_pages",
           "Times that a writer had to wait because of too many dirty pages", 3, _HIGHER),
    _trace(_STORAGE, "writeback:writeback_start", "Runs of writeback", 5),
    _trace(_STORAGE, "jbd2:jbd2_run_stats", "Commits of an ext4 journal", 3),
    _trace(_STORAGE, "jbd2:jbd2_lock_buffer_stall", "Long waits for a journal buffer", 1,
           _HIGHER),
    _trace(_MEMORY, "vmscan:mm_vmscan_direct_reclaim_begin",
           "Times that a task had to reclaim memory itself", 3, _HIGHER),
    _trace(_MEMORY, "vmscan:mm_vmscan_memcg_reclaim_begin",
           "Times that a task had to reclaim memory because of the limit of its "
           "cgroup", 3, _HIGHER),
    _trace(_MEMORY, "vmscan:mm_vmscan_throttled", "Times that a reclaiming task had to wait", 3,
           _HIGHER),
    _trace(_MEMORY, "vmscan:mm_vmscan_wakeup_kswapd",
           "Wakeups of the background reclaimer (kswapd)", 3),
    _trace(_MEMORY, "compaction:mm_compaction_begin", "Runs of memory compaction", 3, _HIGHER),
    _trace(_MEMORY, "migrate:mm_migrate_pages", "Batches of migrated pages", 10),
    _trace(_MEMORY, "ras:mc_event", "Memory errors that the hardware reported", 1, _HIGHER),
    _trace(Subsystem.CPU, "sched:sched_process_fork", "Processes and threads created", 3,
           family="cpu.forks"),
    _trace(Subsystem.CPU, "sched:sched_process_exec", "Programs started", 3),
    _trace(Subsystem.CPU, "sched:sched_process_exit", "Processes and threads ended", 3),
    _trace(Subsystem.CPU, "sched:sched_process_hang",
           "Tasks that were blocked for minutes", 1, _HIGHER),
    _trace(Subsystem.CPU, "mce:mce_record", "Machine check errors recorded", 1, _HIGHER),
    _trace(Subsystem.CPU, "ras:aer_event", "PCIe errors reported", 1, _HIGHER),
    _trace(Subsystem.CPU, "thermal:thermal_zone_trip", "Temperature limits exceeded", 1, _HIGHER),
)  # fmt: skip

_HARDWARE = (
    _PMU("cpu.pmu.cycles", unit="cycles", origin="cpu-cycles (cpu_clk_unhalted, cpu_cycles)",
         meaning="Cycles of all CPUs at their actual clock"),
    _PMU("cpu.pmu.instructions", unit="instructions", origin="instructions (inst_retired)",
         meaning="Instructions retired on all CPUs"),
    _PMU("cpu.pmu.branches", origin="branches (br_inst_retired, ex_ret_brn, br_retired)",
         meaning="Branches retired"),
    _PMU("cpu.pmu.branch_misses", quantum=1e6,
         origin="branch-misses (br_misp_retired, ex_ret_brn_misp, br_mis_pred_retired)",
         meaning="Mispredicted branches retired"),
    _PMU("cpu.pmu.backend_stalls", unit="cycles",
         origin="stall_backend, de_no_dispatch_per_slot.backend_stalls",
         meaning="Cycles without a dispatch because the back end was full (AMD: slots in cycles)"),
    _PMU("memory.pmu.stalls", unit="cycles", subsystem=_MEMORY, family="memory.pmu.stalls",
         origin="cycle_activity.stalls_l3_miss, stall_backend_mem",
         meaning="Cycles stalled while a load waited for memory beyond the last-level cache"),
    _PMU("memory.pmu.llc_references", subsystem=_MEMORY, family="memory.pmu.llc_references",
         origin="cache-references (longest_lat_cache.reference, ll_cache_rd)", quantum=1e6,
         meaning="Requests to the last-level cache"),
    _PMU("memory.pmu.llc_misses", subsystem=_MEMORY, family="memory.pmu.llc_misses",
         origin="cache-misses (longest_lat_cache.miss, ll_cache_miss_rd)", quantum=1e6,
         meaning="Requests that missed in the last-level cache"),
    _PMU("memory.pmu.loads", subsystem=_MEMORY, family="memory.pmu.loads",
         origin="mem-loads (mem_inst_retired.all_loads, ls_dispatch.ld_dispatch, ld_spec)",
         meaning="Loads from memory, including cache hits"),
    _PMU("memory.pmu.stores", subsystem=_MEMORY, family="memory.pmu.loads",
         origin="mem-stores (mem_inst_retired.all_stores, ls_dispatch.store_dispatch, st_spec)",
         meaning="Stores to memory, including cache hits"),
    _PMU("memory.pmu.accesses", subsystem=_MEMORY, family="memory.pmu.loads",
         origin="ls_dc_accesses, mem_access",
         meaning="Loads and stores that reached the data cache"),
    _PMU("memory.pmu.local_fills", subsystem=_MEMORY, family="memory.pmu.local_fills", quantum=1e6,
         origin="ls_any_fills_from_sys.dram_io_near, mem_load_l3_miss_retired.local_dram",
         meaning="Cache lines fetched from memory of the own NUMA node"),
    _PMU("memory.pmu.remote_fills", subsystem=_MEMORY, family="memory.pmu.local_fills", quantum=1e6,
         origin="ls_any_fills_from_sys.dram_io_far, mem_load_l3_miss_retired.remote_dram",
         meaning="Cache lines fetched from memory of another NUMA node"),
)  # fmt: skip

ROWS: tuple[Metric, ...] = (*_EVENTS, *_TRACEPOINTS, *_HARDWARE)
PATTERNS: tuple[Callable[[str], Metric | None], ...] = ()
