"""Summaries of nodes for the comparison of a fleet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from reveal_analyzer.fleet.measures import measure
from reveal_analyzer.fleet.summary import Summary
from reveal_analyzer.fleet.workload import USAGE, JobMember, JobPart, jobs, workload
from reveal_contract.facts import Cpu, Facts, Gpu, HugePool, Kernel, Memory, Nic

GIB = 1 << 30
CLASS = "Xeon, 2 CPUs"
WORK = ("default/Job/train x 1",)
# what any node under the same load has: per second for counters, a level for gauges
BASELINE = {
    "cpu.online": 2.0, "memory.mem_total": 64.0 * GIB, "memory.hugepages.free": 0.0,
    "cpu.pressure.some": 2e7, "storage.pressure.some": 3e6, "network.tcp.retransmit_share": 40.0,
    "memory.mem_available": 40.0 * GIB, "cpu.busy": 1.2e9, "cpu.context_switches": 2500.0,
}  # fmt: skip
STEPS = {
    "cpu.subject.usage": 9e8, "memory.subject.page_faults": 2e4, "network.subject.tx_bytes": 5e7,
    "cpu.subject.throttled_time": 0.0, "memory.subject.usage": 8.0 * GIB,
}  # fmt: skip


def summary(node: str, levels: Mapping[str, float] | None = None, **given: Any) -> Summary:
    """A node's minute; ``levels`` differ from ``USUAL``."""
    metrics = {**BASELINE, **(levels or {})}
    hurting = {name: value for name, value in metrics.items() if _hurts(name)}
    fields: dict[str, Any] = {
        "minute": 100, "seconds": 60, "kind": CLASS, "workload": WORK,
        "spreads": np.zeros(len(hurting)), "names": tuple(hurting),
        "levels": np.array(list(hurting.values())),
        "activity": {name: value for name, value in metrics.items() if name not in hurting},
        **given,
    }  # fmt: skip
    return Summary(node=node, **fields)


def _hurts(name: str) -> bool:
    found = measure(name)
    return found is not None and found.sign != 0


def fleet(count: int, odd: Mapping[str, float] | None = None, **given: Any) -> list[Summary]:
    """Nodes n1, n2, ... that differ by a few percent as real ones do; the third by ``odd``."""
    random = np.random.default_rng(count)
    nodes = []
    for number in range(1, count + 1):
        noise = 1 + 0.05 * random.standard_normal(len(BASELINE))
        fixed = ("cpu.online", "memory.mem_total")
        levels = {
            name: value * (1.0 if name in fixed else abs(factor))
            for (name, value), factor in zip(BASELINE.items(), noise.tolist(), strict=True)
        }
        nodes.append(
            summary(f"n{number}", {**levels, **(odd or {} if number == 3 else {})}, **given)
        )
    return nodes


def part(levels: Mapping[str, float] | None = None, name: str = "train-0") -> JobPart:
    """What one job does on a node; ``levels`` differ from ``STEPS``."""
    return JobPart((JobMember("Pod", "default", name, "uid"),), 1, {**STEPS, **(levels or {})})


def working(
    node: str,
    uses: Mapping[str, float],
    levels: Mapping[str, float] | None = None,
    counts: Mapping[str, int] | None = None,
) -> Summary:
    """A node whose jobs use so much CPU time, ns per second; each has one part, or `counts`."""
    means = {(USAGE, job): use for job, use in uses.items()}
    found = jobs(means, (), node)
    for name, count in (counts or {}).items():
        found[name] = replace(found[name], count=count, levels={USAGE: uses[name] / count})
    return summary(node, levels, jobs=found, workload=workload(means, found))


def facts(node: str, **other: Any) -> Facts:
    """A server with two GPUs and a NIC."""
    given: dict[str, Any] = {
        "cpu": Cpu(model="Xeon", present="0-3", online="0-3", smt="on"),
        "memory": Memory(total=62 * GIB, thp="madvise", huge=(HugePool(2 << 20, None, 0, 0),)),
        "kernel": Kernel(release="6.1.0-18-amd64", sysctl={"vm.swappiness": "60"}),
        "nics": (Nic("eth0", pci="0000:01:00.0", up=True, speed=25_000, mtu=9000),),
        "gpus": (Gpu("0000:3b:00.0", "H100", persistence=True),) * 2,
        **other,
    }
    return Facts(node=node, **given)
