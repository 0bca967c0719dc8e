"""Derived metrics: ratios and sums of channels that show more than the channels themselves.

Their catalogue rows are in ``reveal_contract.catalogue.derived``; this module has the formulas.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from reveal_analyzer.derive.cpu_ratios import ChannelIndices, cpu_ratios
from reveal_analyzer.derive.device_ratios import device_ratios
from reveal_analyzer.derive.gpu_ratios import gpu_ratios
from reveal_analyzer.kernels.formulas import (
    Formula,
    maximum,
    maximum_known,
    minimum,
    read,
    total,
    total_or_zero,
)
from reveal_contract import catalogue
from reveal_contract.channels import Channel
from reveal_contract.ledger import NAMELESS, WAIT_IDLE, WAIT_OTHERS, WAIT_SELF
from reveal_contract.metric import Metric

_BUSY = ("cpu.user", "cpu.nice", "cpu.system", "cpu.irq", "cpu.softirq")
_STOLEN = "cpu.steal"  # a CPU that the hypervisor took runs nothing, but it is not idle either
_BUSIEST = "cpu.percpu.busy.max"  # the busiest CPU of each tick, on hosts of many CPUs
# of /proc/interrupts, of x86 and of Arm: rescheduling, function calls
_BETWEEN_CPUS = ("RES", "CAL", "IPI0", "IPI1")
_WAITS = (WAIT_OTHERS, WAIT_SELF, WAIT_IDLE)
_SHARE = 1_000_000  # parts per million


@dataclass(frozen=True)
class Ratio:
    """One derived column, by a formula over the values of all channels."""

    metric: Metric
    instance: str
    formula: Formula


def find_ratios(channels: Sequence[Channel], kept: Sequence[int]) -> tuple[Ratio, ...]:
    """Return all derived columns that these channels allow."""
    indices = {(channels[k].metric, channels[k].instance): k for k in kept}
    result = [_busy(indices), _imbalance(indices), _busiest(indices), _external_interrupts(indices)]
    result.append(_longest_waiting(indices))
    result += [_retransmit_share(indices), _retransmitted(indices), _reserved_share(indices)]
    disks = dict.fromkeys(name for metric, name in indices if metric == "storage.disk.reads")
    result += [_await(indices, disk) for disk in disks]
    result += [
        Ratio(*computed)
        for computed in (*cpu_ratios(indices), *gpu_ratios(indices), *device_ratios(indices))
    ]
    return tuple(ratio for ratio in result if ratio is not None)


def _busy(indices: ChannelIndices) -> Ratio | None:
    parts = _channels(indices, _BUSY, "")
    return Ratio(catalogue.find("cpu.busy"), "", total(parts)) if parts else None


def _imbalance(indices: ChannelIndices) -> Ratio | None:
    """Return busiest minus least busy CPU: work that cannot move or does not.

    Stolen time counts as busy, as no task can use it.  On large hosts the least busy CPU is
    unknown; there it is the busiest minus the mean.
    """
    metric = catalogue.find("cpu.imbalance")
    most, cpus = indices.get((_BUSIEST, "")), indices.get(("cpu.online", ""))
    parts = _channels(indices, (*_BUSY, _STOLEN), "")
    if most is not None and cpus is not None:
        return Ratio(metric, "", read(most) - total(parts) / maximum(read(cpus), 1.0))
    each = _busy_by_cpu(indices)
    return Ratio(metric, "", maximum(*each) - minimum(*each)) if len(each) > 1 else None


def _busiest(indices: ChannelIndices) -> Ratio | None:
    """Return the busiest CPU; on large hosts the collector reports it for each tick.

    Stolen time counts as busy: a task that waits for this CPU cannot use it.
    """
    metric = catalogue.find("cpu.busiest")
    folded = indices.get((_BUSIEST, ""))
    if folded is not None:
        return Ratio(metric, "", read(folded))
    each = _busy_by_cpu(indices)
    return Ratio(metric, "", maximum(*each)) if each else None


def _busy_by_cpu(indices: ChannelIndices) -> list[Formula]:
    cpus = [name for metric, name in indices if metric == "cpu.user" and name]
    rows = [_channels(indices, (*_BUSY, _STOLEN), cpu) for cpu in cpus]
    return [total(row) for row in rows if len(row) >= len(_BUSY)]


def _external_interrupts(indices: ChannelIndices) -> Ratio | None:
    """Return all interrupts without those between CPUs: waking a task on another CPU takes one."""
    every = indices.get(("cpu.interrupts.total", ""))
    if every is None:
        return None
    names = [("cpu.interrupts.irq", sender) for sender in _BETWEEN_CPUS]
    sent = [indices[name] for name in names if name in indices]
    external = maximum(read(every) - total(sent), 0.0)
    return Ratio(catalogue.find("cpu.interrupts.external"), "", external)


def _longest_waiting(indices: ChannelIndices) -> Ratio | None:
    """Return how long the subject that waited longest for a CPU did so, on a host with a ledger.

    Unlike pressure this has no threads that a CPU quota holds back.
    """
    subjects = [name for metric, name in indices if metric == _WAITS[0]]
    named = [_channels(indices, _WAITS, name) for name in subjects if name not in NAMELESS]
    each = [reduce(Formula.__add__, map(read, waits)) for waits in named]
    if not each:
        return None
    return Ratio(catalogue.find("cpu.longest_waiting"), "", maximum_known(*each))


def _retransmit_share(indices: ChannelIndices) -> Ratio | None:
    """Return retransmitted over sent segments; the denominator is at least 2,000 per second.

    So a single retransmission of an idle host is no storm.  Counts the host's network namespace and
    those of its subjects, as a pod's connections are not counted by the host.
    """
    retransmitted, sent = (_tcp_of_all(indices, name) for name in ("retrans_segs", "out_segs"))
    if not (retransmitted and sent):
        return None
    host, *own = retransmitted
    share_lost = _SHARE * (read(host) + total_or_zero(own)) / maximum(total(sent), 2000.0)
    return Ratio(catalogue.find("network.tcp.retransmit_share"), "", share_lost)


def _retransmitted(indices: ChannelIndices) -> Ratio | None:
    """Return the retransmitted segments of the host's network namespace and its subjects'."""
    host, *own = _tcp_of_all(indices, "retrans_segs") or (None,)
    if host is None:
        return None
    metric = catalogue.find("network.tcp.retransmitted")
    return Ratio(metric, "", read(host) + total_or_zero(own))


def _tcp_of_all(indices: ChannelIndices, name: str) -> list[int]:
    """Return a TCP counter of the host and of its subjects; empty if the host has none."""
    host = indices.get((f"network.tcp.{name}", ""))
    if host is None:
        return []
    own = (index for (metric, _), index in indices.items() if metric == f"network.subject.{name}")
    return [host, *own]


def _reserved_share(indices: ChannelIndices) -> Ratio | None:
    """Return huge pages of the default size as a share of all memory."""
    names = ("memory.huge_pages_total", "memory.hugepagesize", "memory.mem_total")
    channels = [indices[name, ""] for name in names if (name, "") in indices]
    if len(channels) < len(names):
        return None
    pages, size, memory = map(read, channels)
    share = _SHARE * pages * size / memory
    return Ratio(catalogue.find("memory.huge_pages_reserved_share"), "", share)


def _await(indices: ChannelIndices, disk: str) -> Ratio | None:
    """Return the mean time of a request, as iostat's await.

    The denominator is at least five requests per second.
    """
    times = _channels(indices, ("storage.disk.read_time", "storage.disk.write_time"), disk)
    requests = _channels(indices, ("storage.disk.reads", "storage.disk.writes"), disk)
    if len(times) < 2 or len(requests) < 2:
        return None
    time, done = (read(first) + read(second) for first, second in (times, requests))
    return Ratio(catalogue.find("storage.disk.await"), disk, time / maximum_known(done, 5.0))


def _channels(indices: ChannelIndices, metrics: Sequence[str], instance: str) -> list[int]:
    return [indices[metric, instance] for metric in metrics if (metric, instance) in indices]
