"""Shares of a host counter: what each subject used itself, and the rest that is nobody's.

Conservation: all shares and ``unattributed`` add up to ``total``, and none is negative.
``total`` is the host's counter.  Where the host counts otherwise than its cgroups (ticks of
10 ms against ns, another moment of reading) the subjects may come to more than it says; then
their sum is the total: the finer clock is right, and nothing is left over.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from reveal_contract.channels import Channel

Places = tuple[int, ...]
# Subject metric -> the host's counters of the same thing, the finest first; each is a sum.
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


@dataclass(frozen=True)
class Shares:
    """``own`` by subject: its counter without what subjects inside its cgroup used."""

    own: Mapping[str, float]
    unattributed: float
    total: float

    def percent(self, subject: str) -> float:
        """Of the total; 0 where nothing was used at all."""
        return 100 * self.own.get(subject, 0.0) / self.total if self.total > 0 else 0.0


def split(
    values: Mapping[str, float], parents: Mapping[str, str], host: float = math.nan
) -> Shares:
    """Shares of ``host`` (NaN: it has no such counter) from the counters of subjects.

    A parent's counter includes its children's.  All are read at slightly different moments: a
    parent that seems to have used less than its children used as much as they.
    """
    children: dict[str, list[str]] = {}
    for name in values:
        above = _above(name, values, parents)
        children.setdefault(above, []).append(name)
    own: dict[str, float] = {}

    def whole(name: str) -> float:
        inside = sum(map(whole, children.get(name, ())))
        value = max(values[name], 0.0)
        own[name] = max(value - inside, 0.0)
        return max(value, inside)

    used = sum(map(whole, children.get("", ())))
    rest = 0.0 if math.isnan(host) else max(host - used, 0.0)
    return Shares(own, rest, used + rest)


def _above(name: str, values: Mapping[str, float], parents: Mapping[str, str]) -> str:
    """The nearest parent that has a value; "" at the top, and where parents go round."""
    chain, above = [name], parents.get(name, "")
    while above and above not in chain:
        chain.append(above)
        above = parents.get(above, "")
    return "" if above else next((one for one in chain[1:] if one in values), "")


def host_places(channels: Sequence[Channel]) -> dict[str, Places]:
    """By subject metric, where the host's counters of it are among ``channels``.

    The host's own row where there is one, else all instances (CPUs, disks).
    """
    by_metric: dict[str, dict[str, int]] = {}
    for at, channel in enumerate(channels):
        by_metric.setdefault(channel.metric, {})[channel.instance] = at
    found: dict[str, Places] = {}
    for metric, choices in _HOST.items():
        for names in choices:
            if all(name in by_metric for name in names):
                found[metric] = tuple(at for name in names for at in _whole(by_metric[name]))
                break
    for metric, level in _memory_in_use(by_metric).items():
        found[metric] = level
    return found


def host_value(metric: str, places: Places, second: Callable[[int], float]) -> float:
    """The host's figure from its channels' seconds; of memory, all less what is free."""
    values = [second(at) for at in places]
    if metric == _MEMORY and values:
        return values[0] - sum(values[1:])
    return math.fsum(values)


_MEMORY = "memory.subject.usage"


def _memory_in_use(by_metric: Mapping[str, Mapping[str, int]]) -> dict[str, Places]:
    names = ("memory.mem_total", "memory.mem_free")
    if not all("" in by_metric.get(name, {}) for name in names):
        return {}
    return {_MEMORY: tuple(by_metric[name][""] for name in names)}


def _whole(instances: Mapping[str, int]) -> Sequence[int]:
    return [instances[""]] if "" in instances else list(instances.values())
