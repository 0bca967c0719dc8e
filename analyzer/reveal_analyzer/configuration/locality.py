"""Locality of devices: the NUMA nodes and CPUs of their socket; and the names of devices."""

from __future__ import annotations

from reveal_contract import cpulist
from reveal_contract.facts import DeviceFacts, Facts

_NEAR = 15  # largest NUMA distance of nodes that share a socket (10: the node itself)
_KINDS = {"gpu": "GPU", "network": "network card", "storage": "drive"}


def near_nodes(facts: Facts, node: int | None) -> frozenset[int]:
    """Return a NUMA node and those of the same socket; empty if the node is unknown."""
    nodes = facts.memory.nodes
    home = next((each for each in nodes if each.node == node), None)
    if home is None:
        return frozenset()
    if len(home.distances) != len(nodes):
        return frozenset({home.node})
    distances = zip(nodes, home.distances, strict=True)
    return frozenset(each.node for each, distance in distances if each is home or distance <= _NEAR)


def near_cpus(facts: Facts, node: int | None) -> frozenset[int]:
    """Return the online CPUs of the same socket; empty if the node is unknown."""
    near = near_nodes(facts, node)
    cpus = (cpulist.parse(each.cpus) for each in facts.memory.nodes if each.node in near)
    return frozenset[int]().union(*cpus) & cpulist.parse(facts.cpu.online)


def interrupt_cpus(facts: Facts) -> frozenset[int]:
    """Return the online CPUs that the boot parameters leave for interrupts; empty if unknown.

    Isolated CPUs serve none, and with ``irqaffinity=`` only those that it names do (kernel:
    admin-guide/kernel-parameters.rst).
    """
    cpu = facts.cpu
    isolated = cpulist.parse(cpu.isolated) | cpulist.parse(cpu.nohz_full)
    usable = cpulist.parse(cpu.online) - isolated
    chosen = [flag.partition("=")[2] for flag in facts.kernel.flags if _names_cpus(flag)]
    try:
        return usable & cpulist.parse(chosen[-1]) if chosen else usable
    except ValueError:  # a form that only boot parameters have, such as 0-31:2/4
        return frozenset()


def _names_cpus(flag: str) -> bool:
    return flag.startswith("irqaffinity=")


def device_label(facts: Facts, device: DeviceFacts) -> str:
    """Return a device as users know it: ``network card eth0``, ``GPU 0000:3b:00.0 (H100)``."""
    names = [nic.name for nic in facts.nics if nic.pci == device.address]
    names += [port.name for port in facts.ports if port.pci == device.address]
    names += [disk.name for disk in facts.disks if disk.pci == device.address]
    named = f"{_KINDS.get(device.kind, device.kind)} {names[0]}" if names else ""
    models = [gpu.name for gpu in facts.gpus if gpu.pci == device.address and gpu.name]
    if models:
        named = f"GPU {device.address} ({models[0]})"
    return named or f"{_KINDS.get(device.kind, device.kind)} {device.address}"
