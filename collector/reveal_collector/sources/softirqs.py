"""``/proc/softirqs``: number of runs of each kind of softirq on each CPU.

Each kind has its sum over CPUs (``cpu.softirqs{RCU}``) and its CPUs (``cpu.softirqs.percpu
{RCU/0}``).  Network and block kinds are metrics of their subsystem.
"""

from __future__ import annotations

from reveal_collector.devices.per_cpu import fold_by
from reveal_collector.readers.plan import Columns
from reveal_collector.readers.source import Roots, Source
from reveal_collector.readers.textfile import (
    UNFIT,
    ColumnSet,
    Layout,
    LayoutList,
    TokenSource,
    channel,
    is_number,
    rows,
)
from reveal_contract.channels import Channel
from reveal_contract.metric import Lane

_OWNER = {"NET_TX": "network", "NET_RX": "network", "BLOCK": "storage", "IRQ_POLL": "storage"}


def sources(roots: Roots) -> list[Source]:
    arrange = fold_by(roots.sys, with_sums)
    return [TokenSource("softirqs", Lane.FAST, roots.proc / "softirqs", learn, arrange=arrange)]


def learn(text: str) -> Layout:
    """Map the counts of each CPU; the header lists the online CPUs."""
    lines = list(rows(text))
    cpus = [name.removeprefix("CPU") for name in lines[0][1]] if lines else []
    layout: LayoutList = []
    for start, tokens in lines[1:]:
        kind, counts = tokens[0].rstrip(":"), tokens[1:]
        if len(counts) != len(cpus) or not all(map(is_number, counts)):
            layout.append((start, UNFIT))
            continue
        metric = f"{_OWNER.get(kind, 'cpu')}.softirqs.percpu"
        layout += [
            (start + index, channel(metric, f"{kind}/{cpu}")) for index, cpu in enumerate(cpus, 1)
        ]
    return layout


def with_sums(channels: tuple[Channel, ...]) -> ColumnSet:
    """Return the counts of each CPU, then their sum for each kind."""
    kinds: dict[tuple[str, str], list[int]] = {}
    for index, each in enumerate(channels):
        kind = each.instance.rpartition("/")[0]
        kinds.setdefault((each.metric.removesuffix(".percpu"), kind), []).append(index)
    by_cpu = tuple((index,) for index in range(len(channels)))
    sums = tuple(channel(metric, kind) for metric, kind in kinds)
    return ColumnSet(channels + sums, Columns((*by_cpu, *map(tuple, kinds.values()))))
