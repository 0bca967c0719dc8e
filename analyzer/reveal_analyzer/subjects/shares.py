"""Shares of a host counter: what each subject used itself, and the unattributed rest.

All shares and ``unattributed`` add up to ``total``, and none is negative.  ``total`` is the host's
counter.  Host and cgroups may be counted differently (ticks of 10 ms against nanoseconds, other
moments of reading), so that the subjects add up to more than the host.  Their sum is the total
then, because the finer clock is right, and nothing is unattributed.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from reveal_analyzer.derive.channel_index import indices_of
from reveal_analyzer.derive.disk_layers import lowest_disks
from reveal_contract.channels import Channel

ChannelIndices = tuple[int, ...]
_MEMORY_USAGE = "memory.subject.usage"
# subject metric -> alternatives of the host's counters of the same quantity, finest first; the
# counters of one alternative are added up
_HOST: dict[str, tuple[tuple[str, ...], ...]] = {
    "cpu.subject.usage": (
        ("cpu.run_time",),
        ("cpu.user", "cpu.nice", "cpu.system", "cpu.irq", "cpu.softirq"),
    ),
    "memory.subject.major_faults": (("memory.vm.pgmajfault",),),
    "memory.subject.page_faults": (("memory.vm.pgfault",),),
    "memory.subject.oom_kills": (("memory.vm.oom_kill",),),
    "storage.subject.read_bytes": (("storage.disk.read_bytes",),),
    "storage.subject.write_bytes": (("storage.disk.write_bytes",),),
    "storage.subject.reads": (("storage.disk.reads",),),
    "storage.subject.writes": (("storage.disk.writes",),),
    "cpu.subject.context_switches": (("cpu.context_switches",),),
}
_MEMORY = ("memory.mem_total", "memory.mem_free")
_DISKS = "storage.disk."
_OF_HOST = frozenset({*_MEMORY, *(n for names in _HOST.values() for some in names for n in some)})


@dataclass(frozen=True)
class Shares:
    """``own`` is the counter of each subject without the subjects inside its cgroup."""

    own: Mapping[str, float]
    unattributed: float
    total: float

    def percent(self, subject: str) -> float:
        """Return the subject's percentage of the total; 0 if the total is 0."""
        return 100 * self.own.get(subject, 0.0) / self.total if self.total > 0 else 0.0


def split(
    values: Mapping[str, float], parents: Mapping[str, str], host: float = math.nan
) -> Shares:
    """Return the shares of ``host`` (NaN: no such counter) from the counters of subjects.

    The counter of a parent cgroup includes those of its descendants.  They are read at slightly
    different moments: a parent that seems to have used less than its descendants used as much.
    """
    inner: dict[str, list[str]] = {}
    for name in values:
        inner.setdefault(_nearest_ancestor(name, values, parents), []).append(name)
    own: dict[str, float] = {}

    def used_by(name: str) -> float:
        inside = sum(map(used_by, inner.get(name, ())))
        value = max(values[name], 0.0)
        own[name] = max(value - inside, 0.0)
        return max(value, inside)

    used = sum(map(used_by, inner.get("", ())))
    rest = 0.0 if math.isnan(host) else max(host - used, 0.0)
    return Shares(own, rest, used + rest)


def _nearest_ancestor(name: str, values: Mapping[str, float], parents: Mapping[str, str]) -> str:
    """Return the nearest ancestor with a value; "" for none, and where parents form a cycle."""
    chain, parent = [name], parents.get(name, "")
    while parent and parent not in chain:
        chain.append(parent)
        parent = parents.get(parent, "")
    is_cycle = bool(parent)
    return "" if is_cycle else next((above for above in chain[1:] if above in values), "")


def host_indices(channels: Sequence[Channel]) -> dict[str, ChannelIndices]:
    """Return, by subject metric, the indices of the host's counters of it among ``channels``.

    These are the host's own row if there is one, else all instances (CPUs, disks).  Subjects and
    host count the I/O of one layer: disks that repeat that of others are left out.
    """
    by_metric = {
        name: {channels[index].instance: index for index in indices}
        for name in _OF_HOST
        if (indices := indices_of(channels, name))
    }
    found: dict[str, ChannelIndices] = {}
    for metric, alternatives in _HOST.items():
        for names in alternatives:
            if all(name in by_metric for name in names):
                found[metric] = tuple(
                    i for name in names for i in _host_rows(name, by_metric[name])
                )
                break
    if all("" in by_metric.get(name, {}) for name in _MEMORY):
        found[_MEMORY_USAGE] = tuple(by_metric[name][""] for name in _MEMORY)
    return found


def host_value(metric: str, indices: ChannelIndices, value_of: Callable[[int], float]) -> float:
    """Return the host's value of a subject metric: the sum of its counters.

    Memory in use is the total less what is free.
    """
    values = [value_of(index) for index in indices]
    if metric == _MEMORY_USAGE and values:
        return values[0] - sum(values[1:])
    return math.fsum(values)


def _host_rows(metric: str, instances: Mapping[str, int]) -> Sequence[int]:
    if "" in instances:
        return [instances[""]]
    if metric.startswith(_DISKS):
        return [instances[disk] for disk in lowest_disks(instances)]
    return list(instances.values())
