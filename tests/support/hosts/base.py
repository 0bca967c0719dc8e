"""What every host has: /proc, CPUs and NUMA nodes in sysfs, interfaces, block devices."""

from __future__ import annotations

from functools import partial

from support.hosts import machine as machines
from support.hosts.machine import Machine, mask, ranges
from support.hosts.network import add_network
from support.hosts.procfs import UNUSED_DISK, Vectors, add_proc, disk_stat, levels
from support.hosts.tree import Moment, Tree

_CPU = "sys/devices/system/cpu"
_NODE = "sys/devices/system/node"


def add_base(
    tree: Tree,
    cpus: int = 2,
    numa_nodes: int = 1,
    memory: int = 8 * machines.GIB,
    kernel: tuple[int, int] = (6, 8),
) -> Machine:
    """A plain virtual machine of this size; ``add_machine`` for anything else."""
    machine = Machine(
        cpus=cpus, numa_nodes=numa_nodes, sockets=numa_nodes, memory=memory, kernel=kernel,
        virtual=True,
    )  # fmt: skip
    add_machine(tree, machine)
    return machine


def add_machine(tree: Tree, machine: Machine, vectors: Vectors | None = None) -> None:
    """The files of this machine; ``vectors``: interrupts apart from those of NICs and disks."""
    vectors = vectors or Vectors()
    request_vectors(vectors, machine)
    add_proc(tree, machine, vectors)
    add_network(tree, machine)
    add_cpus(tree, machine)
    add_nodes(tree, machine)
    for disk in machine.disks:
        tree.write(f"sys/block/{disk.name}/stat", partial(disk_stat, disk))
    for minor in range(8):
        tree.write(f"sys/block/loop{minor}/stat", UNUSED_DISK)
    for size in (2048, 1_048_576) if machine.page == 4096 else (524_288, 16_777_216):
        folder = f"sys/kernel/mm/hugepages/hugepages-{size}kB"
        for name in ("nr", "free", "resv", "surplus"):
            tree.write(f"{folder}/{name}_hugepages", 0)


def request_vectors(vectors: Vectors, machine: Machine) -> None:
    """MSI-X vectors of the queues of NICs and disks, spread over the CPUs of their node."""
    for device in (*machine.nics, *machine.disks):
        if not device.pci:
            continue
        near = machine.cpus_of(device.numa) if device.numa >= 0 else list(range(machine.cpus))
        chip = "IR-PCI-MSIX" if not machine.virtual else "PCI-MSIX"
        for queue in range(device.queues):
            line = f"{chip}-{device.pci} {queue + 1:>3}-edge"
            name = f"{device.name}-{queue}" if device.queues > 1 else f"{device.name}-input"
            fires = min(device.rate, 20_000) // (4 * device.queues) if queue % 2 == 0 else 0
            vectors.add(line, name, near[queue % len(near)], fires)


def add_cpus(tree: Tree, machine: Machine) -> None:
    """admin-guide/cputopology.rst."""
    everyone = ranges(range(machine.cpus)) + "\n"
    for name in ("online", "possible", "present"):
        tree.write(f"{_CPU}/{name}", everyone)
    tree.write(f"{_CPU}/offline", "\n")
    tree.write(f"{_CPU}/isolated", "\n")
    for cpu in range(machine.cpus):
        topology = f"{_CPU}/cpu{cpu}/topology"
        siblings = [machine.core(cpu) + index * machine.cores for index in range(machine.threads)]
        socket = machine.socket(cpu)
        mates = [other for other in range(machine.cpus) if machine.socket(other) == socket]
        tree.write(f"{topology}/physical_package_id", socket)
        tree.write(f"{topology}/core_id", machine.core(cpu) % (machine.cores // machine.sockets))
        tree.write(f"{topology}/thread_siblings_list", ranges(siblings) + "\n")
        tree.write(f"{topology}/core_siblings_list", ranges(mates) + "\n")
        tree.write(f"{topology}/package_cpus_list", ranges(mates) + "\n")
        if cpu:
            tree.write(f"{_CPU}/cpu{cpu}/online", 1)


def add_nodes(tree: Tree, machine: Machine) -> None:
    """admin-guide/numastat.rst and the node's meminfo; distances as most firmware tells them."""
    numbers = range(machine.numa_nodes)
    for name in ("online", "possible", "has_cpu", "has_memory", "has_normal_memory"):
        tree.write(f"{_NODE}/{name}", ranges(numbers) + "\n")
    for node in numbers:
        folder = f"{_NODE}/node{node}"
        cpus = machine.cpus_of(node)
        tree.write(f"{folder}/cpulist", ranges(cpus) + "\n")
        tree.write(f"{folder}/cpumap", mask(cpus) + "\n")
        distances = ["10" if other == node else "21" for other in numbers]
        tree.write(f"{folder}/distance", " ".join(distances) + "\n")
        tree.write(f"{folder}/numastat", lambda now, node=node: numastat(node, now))
        tree.write(f"{folder}/meminfo", lambda now, node=node: node_meminfo(machine, node, now))
        for size in (2048, 1_048_576) if machine.page == 4096 else (524_288, 16_777_216):
            for name in ("nr", "free", "surplus"):
                tree.write(f"{folder}/hugepages/hugepages-{size}kB/{name}_hugepages", 0)
        for cpu in cpus:
            tree.link(f"{folder}/cpu{cpu}", f"../../cpu/cpu{cpu}")


def numastat(node: int, now: Moment) -> str:
    counts = {
        "numa_hit": now.count(30_000, 10**9), "numa_miss": now.count(node * 40, 1000),
        "numa_foreign": now.count(20, 1000), "interleave_hit": 2_000,
        "local_node": now.count(29_000, 10**9), "other_node": now.count(1_000, 10**6),
    }  # fmt: skip
    return "".join(f"{name} {count}\n" for name, count in counts.items())


def node_meminfo(machine: Machine, node: int, now: Moment) -> str:
    memory = machine.memory // machine.numa_nodes
    fields = {"MemTotal": memory, **levels(machine, now, memory)}
    fields["MemUsed"] = memory - fields["MemFree"]
    fields["FilePages"] = fields.pop("Cached")
    for host_only in ("MemAvailable", "Buffers"):
        del fields[host_only]
    lines = [f"Node {node} {name + ':':<15} {value >> 10:>8} kB" for name, value in fields.items()]
    lines += [f"Node {node} HugePages_{word}:     0" for word in ("Total", "Free", "Surp")]
    return "\n".join([*lines, ""])
