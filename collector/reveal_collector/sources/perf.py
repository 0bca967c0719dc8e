"""Software events and tracepoints of the kernel, counted on every CPU by perf_event_open.

They need no hardware counters, so virtual machines have them too.  Reading interrupts every
CPU once, which is why they are read once a second and not every tick.  The price of a counting
tracepoint is some 50 ns each time it is passed: none here is on a path of millions a second.
"""

from __future__ import annotations

import errno
import resource
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from reveal_collector.perfevent import Event, Group
from reveal_collector.source import LayoutChanged, ParseError, Roots, Source, Unsupported
from reveal_collector.textfile import KeptFile, channel
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
# tracepoint -> subsystem whose metric it is; the name is that of the tracepoint
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
# of these each CPU is a channel as well
BY_CPU = {"cpu.perf.context_switches", "cpu.perf.migrations"}
_TRACEFS = ("kernel/tracing", "kernel/debug/tracing")
_GRANT = (
    "run as root or with CAP_PERFMON, or set kernel.perf_event_paranoid to 0; in a container "
    "also allow the perf_event_open system call"
)


def sources(roots: Roots) -> list[Source]:
    return [_Counts("perf", roots, _software), _Counts("tracepoints", roots, _tracepoints)]


def _software(_: Roots) -> dict[str, Event]:
    return {metric: Event(_SOFTWARE, config) for metric, config in _EVENTS.items()}


def _tracepoints(roots: Roots) -> dict[str, Event]:
    """Those whose number tracefs tells; raises ``Unsupported`` when it tells none."""
    folders = [roots.sys / folder / "events" for folder in _TRACEFS]
    known = {
        trace_metric(name): Event(_TRACEPOINT, number)
        for name in _TRACEPOINTS
        if (number := _number(folders, name)) is not None
    }
    if not known:
        raise Unsupported(
            f"{folders[0]} cannot be read",
            "mount -t tracefs nodev /sys/kernel/tracing, and run as root",
        )
    return known


def trace_metric(name: str) -> str:
    """The metric of a tracepoint: ``network.trace.tcp_retransmit_skb``."""
    return f"{_TRACEPOINTS[name]}.trace.{name.rpartition('/')[2]}"


def _number(folders: Sequence[Path], name: str) -> int | None:
    for folder in folders:
        try:
            return int((folder / name / "id").read_text())
        except (OSError, ValueError):
            continue
    return None


class _Counts:
    """One group of events on each online CPU; counts of each CPU where that says something."""

    lane = Lane.SLOW

    def __init__(self, name: str, roots: Roots, find: Callable[[Roots], dict[str, Event]]) -> None:
        self.name = name
        self.channels: tuple[Channel, ...] = ()
        self._roots, self._find = roots, find
        self._groups: list[Group] = []
        self._online = KeptFile(roots.sys / "devices/system/cpu/online")
        self._cpus = b""

    def open(self) -> None:
        if not self._roots.live:
            raise Unsupported("events can be counted on the machine itself only")
        self.close()
        self._online.open()
        wanted = self._find(self._roots)
        try:
            self._learn(wanted)
        except OSError as error:
            self.close()
            raise _refusal(error) from None

    def read(self) -> Sequence[int | None]:
        if self._online.read() != self._cpus:
            self._learn(self._find(self._roots))
            raise LayoutChanged(self.name)
        by_cpu = [group.read() for group in self._groups]
        present = [counts for counts in by_cpu if counts is not None]
        width = len(self._groups[0].events)
        totals = [sum(column) for column in zip(*present, strict=True)]
        values: list[int | None] = [*totals] if len(present) == len(by_cpu) else [None] * width
        for counts in by_cpu:
            values += [counts[at] if counts else None for at in self._shown_by_cpu]
        return values

    def close(self) -> None:
        for group in self._groups:
            group.close()
        self._groups, self.channels = [], ()
        self._online.close()

    def _learn(self, wanted: Mapping[str, Event]) -> None:
        for group in self._groups:
            group.close()
        self._groups = []
        self._cpus = self._online.read()
        cpus = online(self._cpus.decode())
        metrics = {event: metric for metric, event in affordable(wanted, len(cpus)).items()}
        events = list(metrics)
        for cpu in cpus:
            self._groups.append(Group(cpu, events))
            events = self._groups[0].events  # the same for all
        self._shown_by_cpu = [at for at, each in enumerate(events) if metrics[each] in BY_CPU]
        self.channels = tuple(channel(metrics[each]) for each in events) + tuple(
            channel(metrics[events[at]], str(cpu)) for cpu in cpus for at in self._shown_by_cpu
        )


def online(text: str) -> list[int]:
    """The CPUs of a list such as ``0-3,8``; raises ``ParseError`` for another text."""
    cpus: list[int] = []
    try:
        for part in text.strip().split(","):
            first, _, last = part.partition("-")
            cpus += range(int(first), int(last or first) + 1)
    except ValueError:
        raise ParseError(f"list of CPUs {text[:40]!r} is not one") from None
    return cpus


def affordable(wanted: Mapping[str, Event], cpus: int) -> dict[str, Event]:
    """The first of the events whose descriptors, one a CPU, fit into half of those allowed."""
    allowed, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if allowed == resource.RLIM_INFINITY:
        return dict(wanted)
    return dict(list(wanted.items())[: allowed // 2 // max(cpus, 1)])


def _refusal(error: OSError) -> Unsupported:
    if error.errno in (errno.EACCES, errno.EPERM):
        return Unsupported("perf_event_open is not permitted", _GRANT)
    if error.errno == errno.ENOSYS:
        return Unsupported("this kernel has no perf_event_open", "CONFIG_PERF_EVENTS")
    return Unsupported(f"perf_event_open: {error.strerror or error}")
