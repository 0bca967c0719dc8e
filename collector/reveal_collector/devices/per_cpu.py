"""Large hosts: instead of a channel for each CPU, what matters of all of them.

With more than ``MOST_CPUS`` CPUs, a metric of CPUs becomes its total, a sum for each NUMA node,
and of the steps between two readings the largest, whose it was, and how far they lie apart.
A few hundred CPUs would else be thousands of channels, nearly all alike.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from reveal_collector.devices.cpu_topology import MOST_CPUS, cpu_list
from reveal_collector.devices.numa_nodes import numa_nodes
from reveal_collector.kernel.errors import ParseError
from reveal_collector.readers.plan import Columns, Vector
from reveal_collector.readers.textfile import ColumnSet, channel
from reveal_contract.catalogue import find
from reveal_contract.channels import Channel
from reveal_contract.metric import Scope

Arrange = Callable[[tuple[Channel, ...]], ColumnSet]
_Members = dict[int, tuple[int, ...]]  # CPU -> the values its number is the sum of


def fold_by(
    sys: Path, first: Arrange = ColumnSet, together: Mapping[str, Sequence[str]] | None = None
) -> Arrange:
    """What ``first`` makes of the channels, folded where the host has many CPUs.

    ``together`` names metrics to look at as one besides: name -> its parts.
    """
    return lambda channels: fold_large(first(channels), sys, together or {})


def fold_large(shape: ColumnSet, sys: Path, together: Mapping[str, Sequence[str]]) -> ColumnSet:
    """The shape, folded where it has columns of many CPUs."""
    cpus = {cpu for each in shape.channels if (cpu := cpu_of(each)) is not None}
    return fold(shape, node_of(sys), together) if len(cpus) > MOST_CPUS else shape


def cpu_of(each: Channel) -> int | None:
    """Which CPU a channel stands for; none for a channel of the host."""
    cpu = each.instance.rpartition("/")[2]
    return int(cpu) if cpu.isdecimal() and find(each.metric).scope is Scope.CPU else None


def node_of(sys: Path) -> dict[int, str]:
    """CPU -> its NUMA node; empty where sysfs does not tell."""
    found: dict[int, str] = {}
    for node, folder in numa_nodes(sys / "devices/system/node").items():
        try:
            found |= dict.fromkeys(cpu_list((folder / "cpulist").read_text()), node)
        except (OSError, ParseError):  # a node of memory only has an empty list
            continue
    return found


def fold(
    shape: ColumnSet, node: Mapping[int, str], together: Mapping[str, Sequence[str]]
) -> ColumnSet:
    """The shape with its per-CPU columns folded; host columns come first, as they were."""
    sums = shape.columns.sums or tuple((at,) for at in range(len(shape.channels)))
    host: dict[Channel, tuple[int, ...]] = {}
    by_cpu: dict[Channel, _Members] = {}  # the host's channel -> its CPUs
    for each, members in zip(shape.channels, sums, strict=True):
        cpu = cpu_of(each)
        if cpu is None:
            host[each] = members
        else:
            by_cpu.setdefault(_whole(each), {})[cpu] = members
    for whole, cpus in by_cpu.items():
        host.setdefault(whole, tuple(at for members in cpus.values() for at in members))
        host |= _by_node(whole, cpus, node)
    folded = by_cpu | _joined(by_cpu, together)
    vectors = tuple(Vector(tuple(cpus.values()), tuple(cpus)) for cpus in folded.values())
    extremes = tuple(extreme for whole in folded for extreme in _extremes(whole))
    columns = Columns(tuple(host.values()), vectors, shape.columns.weights)
    return ColumnSet((*host, *extremes), columns)


def _whole(each: Channel) -> Channel:
    """``cpu.softirqs.percpu{RCU/3}`` -> ``cpu.softirqs{RCU}``."""
    kind = each.instance.rpartition("/")[0]
    return channel(each.metric.removesuffix(".percpu"), kind, each.scale)


def _by_node(
    whole: Channel, cpus: _Members, node: Mapping[int, str]
) -> dict[Channel, tuple[int, ...]]:
    sums: dict[str, list[int]] = {}
    for cpu, members in cpus.items():
        if cpu in node:
            sums.setdefault(node[cpu], []).extend(members)
    area, _, rest = whole.metric.partition(".")
    prefix = f"{whole.instance}/" if whole.instance else ""
    return {
        channel(f"{area}.numa.{rest}", prefix + number, whole.scale): tuple(members)
        for number, members in sums.items()
    }


def _extremes(whole: Channel) -> tuple[Channel, ...]:
    area, _, rest = whole.metric.partition(".")
    name = f"{area}.percpu.{rest}"
    return (
        channel(f"{name}.max", whole.instance, whole.scale),
        channel(f"{name}.argmax", whole.instance),
        channel(f"{name}.spread", whole.instance, whole.scale),
    )


def _joined(
    by_cpu: Mapping[Channel, _Members], together: Mapping[str, Sequence[str]]
) -> dict[Channel, _Members]:
    """CPU by CPU, the sums of several metrics."""
    found = {whole.metric: (whole, cpus) for whole, cpus in by_cpu.items()}
    made = {}
    for name, parts in together.items():
        if all(part in found for part in parts):
            one = found[parts[0]][0]
            cpus = {
                cpu: tuple(at for part in parts for at in found[part][1].get(cpu, ()))
                for cpu in found[parts[0]][1]
            }
            made[Channel(name, "", one.kind, one.scale, one.lane)] = cpus
    return made
