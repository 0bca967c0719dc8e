"""Rules on PCI devices: width and speed of their links, CPUs that serve their interrupts."""

from __future__ import annotations

from collections.abc import Iterator

from reveal_analyzer.configuration.locality import device_label, interrupt_cpus, near_cpus
from reveal_analyzer.configuration.rule import (
    ALL,
    ConfigurationRule,
    Unknown,
    Verdict,
    Violation,
    fact,
)
from reveal_contract import cpulist
from reveal_contract.facts import DeviceFacts, Facts
from reveal_contract.finding import Severity
from reveal_contract.metric import Subsystem

_MANY_VECTORS = 4
_MANY_CPUS = 4
_SEVERAL_CPUS = 2
_MANAGED_DRIVERS = ("nvme",)
_SUBSYSTEM = {"gpu": Subsystem.GPU, "network": Subsystem.NETWORK, "storage": Subsystem.STORAGE}


def narrow_link(facts: Facts) -> Iterator[Verdict]:
    """Find links that trained to fewer lanes than both ends have; a narrow slot is no fault."""
    if facts.kernel.virtual is None:
        yield Unknown(ALL)
    for device in _physical(facts):
        link = device.link
        if not link.width or not link.device_width or not link.port_width:
            yield Unknown(device.address)
            continue
        if _work_is_unknown(facts, device):
            yield Unknown(device.address)
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


def slow_link(facts: Facts) -> Iterator[Verdict]:
    """Find links slower than both ends support; idle GPUs lower their link speed."""
    if facts.kernel.virtual is None:
        yield Unknown(ALL)
    for device in _physical(facts):
        link = device.link
        if not link.speed or not link.device_speed or not link.port_speed:
            yield Unknown(device.address)
            continue
        if _work_is_unknown(facts, device):
            yield Unknown(device.address)
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


def missing_driver(facts: Facts) -> Iterator[Verdict]:
    """Find devices without a driver although equal ones have one: theirs could not start them."""
    drivers = {each.ids: each.driver for each in facts.devices if each.driver and _is_model(each)}
    for device in facts.devices:
        if device.driver:
            continue
        if device.ids not in drivers:
            yield Unknown(device.address)
            continue
        yield Violation(
            device.address,
            {"what": device_label(facts, device), "driver": drivers[device.ids],
             "address": device.address},
            (fact("pci.driver", device.address, "none", drivers[device.ids], known_as="driver"),),
            subsystem=_SUBSYSTEM.get(device.kind),
        )  # fmt: skip


def missing_port(facts: Facts) -> Iterator[Verdict]:
    """Find cards without an RDMA port that are made for it, or whose equals have one."""
    with_port = {_card(port.pci) for port in facts.ports}
    equals = {each.ids for each in facts.devices if _card(each.address) in with_port}
    cards = {_card(each.address): each for each in reversed(facts.devices)}
    for card, device in reversed(cards.items()):
        if device.kind != "network" or card in with_port:
            continue
        if not device.infiniband and not (_is_model(device) and device.ids in equals):
            yield Unknown(device.address)
            continue
        yield Violation(
            device.address,
            {"what": device_label(facts, device), "address": device.address},
            (fact("rdma.ports", device.address, 0, 1, known_as="ports"),),
        )


def _card(address: str) -> str:
    """Return the address of a card: two functions may share one port (bonding)."""
    return address.rpartition(".")[0]


def _is_model(device: DeviceFacts) -> bool:
    """Return whether the ids name a model; a recorded host may have the vendor only."""
    return bool(device.ids.partition(":")[2])


def concentrated_interrupts(facts: Facts) -> Iterator[Verdict]:
    """Find devices with all interrupts on one of several CPUs that may serve them."""
    usable = interrupt_cpus(facts)
    if not usable:
        yield Unknown(ALL)
    yield from map(Unknown, _maybe_serving(facts))
    for device in _serving(facts):
        vectors = device.vectors
        if vectors.count is None or not vectors.served:
            yield Unknown(device.address)
            continue
        near = near_cpus(facts, device.node) & usable or usable
        single = len(cpulist.parse(vectors.served)) == 1
        if vectors.count < _MANY_VECTORS or not single:
            continue
        if len(usable) < _MANY_CPUS or len(near) < _SEVERAL_CPUS:
            continue
        if any(nic.rx_queues == 1 for nic in facts.nics if nic.pci == device.address):
            continue  # one queue has one busy vector; the others do not matter
        yield Violation(
            device.address,
            {"what": device_label(facts, device), "count": vectors.count, "cpu": vectors.served,
             "advice": _spread(facts, device, near)},
            (fact("irq.served", device.address, vectors.served,
                  known_as="effective_affinity_list"),
             fact("irq.allowed", device.address, vectors.allowed, known_as="smp_affinity_list")),
            subsystem=_SUBSYSTEM.get(device.kind),
        )  # fmt: skip


def _spread(facts: Facts, device: DeviceFacts, near: frozenset[int]) -> str:
    # irqbalance knows isolated CPUs, but not those of irqaffinity=
    boot_choice = any(flag.startswith("irqaffinity=") for flag in facts.kernel.flags)
    several = len(cpulist.parse(device.vectors.allowed)) > 1
    if several and not boot_choice and "irqbalance" not in facts.kernel.services:
        return "systemctl enable --now irqbalance"
    return (
        f"for i in $(ls /sys/bus/pci/devices/{device.address}/msi_irqs); do echo CPU >"
        f" /proc/irq/$i/smp_affinity_list; done (each time another one of CPUs"
        f" {cpulist.render(near)})"
    )


def remote_interrupts(facts: Facts) -> Iterator[Verdict]:
    """Find interrupts that no CPU near the device serves, although some there may serve them."""
    usable = interrupt_cpus(facts)
    if not usable:
        yield Unknown(ALL)
    yield from map(Unknown, _maybe_serving(facts))
    for device in _serving(facts):
        every_near = near_cpus(facts, device.node)
        served = cpulist.parse(device.vectors.served)
        if not device.vectors.count or not served or not every_near:
            yield Unknown(device.address)
            continue
        near = every_near & usable
        if near and not served & every_near:
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
    """Yield the devices whose interrupts carry the work: active network cards, and drives.

    The kernel itself places the interrupts of most drives, and no user can move them
    (``PCI_IRQ_AFFINITY``, core-api/irq/managed_irq.rst).
    """
    up = {nic.pci for nic in facts.nics if nic.up}
    up |= {port.pci for port in facts.ports if port.state == "ACTIVE"}
    for device in facts.devices:
        managed = device.vectors.managed or device.driver in _MANAGED_DRIVERS
        if not managed and (device.kind == "storage" or device.address in up):
            yield device


def _maybe_serving(facts: Facts) -> Iterator[str]:
    """Yield the addresses of network cards of which it is unknown whether they are active."""
    yield from (nic.pci for nic in facts.nics if nic.up is None)
    yield from (port.pci for port in facts.ports if not port.state)


def _work_is_unknown(facts: Facts, device: DeviceFacts) -> bool:
    return device.kind == "gpu" and "processes" in facts.unread


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
        ("devices",),
    ),
    ConfigurationRule(
        "SlowPCIeLink", Subsystem.GPU, Severity.MEDIUM,
        "the PCIe link of {what} runs at {speed} GT/s, although both ends support {able}",
        "lspci -vv -s {address} | grep -i lnk; reseat the card, riser or cable, then reboot",
        "A link falls back to a slower generation when the signal is bad. Idle GPUs lower their"
        " link speed, so they are checked only while a process uses them.",
        "kernel: ABI/testing/sysfs-bus-pci (current_link_speed, max_link_speed)",
        slow_link,
        ("devices",),
    ),
    ConfigurationRule(
        "DeviceWithoutDriver", Subsystem.GPU, Severity.MEDIUM,
        "{what} has no driver, although equal devices have {driver}",
        "dmesg | grep -i {address} shows why {driver} did not take it; lspci -vv -s {address}",
        "A device that fails before the driver is loaded, or while the driver starts it, is never"
        " counted: no metric misses it. Devices of virtual machines and of DPDK have a driver"
        " (vfio-pci) and are not reported.",
        "kernel: ABI/testing/sysfs-bus-pci (driver), driver-api/driver-model/binding.rst",
        missing_driver,
        ("devices",),
    ),
    ConfigurationRule(
        "CardWithoutRDMAPort", Subsystem.NETWORK, Severity.MEDIUM,
        "{what} has no RDMA port: its driver did not start it, or is not loaded",
        "ls /sys/bus/pci/devices/{address}/infiniband; dmesg | grep -i {address}; rdma dev",
        "A port that was gone before Reveal started has no metrics that could miss it. InfiniBand"
        " cards are reported, and other cards where equal ones have a port.",
        "kernel: ABI/stable/sysfs-class-infiniband; rdma-dev(8)",
        missing_port,
        ("devices", "ports"),
    ),
    ConfigurationRule(
        "InterruptsOnOneCPU", Subsystem.NETWORK, Severity.MEDIUM,
        "all {count} interrupts of {what} are served by CPU {cpu}",
        "{advice}",
        "A device has many queues so that many CPUs share its work. With all vectors on one CPU,"
        " that CPU is the limit, and other tasks on it are delayed. Devices with one receive"
        " queue are not reported, nor are hosts where fewer than four CPUs may serve interrupts:"
        " isolated CPUs (isolcpus=, nohz_full=) and CPUs outside irqaffinity= do not count. The"
        " kernel places the interrupts of NVMe drives itself.",
        "kernel: networking/scaling.rst (RSS IRQ configuration),"
        " core-api/irq/irq-affinity.rst; paper 6, cases 2 and 3",
        concentrated_interrupts,
        ("cpu", "kernel", "devices", "nics", "ports", "memory.nodes"),
    ),
    ConfigurationRule(
        "RemoteInterrupts", Subsystem.NETWORK, Severity.LOW,
        "interrupts of {what} are served on CPUs {cpus}, although it is on NUMA node {node}",
        "for i in $(ls /sys/bus/pci/devices/{address}/msi_irqs); do echo {near} >"
        " /proc/irq/$i/smp_affinity_list; done",
        "A device writes its data to the memory of its node. A CPU of another socket fetches every"
        " packet and completion across the link between the sockets. Nothing is reported where all"
        " CPUs near the device are isolated or outside irqaffinity=, or where the kernel itself"
        " places the interrupts.",
        "kernel: networking/scaling.rst, core-api/irq/irq-affinity.rst,"
        " ABI/testing/sysfs-bus-pci (numa_node)",
        remote_interrupts,
        ("cpu", "kernel", "devices", "nics", "ports", "memory.nodes"),
    ),
)  # fmt: skip
