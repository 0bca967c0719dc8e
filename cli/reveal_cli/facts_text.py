"""The most important facts of a node as text; ``--json`` has all of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from rich.padding import Padding

from reveal_analyzer.formatting import human
from reveal_cli.terminal import grid
from reveal_contract import cpulist
from reveal_contract.facts import DeviceFacts, Disk, Facts
from reveal_contract.metric import Kind


def facts_grid(facts: Facts) -> Padding:
    """Return one row for each topic; unknown facts are left out."""
    return grid(fact_topics(facts), indent=2)


def fact_topics(facts: Facts) -> list[tuple[str, str]]:
    """Return each topic with what is known about it."""
    topics = ((label, ", ".join(filter(None, words))) for label, words in _topics(facts))
    return [(label, text) for label, text in topics if text]


def _topics(facts: Facts) -> Iterator[tuple[str, Iterable[str]]]:
    yield "host", _host(facts)
    yield "CPU", _cpu(facts)
    yield "memory", _memory(facts)
    yield "GPU", _counted(facts, "gpu")
    yield "network", _network(facts)
    yield "storage", [_disk(facts, disk) for disk in facts.disks]
    yield "runs", facts.kernel.services


def _host(facts: Facts) -> Iterator[str]:
    kernel = facts.kernel
    yield kernel.machine
    yield {True: "virtual", False: "bare metal", None: ""}[kernel.virtual]
    yield kernel.os
    yield f"Linux {kernel.release}" if kernel.release else ""
    yield f"clock {kernel.clocksource}" if kernel.clocksource else ""
    yield from (f"{name} {version}" for name, version in facts.drivers.items())
    yield " ".join(kernel.flags)


def _cpu(facts: Facts) -> Iterator[str]:
    cpu = facts.cpu
    yield cpu.model or cpu.vendor
    yield f"{cpu.sockets} sockets" if cpu.sockets and cpu.sockets > 1 else ""
    yield f"{cpu.cores} cores" if cpu.cores else ""
    yield f"{len(cpulist.parse(cpu.online))} CPUs online" if cpu.online else ""
    yield f"isolated {cpu.isolated}" if cpu.isolated else ""
    yield from sorted({f"{policy.driver} {policy.governor}" for policy in cpu.policies})
    yield {True: "boost", False: "no boost", None: ""}[cpu.boost]


def _memory(facts: Facts) -> Iterator[str]:
    memory = facts.memory
    yield human(memory.total, "bytes", Kind.GAUGE) if memory.total else ""
    yield f"{len(memory.nodes)} NUMA nodes" if len(memory.nodes) > 1 else ""
    for pool in memory.huge:
        if pool.node is None and pool.total is not None and pool.free is not None:
            size = human(pool.size, "bytes", Kind.GAUGE)
            yield f"{pool.total} huge pages of {size} ({pool.free} free)"
    yield f"THP {memory.thp}" if memory.thp else ""
    yield from (
        f"swap {swap.name} {human(swap.size, 'bytes', Kind.GAUGE)}" for swap in memory.swaps
    )


def _counted(facts: Facts, kind: str) -> Iterator[str]:
    """Yield equal devices once, with their number: ``8 x NVIDIA H100 (PCIe x16 32 GT/s)``."""
    names = {gpu.pci: gpu.name for gpu in facts.gpus}
    devices = [device for device in facts.devices if device.kind == kind]
    equal = Counter((names.get(device.address) or device.ids, _link(device)) for device in devices)
    for (name, link), count in equal.items():
        yield f"{count} x {name}{link}"


def _link(device: DeviceFacts) -> str:
    link = device.link
    return f" (PCIe x{link.width} {link.speed:g} GT/s)" if link.width and link.speed else ""


def _network(facts: Facts) -> Iterator[str]:
    for nic in facts.nics:
        speed = f" {nic.speed / 1000:g} Gbit/s" if nic.speed else ""
        state = "" if nic.up is None else " up" if nic.up else " down"
        queues = f" {nic.rx_queues} queues" if nic.rx_queues > 1 else ""
        yield f"{nic.name} ({nic.driver}{speed}{state}{queues})"
    for port in facts.ports:
        yield f"{port.name} ({port.layer} {port.rate} {port.state})"


def _disk(facts: Facts, disk: Disk) -> str:
    # in a guest the rotational flag is a guess of its hypervisor
    kind = ["spinning"] if disk.rotational and not facts.kernel.virtual else []
    return f"{disk.name} ({' '.join(word for word in [disk.model, *kind, disk.scheduler] if word)})"
