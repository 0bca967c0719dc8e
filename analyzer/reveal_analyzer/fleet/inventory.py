"""Facts of a node for comparisons: its class, and its comparable settings."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from reveal_contract import cpulist
from reveal_contract.facts import DeviceFacts, Facts, Nic
from reveal_contract.metric import Subsystem

Pair = tuple[str, str]
_FAMILY = re.compile(r"\d+\.\d+")
HUGE_PAGES = "memory.hugepages"
_STEPS = 8  # in a power of two: firmware reserves less than one of them
_AREAS = {
    "cpu": Subsystem.CPU, "memory": Subsystem.MEMORY, "gpu": Subsystem.GPU,
    "network": Subsystem.NETWORK, "storage": Subsystem.STORAGE, "kernel": Subsystem.CPU,
}  # fmt: skip


def node_class(facts: Facts) -> str:
    """Return processor, CPUs, memory, GPUs and kernel family as one string; "" if unknown.

    Only nodes of the same class are compared.
    """
    processor = facts.cpu.model or facts.cpu.family
    if not processor or not facts.memory.total:
        return ""
    family = _FAMILY.match(facts.kernel.release)
    cpus = len(cpulist.parse(facts.cpu.present))
    parts = [processor, f"{cpus} CPUs", f"{installed_memory(facts.memory.total) >> 20} MiB"]
    parts += [_counted(gpu.name or "GPU" for gpu in facts.gpus)]
    parts += [f"Linux {family.group()}" if family else ""]
    return ", ".join(part for part in parts if part)


def installed_memory(usable: int) -> int:
    """Return the installed memory, given what firmware and kernel leave usable, in bytes."""
    step = max(1 << 20, (1 << (usable.bit_length() - 1)) // _STEPS)
    return -(-usable // step) * step


def comparable(facts: Facts) -> dict[str, str]:
    """Return the settings that should be equal on nodes of a class, by name.

    Names, addresses and counts that differ between nodes by nature are left out, as are values
    that change by themselves or that a metric shows.  An unknown fact is missing.
    """
    pairs = [
        *_cpu(facts), *_memory(facts), *_kernel(facts), *_buses(facts.devices),
        *_network(facts), *_storage(facts), *_gpus(facts),
    ]  # fmt: skip
    return {name: value for name, value in pairs if value}


def subsystem_of_fact(fact: str) -> Subsystem:
    """Return the subsystem whose performance a fact affects."""
    if fact.startswith("kernel.sysctl."):
        fact = {"vm": "memory", "net": "network"}.get(fact.split(".")[2], "cpu")
    return _AREAS.get(fact.partition(".")[0], Subsystem.CPU)


def _cpu(facts: Facts) -> Iterator[Pair]:
    cpu = facts.cpu
    yield "cpu.smt", cpu.smt
    yield "cpu.boost", _flag(cpu.boost)
    if cpu.online:  # the facts below are read together with it
        yield "cpu.isolated", cpu.isolated or "none"
        yield "cpu.nohz_full", cpu.nohz_full or "none"
    yield "cpu.frequency.driver", _all(policy.driver for policy in cpu.policies)
    yield "cpu.frequency.governor", _all(policy.governor for policy in cpu.policies)
    yield "cpu.frequency.preference", _all(policy.preference for policy in cpu.policies)
    yield "cpu.idle.driver", cpu.idle_driver
    yield "cpu.idle.governor", cpu.idle_governor
    if cpu.idle_driver:
        yield "cpu.idle.disabled", " ".join(cpu.idle_disabled) or "none"
    for name, state in cpu.mitigations.items():
        yield f"cpu.mitigation.{name}", state


def _memory(facts: Facts) -> Iterator[Pair]:
    memory = facts.memory
    yield "memory.numa_nodes", _number(len(memory.nodes))
    yield "memory.thp", memory.thp
    yield "memory.thp_defrag", memory.thp_defrag
    yield "memory.zswap", _flag(memory.zswap)
    if memory.total:
        yield "memory.swap", f"{sum(swap.size for swap in memory.swaps) >> 20} MiB"
        pools = [pool for pool in memory.huge if pool.node is None and pool.total]
        sizes = [f"{pool.total} x {pool.size >> 10} kB" for pool in pools]
        yield HUGE_PAGES, ", ".join(sorted(sizes)) or "none"


def _kernel(facts: Facts) -> Iterator[Pair]:
    kernel = facts.kernel
    yield "kernel.release", kernel.release
    yield "kernel.os", kernel.os
    yield "kernel.clocksource", kernel.clocksource
    if kernel.release:
        yield "kernel.flags", " ".join(sorted(kernel.flags)) or "none"
        yield "kernel.services", " ".join(sorted(kernel.services)) or "none"
    for name, value in kernel.sysctl.items():
        yield f"kernel.sysctl.{name}", value
    for name, version in facts.drivers.items():
        yield f"gpu.driver.{name}", version


def _buses(devices: Iterable[DeviceFacts]) -> Iterator[Pair]:
    """Yield facts of PCI devices by kind: ids, drivers, and the lanes that were trained."""
    by_kind: dict[str, list[DeviceFacts]] = {}
    for device in devices:
        by_kind.setdefault(device.kind, []).append(device)
    for kind, some in by_kind.items():
        yield f"{kind}.devices", _counted(device.ids for device in some)
        yield f"{kind}.device_drivers", _all(device.driver for device in some)
        widths = [device.link.width for device in some]
        if None not in widths:
            yield f"{kind}.link_widths", _counted(f"x{width}" for width in widths)


def _network(facts: Facts) -> Iterator[Pair]:
    """Yield facts of interfaces with a device, independent of their names."""
    nics = [nic for nic in facts.nics if nic.pci]
    up = [nic for nic in nics if nic.up]
    yield "network.interfaces", _number(len(nics))
    yield "network.up", _number(len(up)) if nics else ""
    yield "network.speeds", _of(up, "speed", " Mbit/s")
    yield "network.mtus", _of(up, "mtu", "")
    yield "network.receive_rings", _of(up, "rx_ring", "")
    yield "network.queues", _of(up, "channels", "")
    yield "network.bonds", _counted(bond.mode for bond in facts.bonds)
    yield "network.ports", _counted(f"{port.state} {port.rate}" for port in facts.ports)


def _storage(facts: Facts) -> Iterator[Pair]:
    disks = [disk for disk in facts.disks if disk.pci or disk.model]
    yield "storage.models", _counted(disk.model for disk in disks)
    yield "storage.schedulers", _all(disk.scheduler for disk in disks)


def _gpus(facts: Facts) -> Iterator[Pair]:
    for name in ("persistence", "ecc", "mig"):
        states = {_flag(getattr(gpu, name)) for gpu in facts.gpus}
        yield f"gpu.{name}", "" if "" in states else _all(states)


def _of(nics: Iterable[Nic], name: str, unit: str) -> str:
    values = [getattr(nic, name) for nic in nics]
    return "" if None in values else _counted(f"{value}{unit}" for value in values)


def _all(values: Iterable[str]) -> str:
    """Return the distinct values, sorted."""
    return ", ".join(sorted({value for value in values if value}))


def _counted(values: Iterable[str]) -> str:
    """Return each value with its count: ``2 x H100``."""
    tally = Counter(value for value in values if value)
    return ", ".join(f"{number} x {value}" for value, number in sorted(tally.items()))


def _flag(value: bool | None) -> str:
    return "" if value is None else "on" if value else "off"


def _number(value: int) -> str:
    return str(value) if value else ""
