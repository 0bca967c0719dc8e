"""Rules on GPUs, and on the placement of the processes that use them."""

from __future__ import annotations

from collections.abc import Iterator

from reveal_analyzer.configuration.locality import near_cpus, near_nodes
from reveal_analyzer.configuration.rule import (
    ConfigurationRule,
    Unknown,
    Verdict,
    Violation,
    fact,
)
from reveal_contract import cpulist
from reveal_contract.facts import Facts, GpuProcess
from reveal_contract.finding import Confidence, Severity, Subject
from reveal_contract.metric import Subsystem


def remote_cpus(facts: Facts) -> Iterator[Verdict]:
    """Find processes that may not run on any CPU near their GPUs."""
    homes = {device.address: device.node for device in facts.devices if device.kind == "gpu"}
    for process in facts.processes:
        nodes = {node for gpu in process.gpus if (node := homes.get(gpu)) is not None}
        near = frozenset[int]().union(*(near_cpus(facts, node) for node in nodes))
        allowed = _numbers(process.cpus)
        if not near or not allowed:
            yield Unknown(_identity(process))
        if near and allowed and not allowed & near:
            yield _misplaced(facts, process, nodes, cpulist.render(near))


def remote_memory(facts: Facts) -> Iterator[Verdict]:
    """Find processes that may not allocate memory on any node near their GPUs."""
    homes = {device.address: device.node for device in facts.devices if device.kind == "gpu"}
    for process in facts.processes:
        nodes = {node for gpu in process.gpus if (node := homes.get(gpu)) is not None}
        near = frozenset[int]().union(*(near_nodes(facts, node) for node in nodes))
        near &= {each.node for each in facts.memory.nodes if each.memory}
        allowed = _numbers(process.memory)
        if not near or not allowed:
            yield Unknown(_identity(process))
        if near and allowed and not allowed & near:
            yield _misplaced(facts, process, nodes, cpulist.render(near))


def _misplaced(facts: Facts, process: GpuProcess, nodes: set[int], near: str) -> Violation:
    return Violation(
        _identity(process),
        {
            "process": f"{process.name} ({process.pid})",
            "pid": process.pid,
            "gpus": ", ".join(process.gpus),
            "nodes": cpulist.render(nodes),
            "cpus": process.cpus,
            "memory": process.memory,
            "near": near,
        },
        (
            fact("process.cpus", str(process.pid), process.cpus, known_as="Cpus_allowed_list"),
            fact("process.memory", str(process.pid), process.memory, known_as="Mems_allowed_list"),
            *(
                fact("gpu.node", device.address, device.node, known_as="numa_node")
                for device in facts.devices
                if device.address in process.gpus
            ),
        ),
        subjects=(_subject(process),),
    )


def _identity(process: GpuProcess) -> str:
    return f"{process.name}/{process.pid}"


def _subject(process: GpuProcess) -> Subject:
    kind, name = ("Cgroup", process.cgroup) if process.cgroup else ("ProcessGroup", process.name)
    return Subject(kind, name, 100, 0, Confidence.MEASURED)


def _numbers(text: str) -> frozenset[int]:
    try:
        return cpulist.parse(text)
    except ValueError:
        return frozenset()


def no_persistence(facts: Facts) -> Iterator[Verdict]:
    if "nvidia-persiste" in facts.kernel.services:
        return
    off = [gpu.pci for gpu in facts.gpus if gpu.persistence is False]
    if any(gpu.persistence is None for gpu in facts.gpus):
        yield Unknown("")
    if off:
        yield Violation(
            "",
            {"count": len(off), "s": "s" if len(off) > 1 else ""},
            tuple(fact("gpu.persistence", address, "off", "on", known_as="Persistence-M")
                  for address in off[:8]),
        )  # fmt: skip


RULES = (
    ConfigurationRule(
        "GPUProcessOnRemoteCPUs", Subsystem.GPU, Severity.MEDIUM,
        "process {process} uses GPU {gpus} on NUMA node {nodes}, but may run only on"
        " CPUs {cpus}, all of another socket",
        "taskset -a -c -p {near} {pid} (better: start it with numactl --cpunodebind={nodes}"
        " --membind={nodes}; on Kubernetes the topology manager, single-numa-node)",
        "Every copy to the GPU and every command crosses the link between the sockets. Nodes"
        " of one socket count as near. A process that may run on any CPU near its GPU is not"
        " reported.",
        "kernel: ABI/testing/sysfs-bus-pci (numa_node), admin-guide/mm/numaperf.rst;"
        " numactl(8); paper 6, case 1",
        remote_cpus,
        ("processes", "devices", "memory.nodes"),
    ),
    ConfigurationRule(
        "GPUProcessOnRemoteMemory", Subsystem.MEMORY, Severity.MEDIUM,
        "process {process} uses GPU {gpus} on NUMA node {nodes}, but may allocate memory only"
        " from node {memory}",
        "add node {near} to its cpuset.mems, or start it with numactl --membind={nodes}",
        "Buffers for the GPU are in the memory of another socket, and every copy crosses the link"
        " between the sockets.",
        "kernel: admin-guide/cgroup-v2.rst (cpuset.mems), admin-guide/mm/numa_memory_policy.rst;"
        " paper 6, case 1",
        remote_memory,
        ("processes", "devices", "memory.nodes"),
    ),
    ConfigurationRule(
        "NoPersistence", Subsystem.GPU, Severity.LOW,
        "persistence mode is off on {count} GPU{s}: when the last program ends, the driver"
        " shuts the GPU down, and the next program waits until it has started",
        "systemctl enable --now nvidia-persistenced (or nvidia-smi -pm 1)",
        "Without a client the driver releases the GPU's state; starting it again takes seconds,"
        " and settings such as clock limits are lost.",
        "NVIDIA: Driver Persistence; nvidia-smi(1)",
        no_persistence,
        ("gpus", "kernel"),
    ),
)  # fmt: skip
