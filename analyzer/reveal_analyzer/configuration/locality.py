"""What is near what: NUMA nodes of one socket, and what devices are called by their users."""

from __future__ import annotations

from reveal_contract import cpulist
from reveal_contract.facts import Device, Facts

_NEAR = 15  # a NUMA distance up to which nodes share a socket (10 is the node itself)
_KINDS = {"gpu": "GPU", "network": "network card", "storage": "drive"}


def near_nodes(facts: Facts, node: int | None) -> frozenset[int]:
    """The node itself and those as near as sub-NUMA nodes of one socket; empty if unknown."""
    nodes = facts.memory.nodes
    home = next((one for one in nodes if one.node == node), None)
    if home is None:
        return frozenset()
    if len(home.distances) != len(nodes):
        return frozenset({home.node})
    distances = zip(nodes, home.distances, strict=True)
    return frozenset(one.node for one, far in distances if one is home or far <= _NEAR)


def near_cpus(facts: Facts, node: int | None) -> frozenset[int]:
    """CPUs of the near nodes that are online; empty where the node is not known."""
    near = near_nodes(facts, node)
    cpus = (cpulist.parse(one.cpus) for one in facts.memory.nodes if one.node in near)
    return frozenset[int]().union(*cpus) & cpulist.parse(facts.cpu.online)


def called(facts: Facts, device: Device) -> str:
    """``network card eth0``, ``GPU NVIDIA H100``: by its name where it has one."""
    names = [nic.name for nic in facts.nics if nic.pci == device.address]
    names += [port.name for port in facts.ports if port.pci == device.address]
    names += [disk.name for disk in facts.disks if disk.pci == device.address]
    named = f"{_KINDS.get(device.kind, device.kind)} {names[0]}" if names else ""
    models = [gpu.name for gpu in facts.gpus if gpu.pci == device.address and gpu.name]
    if models:
        named = f"GPU {device.address} ({models[0]})"
    return named or f"{_KINDS.get(device.kind, device.kind)} {device.address}"
