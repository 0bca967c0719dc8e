"""Aggregated channels for large hosts, instead of one channel for each CPU.

With more than ``MOST_CPUS`` CPUs, a metric of CPUs becomes its total, a sum for each NUMA node,
and of the increments between two readings the largest one, its CPU, and their spread.  A few
hundred CPUs would otherwise give thousands of nearly equal channels.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from reveal_collector.devices.cpu_topology import MOST_CPUS, cpu_list
from reveal_collector.devices.numa_nodes import numa_nodes
from reveal_collector.kernel_interfaces.errors import ParseError
from reveal_collector.readers.plan import Columns, Vector
from reveal_collector.readers.textfile import ColumnSet, channel
from reveal_contract.catalogue import find
from reveal_contract.channels import Channel
from reveal_contract.metric import Scope

Arrange = Callable[[tuple[Channel, ...]], ColumnSet]
_Members = dict[int, tuple[int, ...]]  # CPU -> indices of the values that it adds


def fold_by(
    sys: Path, arrange: Arrange = ColumnSet, combined: Mapping[str, Sequence[str]] | None = None
) -> Arrange:
    """Return a function that applies ``arrange`` to the channels and folds those of many CPUs.

    ``combined`` defines metrics that are the sum of others: name -> its parts.
    """
    return lambda channels: fold_large(arrange(channels), sys, combined or {})


def fold_large(
    columns_in: ColumnSet, sys: Path, combined: Mapping[str, Sequence[str]]
) -> ColumnSet:
    """Return the columns, folded where there are more than ``MOST_CPUS`` CPUs."""
    cpus = {cpu for each in columns_in.channels if (cpu := cpu_of(each)) is not None}
    return fold(columns_in, node_of(sys), combined) if len(cpus) > MOST_CPUS else columns_in


def cpu_of(each: Channel) -> int | None:
    """Return the CPU of a channel; None for a channel of the host."""
    cpu = each.instance.rpartition("/")[2]
    return int(cpu) if cpu.isdecimal() and find(each.metric).scope is Scope.CPU else None


def node_of(sys: Path) -> dict[int, str]:
    """Return CPU -> NUMA node; empty where sysfs has no nodes."""
    found: dict[int, str] = {}
    for node, folder in numa_nodes(sys / "devices/system/node").items():
        try:
            found |= dict.fromkeys(cpu_list((folder / "cpulist").read_text()), node)
        except (OSError, ParseError):  # a node without CPUs has an empty list
            continue
    return found


def fold(
    columns_in: ColumnSet, node: Mapping[int, str], combined: Mapping[str, Sequence[str]]
) -> ColumnSet:
    """Return the columns with those of CPUs folded; columns of the host come first, unchanged."""
    sums = columns_in.columns.sums or tuple((index,) for index in range(len(columns_in.channels)))
    host: dict[Channel, tuple[int, ...]] = {}
    by_cpu: dict[Channel, _Members] = {}  # the host's channel -> its CPUs
    for each, members in zip(columns_in.channels, sums, strict=True):
        cpu = cpu_of(each)
        if cpu is None:
            host[each] = members
        else:
            by_cpu.setdefault(_whole(each), {})[cpu] = members
    for total, cpus in by_cpu.items():
        host.setdefault(total, tuple(index for members in cpus.values() for index in members))
        host |= _by_node(total, cpus, node)
    folded = by_cpu | _joined(by_cpu, combined)
    vectors = tuple(Vector(tuple(cpus.values()), tuple(cpus)) for cpus in folded.values())
    extremes = tuple(extreme for total in folded for extreme in _extremes(total))
    columns = Columns(tuple(host.values()), vectors, columns_in.columns.weights)
    return ColumnSet((*host, *extremes), columns)


def _whole(each: Channel) -> Channel:
    """Return the host's channel: ``cpu.softirqs.percpu{RCU/3}`` -> ``cpu.softirqs{RCU}``."""
    kind = each.instance.rpartition("/")[0]
    return channel(each.metric.removesuffix(".percpu"), kind, each.scale)


def _by_node(
    total: Channel, cpus: _Members, node: Mapping[int, str]
) -> dict[Channel, tuple[int, ...]]:
    sums: dict[str, list[int]] = {}
    for cpu, members in cpus.items():
        if cpu in node:
            sums.setdefault(node[cpu], []).extend(members)
    area, _, rest = total.metric.partition(".")
    prefix = f"{total.instance}/" if total.instance else ""
    return {
        channel(f"{area}.numa.{rest}", prefix + number, total.scale): tuple(members)
        for number, members in sums.items()
    }


def _extremes(total: Channel) -> tuple[Channel, ...]:
    area, _, rest = total.metric.partition(".")
    name = f"{area}.percpu.{rest}"
    return (
        channel(f"{name}.max", total.instance, total.scale),
        channel(f"{name}.argmax", total.instance),
        channel(f"{name}.spread", total.instance, total.scale),
    )


def _joined(
    by_cpu: Mapping[Channel, _Members], combined: Mapping[str, Sequence[str]]
) -> dict[Channel, _Members]:
    """Return the combined metrics: for each CPU, the sum of the parts that the kernel has."""
    found = {total.metric: (total, cpus) for total, cpus in by_cpu.items()}
    sums = {}
    for name, asked in combined.items():
        parts = [part for part in asked if part in found]
        if parts:
            first_part = found[parts[0]][0]
            cpus = {
                cpu: tuple(index for part in parts for index in found[part][1].get(cpu, ()))
                for cpu in found[parts[0]][1]
            }
            sums[Channel(name, "", first_part.kind, first_part.scale, first_part.lane)] = cpus
    return sums
