"""Rules on PCI devices: width and speed of their links, CPUs that serve their interrupts."""

from __future__ import annotations

from collections.abc import Iterator

from reveal_analyzer.configuration.locality import device_label, near_cpus
from reveal_analyzer.configuration.rule import ConfigurationRule, Violation, fact
from reveal_contract import cpulist
from reveal_contract.facts import DeviceFacts, Facts
from reveal_contract.finding import Severity
from reveal_contract.metric import Subsystem

_MANY_VECTORS = 4
_MANY_CPUS = 4
_SUBSYSTEM = {"gpu": Subsystem.GPU, "network": Subsystem.NETWORK, "storage": Subsystem.STORAGE}


def narrow_link(facts: Facts) -> Iterator[Violation]:
    """Find links that trained to fewer lanes than both ends have; a narrow slot is no fault."""
    for device in _physical(facts):
        link = device.link
        if not link.width or not link.device_width or not link.port_width:
            continue
        able = min(link.device_width, link.port_width)
        if link.width < able:
            yield Violation(
                device.address,
                {"what": device_label(facts, device), "width": link.width, "able": able,
                 "address": device.address},
                (fact("pci.link.width", device.address, link.width, able, "lanes",
                      "current_link_width"),),
                severity=Severity.LOW if _may_rest(facts, device) else None,
                subsystem=_SUBSYSTEM.get(device.kind),
            )  # fmt: skip


def slow_link(facts: Facts) -> Iterator[Violation]:
    """Find links slower than both ends support; idle GPUs lower their link speed."""
    for device in _physical(facts):
        link = device.link
        if not link.speed or not link.device_speed or not link.port_speed:
            continue
        able = min(link.device_speed, link.port_speed)
        if link.speed < able and not _may_rest(facts, device):
            yield Violation(
                device.address,
                {"what": device_label(facts, device), "speed": f"{link.speed:g}",
                 "able": f"{able:g}", "address": device.address},
                (fact("pci.link.speed", device.address, f"{link.speed:g}", f"{able:g}", "GT/s",
                      "current_link_speed"),),
                subsystem=_SUBSYSTEM.get(device.kind),
            )  # fmt: skip


def concentrated_interrupts(facts: Facts) -> Iterator[Violation]:
    online = cpulist.parse(facts.cpu.online)
    for device in _serving(facts):
        vectors = device.vectors
        served = cpulist.parse(vectors.served)
        if (vectors.count or 0) < _MANY_VECTORS or len(online) < _MANY_CPUS or len(served) != 1:
            continue
        if any(nic.rx_queues == 1 for nic in facts.nics if nic.pci == device.address):
            continue  # one queue has one busy vector; the others do not matter
        yield Violation(
            device.address,
            {"what": device_label(facts, device), "count": vectors.count, "cpu": vectors.served,
             "advice": _spread(facts, device)},
            (fact("irq.served", device.address, vectors.served,
                  known_as="effective_affinity_list"),
             fact("irq.allowed", device.address, vectors.allowed, known_as="smp_affinity_list")),
            subsystem=_SUBSYSTEM.get(device.kind),
        )  # fmt: skip


def _spread(facts: Facts, device: DeviceFacts) -> str:
    if len(cpulist.parse(device.vectors.allowed)) > 1 and "irqbalance" not in facts.kernel.services:
        return "systemctl enable --now irqbalance"
    return (
        f"for i in $(ls /sys/bus/pci/devices/{device.address}/msi_irqs); do echo CPU >"
        " /proc/irq/$i/smp_affinity_list; done (use another CPU of the device's node for each)"
    )


def remote_interrupts(facts: Facts) -> Iterator[Violation]:
    """Find interrupts that no CPU near the device serves, although its node has CPUs."""
    for device in _serving(facts):
        near = near_cpus(facts, device.node)
        served = cpulist.parse(device.vectors.served)
        if device.vectors.count and served and near and not served & near:
            yield Violation(
                device.address,
                {"what": device_label(facts, device), "node": device.node,
                 "cpus": device.vectors.served, "near": cpulist.render(near),
                 "address": device.address},
                (fact("irq.served", device.address, device.vectors.served, cpulist.render(near),
                      known_as="effective_affinity_list"),),
                subsystem=_SUBSYSTEM.get(device.kind),
            )  # fmt: skip


def _physical(facts: Facts) -> Iterator[DeviceFacts]:
    """Yield one function of each card, because all of them share its link.

    In a guest there are none: the hypervisor makes up its links and slots.
    """
    if facts.kernel.virtual is False:
        cards = {device.address.rpartition(".")[0]: device for device in reversed(facts.devices)}
        yield from reversed(cards.values())


def _serving(facts: Facts) -> Iterator[DeviceFacts]:
    """Yield the devices whose interrupts carry the work: active network cards, and drives."""
    up = {nic.pci for nic in facts.nics if nic.up}
    up |= {port.pci for port in facts.ports if port.state == "ACTIVE"}
    for device in facts.devices:
        if device.kind == "storage" or device.address in up:
            yield device


def _may_rest(facts: Facts, device: DeviceFacts) -> bool:
    """Return whether the link may be slow to save power: that of a GPU without work."""
    used = {address for process in facts.processes for address in process.gpus}
    return device.kind == "gpu" and device.address not in used


RULES = (
    ConfigurationRule(
        "NarrowPCIeLink", Subsystem.GPU, Severity.MEDIUM,
        "the PCIe link of {what} runs on {width} of {able} lanes, although both ends have more",
        "lspci -vv -s {address} | grep -i lnk; reseat the card, riser or cable, then reboot",
        "A link trains to fewer lanes when one fails. The bandwidth falls in proportion, and"
        " nothing else reports it. A slot with fewer lanes than the card is no fault and not"
        " reported; nor are guests, whose links the hypervisor makes up. The severity is Low for"
        " a GPU without work, because some GPUs use fewer lanes to save power.",
        "kernel: ABI/testing/sysfs-bus-pci (current_link_width, max_link_width);"
        " nvidia-smi(1), PCIe link width",
        narrow_link,
    ),
    ConfigurationRule(
        "SlowPCIeLink", Subsystem.GPU, Severity.MEDIUM,
        "the PCIe link of {what} runs at {speed} GT/s, although both ends support {able}",
        "lspci -vv -s {address} | grep -i lnk; reseat the card, riser or cable, then reboot",
        "A link falls back to a slower generation when the signal is bad. Idle GPUs lower their"
        " link speed, so they are checked only while a process uses them.",
        "kernel: ABI/testing/sysfs-bus-pci (current_link_speed, max_link_speed)",
        slow_link,
    ),
    ConfigurationRule(
        "InterruptsOnOneCPU", Subsystem.NETWORK, Severity.MEDIUM,
        "all {count} interrupts of {what} are served by CPU {cpu}",
        "{advice}",
        "A device has many queues so that many CPUs share its work. With all vectors on one CPU,"
        " that CPU is the limit, and other tasks on it are delayed. Devices with one receive"
        " queue are not reported.",
        "kernel: networking/scaling.rst (RSS IRQ configuration),"
        " core-api/irq/irq-affinity.rst; paper 6, cases 2 and 3",
        concentrated_interrupts,
    ),
    ConfigurationRule(
        "RemoteInterrupts", Subsystem.NETWORK, Severity.LOW,
        "interrupts of {what} are served on CPUs {cpus}, although it is on NUMA node {node}",
        "for i in $(ls /sys/bus/pci/devices/{address}/msi_irqs); do echo {near} >"
        " /proc/irq/$i/smp_affinity_list; done",
        "A device writes its data to the memory of its node. A CPU of another socket fetches every"
        " packet and completion across the link between the sockets.",
        "kernel: networking/scaling.rst, core-api/irq/irq-affinity.rst,"
        " ABI/testing/sysfs-bus-pci (numa_node)",
        remote_interrupts,
    ),
)  # fmt: skip
