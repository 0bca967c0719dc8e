"""The class of a node from its facts, and the settings that are comparable within a class."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reveal_analyzer.fleet.inventory import (
    comparable,
    installed_memory,
    node_class,
    subsystem_of_fact,
)
from reveal_contract.facts import (
    Cpu,
    DeviceFacts,
    Disk,
    Facts,
    Gpu,
    Kernel,
    Memory,
    Nic,
    PcieLink,
    RdmaPortFacts,
)
from reveal_contract.metric import Subsystem
from support.fleet_summaries import GIB, facts

FACTS = facts("n1")


def test_a_class_is_what_decides_what_jobs_can_get() -> None:
    assert node_class(FACTS) == "Xeon, 4 CPUs, 65536 MiB, 2 x H100, Linux 6.1"


@pytest.mark.parametrize(
    "other",
    [
        facts("n2", memory=Memory(total=62 * GIB - (200 << 20))),  # another crash kernel
        facts("n2", kernel=Kernel(release="6.1.0-21-amd64")),
        facts("n2", cpu=Cpu(model="Xeon", present="0-3", online="0-2")),
    ],
)
def test_what_differs_by_nature_or_by_mistake_is_the_same_class(other: Facts) -> None:
    assert node_class(other) == node_class(FACTS)


@pytest.mark.parametrize(
    "other",
    [
        facts("n2", cpu=Cpu(model="EPYC", present="0-3")),
        facts("n2", cpu=Cpu(model="Xeon", present="0-7")),
        facts("n2", memory=Memory(total=31 * GIB)),
        facts("n2", gpus=(Gpu("0000:3b:00.0", "H100"),)),
        facts("n2", gpus=(Gpu("0000:3b:00.0", "A100"),) * 2),
        facts("n2", kernel=Kernel(release="6.8.0")),
    ],
)
def test_other_hardware_and_another_kernel_family_are_another(other: Facts) -> None:
    assert node_class(other) != node_class(FACTS)


def test_a_node_of_which_nothing_is_known_has_no_class() -> None:
    assert node_class(Facts(node="n")) == ""
    assert node_class(facts("n", memory=Memory())) == ""


@pytest.mark.parametrize(
    ("usable", "memory"),
    [(62.7, 64), (15.3, 16), (125.4, 128), (503.0, 512), (1007.2, 1024), (7.6, 8)],
)
def test_memory_is_what_the_host_was_fitted_with(usable: float, memory: int) -> None:
    assert installed_memory(int(usable * GIB)) == memory * GIB


def test_settings_are_listed_by_name_and_unknown_settings_omitted() -> None:
    settings = comparable(FACTS)
    assert settings["cpu.smt"] == "on"
    assert settings["memory.thp"] == "madvise"
    assert settings["kernel.sysctl.vm.swappiness"] == "60"
    assert settings["network.speeds"] == "1 x 25000 Mbit/s"
    assert settings["network.mtus"] == "1 x 9000"
    assert settings["gpu.persistence"] == "on"
    assert "gpu.ecc" not in settings
    assert "cpu.boost" not in settings
    assert comparable(Facts(node="n")) == {}


def test_names_addresses_and_order_make_no_difference() -> None:
    nics = (Nic("a", pci="1", up=True, mtu=1500), Nic("b", pci="2", up=True, mtu=9000))
    renamed = (replace(nics[1], name="c", pci="3"), replace(nics[0], name="d", pci="4"))
    veth = Nic("veth1", up=True, mtu=1450)
    first, second = facts("n1", nics=nics), facts("n2", nics=(*renamed, veth))
    assert comparable(first) == comparable(second)


def test_devices_are_counted_by_kind() -> None:
    def gpu(address: str, width: int | None) -> DeviceFacts:
        return DeviceFacts(address, "gpu", "10de:2330", "nvidia", link=PcieLink(width=width))

    settings = comparable(
        facts("n", devices=(gpu("1", 16), gpu("2", 8)), disks=(Disk("sda", "SSD"),))
    )
    assert settings["gpu.link_widths"] == "1 x x16, 1 x x8"
    assert settings["gpu.device_drivers"] == "nvidia"
    assert settings["storage.models"] == "1 x SSD"
    unknown = comparable(facts("n", devices=(gpu("1", 16), gpu("2", None))))
    assert "gpu.link_widths" not in unknown


def test_slower_ports_are_listed() -> None:
    slow = comparable(
        facts("n", ports=(RdmaPortFacts("mlx5_0/1", "InfiniBand", "ACTIVE", "100 Gb/sec"),))
    )
    assert slow["network.ports"] == "1 x ACTIVE 100 Gb/sec"


@pytest.mark.parametrize(
    ("fact", "subsystem"),
    [
        ("cpu.smt", Subsystem.CPU), ("kernel.release", Subsystem.CPU),
        ("kernel.sysctl.vm.swappiness", Subsystem.MEMORY), ("gpu.ecc", Subsystem.GPU),
        ("kernel.sysctl.net.core.rmem_max", Subsystem.NETWORK), ("storage.models",
        Subsystem.STORAGE), ("network.mtus", Subsystem.NETWORK),
        ("kernel.sysctl.kernel.numa_balancing", Subsystem.CPU),
    ],
)  # fmt: skip
def test_a_setting_belongs_to_a_subsystem(fact: str, subsystem: Subsystem) -> None:
    assert subsystem_of_fact(fact) is subsystem
