"""Software events and tracepoints of the kernel, counted on every CPU by perf_event_open.

They need no hardware counters, so virtual machines have them, too.  A read interrupts every CPU
once; therefore they are read once a second and not every tick.  A counting tracepoint costs about
50 ns each time it is passed, so none here is on a path of millions per second.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from reveal_collector.devices.cpu_topology import MOST_CPUS, online
from reveal_collector.kernel_interfaces.errors import Unsupported
from reveal_collector.kernel_interfaces.perf_event import PerfEvent
from reveal_collector.readers.perf_groups import CountingPlan, PerfGroupSource
from reveal_collector.readers.source import Roots, Source
from reveal_collector.readers.sysfs_attributes import read_number
from reveal_collector.readers.textfile import channel
from reveal_contract.channels import Channel
from reveal_contract.metric import Lane

_SOFTWARE, _TRACEPOINT = 1, 2  # perf_event_attr.type
_EVENTS = {
    "cpu.perf.context_switches": 3,
    "cpu.perf.migrations": 4,
    "memory.perf.minor_faults": 5,
    "memory.perf.major_faults": 6,
    "cpu.perf.alignment_faults": 7,
    "cpu.perf.emulation_faults": 8,
    "cpu.perf.cgroup_switches": 11,
}
# tracepoint -> subsystem of its metric, which is named after the tracepoint
_TRACEPOINTS = {
    "oom/mark_victim": "memory",
    "tcp/tcp_retransmit_skb": "network",
    "tcp/tcp_retransmit_synack": "network",
    "tcp/tcp_receive_reset": "network",
    "tcp/tcp_send_reset": "network",
    "udp/udp_fail_queue_rcv_skb": "network",
    "sock/sock_rcvqueue_full": "network",
    "sock/sock_exceed_buf_limit": "network",
    "net/net_dev_xmit_timeout": "network",
    "block/block_rq_issue": "storage",
    "block/block_rq_complete": "storage",
    "block/block_rq_error": "storage",
    "block/block_rq_requeue": "storage",
    "writeback/balance_dirty_pages": "storage",
    "writeback/writeback_start": "storage",
    "jbd2/jbd2_run_stats": "storage",
    "jbd2/jbd2_lock_buffer_stall": "storage",
    "vmscan/mm_vmscan_direct_reclaim_begin": "memory",
    "vmscan/mm_vmscan_memcg_reclaim_begin": "memory",
    "vmscan/mm_vmscan_throttled": "memory",
    "vmscan/mm_vmscan_wakeup_kswapd": "memory",
    "compaction/mm_compaction_begin": "memory",
    "migrate/mm_migrate_pages": "memory",
    "ras/mc_event": "memory",
    "sched/sched_process_fork": "cpu",
    "sched/sched_process_exec": "cpu",
    "sched/sched_process_exit": "cpu",
    "sched/sched_process_hang": "cpu",
    "mce/mce_record": "cpu",
    "ras/aer_event": "cpu",
    "thermal/thermal_zone_trip": "cpu",
}
# these have a channel for each CPU as well
BY_CPU = {"cpu.perf.context_switches", "cpu.perf.migrations"}
_TRACEFS = ("kernel/tracing", "kernel/debug/tracing")


def sources(roots: Roots) -> list[Source]:
    return [
        PerfGroupSource("perf", Lane.SLOW, roots, _software),
        PerfGroupSource("tracepoints", Lane.SLOW, roots, _tracepoints),
    ]


def _software(roots: Roots) -> CountingPlan:
    events = {metric: PerfEvent(_SOFTWARE, config) for metric, config in _EVENTS.items()}
    return on_every_cpu(events, online(roots.sys))


def _tracepoints(roots: Roots) -> CountingPlan:
    """Plan the tracepoints with an id in tracefs; raises ``Unsupported`` if there is none."""
    folders = [roots.sys / folder / "events" for folder in _TRACEFS]
    known = {
        trace_metric(name): PerfEvent(_TRACEPOINT, tracepoint_id)
        for name in _TRACEPOINTS
        if (tracepoint_id := _number(folders, name)) is not None
    }
    if not known:
        raise Unsupported(
            f"{folders[0]} cannot be read",
            "run mount -t tracefs nodev /sys/kernel/tracing, and run as root",
        )
    return on_every_cpu(known, online(roots.sys))


def on_every_cpu(events: Mapping[str, PerfEvent], cpus: Sequence[int]) -> CountingPlan:
    """Plan one group per CPU: the sum of each event, and some events by CPU on small hosts."""
    columns: dict[Channel, list[tuple[int, PerfEvent]]] = {
        channel(metric): [(cpu, event) for cpu in cpus] for metric, event in events.items()
    }
    if len(cpus) <= MOST_CPUS:
        for cpu in cpus:
            for metric in (name for name in events if name in BY_CPU):
                columns[channel(metric, str(cpu))] = [(cpu, events[metric])]
    return CountingPlan([(cpu, list(events.values())) for cpu in cpus], columns)


def trace_metric(name: str) -> str:
    """Return the metric of a tracepoint: ``network.trace.tcp_retransmit_skb``."""
    return f"{_TRACEPOINTS[name]}.trace.{name.rpartition('/')[2]}"


def _number(folders: Sequence[Path], name: str) -> int | None:
    ids = (read_number(folder / name / "id") for folder in folders)
    return next((id_ for id_ in ids if id_ is not None), None)
