"""Facts of simulated hosts, and the claims of the configuration rules about them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveal_analyzer.configuration.evaluate import evaluate
from reveal_collector.facts import cpu, gpus, kernel, memory, nics
from reveal_collector.facts.device_queries import card_sizes, queries_for
from reveal_collector.facts.gpus import NvmlAnswer
from reveal_collector.facts.inventory import DeviceQueries, FactsReader
from reveal_collector.facts.publisher import FactsPublisher
from reveal_collector.kernel_interfaces.errors import Unsupported
from reveal_collector.readers.source import Roots
from reveal_contract.facts import Facts, Gpu
from support.hosts import complete_hosts
from support.hosts.base import add_machine
from support.hosts.configuration import Setup, add_bond, add_gpu_process, add_huge_pages, add_setup
from support.hosts.cpufreq import add_cpufreq
from support.hosts.cpuinfo import SAPPHIRE_RAPIDS, add_cpuinfo
from support.hosts.irq import add_vectors
from support.hosts.machine import GIB, Disk, Machine, Nic
from support.hosts.pci import NETWORK, NVME, Function, add_function
from support.hosts.tree import Tree
from support.property_tests import examples

GPU, CARD, DRIVE = "0000:1b:00.0", "0000:18:00.0", "0000:70:00.0"


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """A correctly configured host: two sockets of four cores, a GPU, an 8-queue NIC, a drive."""
    simulated = Tree(tmp_path)
    machine = Machine(
        cpus=16, numa_nodes=2, sockets=2, threads=2, memory=256 * GIB,
        nics=(Nic("eth0", CARD, "mlx5_core", 100_000, 9000, 0, 8),
              Nic("eth1", "0000:19:00.0", "mlx5_core", 100_000, 9000, 0, 8)),
        disks=(Disk("nvme0n1", DRIVE, "nvme", 1),),
    )  # fmt: skip
    add_machine(simulated, machine)
    add_cpuinfo(simulated, machine, SAPPHIRE_RAPIDS)
    add_cpufreq(simulated, machine)
    add_setup(simulated)
    add_function(simulated, Function(GPU, port="0000:1b:01.0"))
    add_function(
        simulated, Function(CARD, NETWORK, "mlx5_core", port="0000:18:01.0", vendor="0x15b3")
    )
    add_function(simulated, Function(DRIVE, NVME, "nvme", "16.0 GT/s PCIe", 4, "16.0 GT/s PCIe", 4,
                                "0000:70:01.0", 1, vendor="0x144d"))  # fmt: skip
    add_vectors(simulated, CARD, 100, range(8), idle=3)
    return simulated


def facts(tree: Tree, *processes: tuple[int, str]) -> Facts:
    asks = DeviceQueries(gpus=lambda: NvmlAnswer(processes=processes))
    return FactsReader("n", tree.roots, asks).read()


def claims_about(tree: Tree, *processes: tuple[int, str]) -> list[str]:
    return [
        found.hypothesis.name for found in evaluate(facts(tree, *processes), 1) if found.hypothesis
    ]


def test_what_a_host_is(tree: Tree) -> None:
    found = facts(tree)
    assert (found.cpu.sockets, found.cpu.cores, found.cpu.threads) == (2, 8, 2)
    assert found.cpu.family == "6/143/1"
    assert (found.cpu.online, found.cpu.present) == ("0-15", "0-15")
    [policy] = found.cpu.policies
    assert (policy.cpus, policy.driver) == ("0-15", "intel_pstate")
    assert found.cpu.mitigations == {"spectre_v2": "Mitigation: Enhanced / Automatic IBRS"}
    assert [node.cpus for node in found.memory.nodes] == ["0-3,8-11", "4-7,12-15"]
    assert [node.distances for node in found.memory.nodes] == [(10, 21), (21, 10)]
    assert found.memory.total == 256 * GIB
    assert (found.memory.thp, found.memory.thp_defrag) == ("madvise", "madvise")
    assert found.kernel.os == "Ubuntu 24.04.1 LTS"
    assert found.kernel.machine == "Supermicro SYS-821GE"
    assert found.kernel.virtual is False
    assert found.kernel.services == ("containerd", "irqbalance")
    assert found.kernel.clocksources == ("tsc", "hpet", "acpi_pm")
    assert found.kernel.sysctl["net.ipv4.tcp_rmem"] == "4096 131072 6291456"


def test_what_is_plugged_in(tree: Tree) -> None:
    found = {device.address: device for device in facts(tree).devices}
    assert [found[address].kind for address in (CARD, GPU, DRIVE)] == ["network", "gpu", "storage"]
    link = found[GPU].link
    assert (link.width, link.device_width, link.port_width, link.speed) == (16, 16, 16, 32.0)
    assert found[DRIVE].node == 1
    assert (found[CARD].vectors.count, found[CARD].vectors.served) == (8, "0-7")
    nic = facts(tree).nics[0]
    assert (nic.name, nic.pci, nic.up, nic.speed, nic.mtu) == ("eth0", CARD, True, 100_000, 9000)
    assert (nic.rx_queues, nic.tx_queues, nic.rps, nic.missed) == (8, 8, False, 0)


def test_a_well_configured_host_has_no_claims(tree: Tree) -> None:
    assert claims_about(tree) == []


def test_misconfigurations_are_claimed(tree: Tree) -> None:
    add_setup(tree, Setup(clocksource="hpet", sysctls={"vm.zone_reclaim_mode": "1"}))
    add_huge_pages(tree, 64, 64)
    add_vectors(tree, CARD, 100, [5] * 8)
    tree.write(f"sys/bus/pci/devices/{DRIVE}/current_link_width", 2)
    add_bond(tree, "bond0", "802.3ad 4", {"eth0": True, "eth1": False}, 9000)
    assert sorted(claims_about(tree)) == [
        "BondPartDown", "IdleHugePages", "InterruptsOnOneCPU", "NarrowPCIeLink",
        "RemoteInterrupts", "SlowClocksource", "ZoneReclaim",
    ]  # fmt: skip


@pytest.mark.parametrize("lost", ["nr_hugepages", "free_hugepages", "resv_hugepages"])
def test_huge_pages_whose_numbers_cannot_be_read_are_unknown(tree: Tree, lost: str) -> None:
    """Without the free pages none were idle, and without the reserved ones all free ones were."""
    add_huge_pages(tree, 64, 64)
    [known] = memory.huge_pools(tree.roots)
    tree.remove(f"sys/kernel/mm/hugepages/hugepages-1048576kB/{lost}")
    [unknown] = memory.huge_pools(tree.roots)
    assert (unknown.size, None in (unknown.total, unknown.free)) == (known.size, True)
    assert claims_about(tree) == []


def test_lists_that_exist_and_cannot_be_read_are_named(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(path: Path) -> None:
        if path.name in ("net", "swaps"):
            raise OSError(24, "Too many open files")

    assert facts(tree).unread == ()
    monkeypatch.setattr("reveal_collector.facts.files.check_readable", fail)
    assert facts(tree).unread == ("bonds", "memory.swaps", "nics")


def test_topics_that_fail_are_named(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> NvmlAnswer:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(memory, "memory", fail)
    inventory = FactsReader("n", tree.roots, DeviceQueries(gpus=fail))
    assert inventory.read().unread == ("memory", "processes")
    monkeypatch.undo()
    monkeypatch.setattr(cpu, "identity", fail)
    inventory = FactsReader("n", tree.roots)
    # what is read every ten minutes stays unknown until then
    assert all("cpu" in inventory.read().unread for _ in range(10))
    monkeypatch.undo()
    assert "cpu" not in inventory.read().unread


def test_processes_are_unknown_without_the_library_of_the_gpus(tree: Tree) -> None:
    assert FactsReader("n", tree.roots).read().unread == ("processes",)
    answer = DeviceQueries(gpus=lambda: NvmlAnswer(complete=False))
    assert FactsReader("n", tree.roots, answer).read().unread == ("processes",)


def test_the_link_of_a_gpu_that_saves_power_has_no_speed(tree: Tree) -> None:
    """An idle server keeps its context while the card lowers its link."""
    tree.write(f"sys/bus/pci/devices/{GPU}/current_link_speed", "2.5 GT/s PCIe\n")
    add_gpu_process(tree, 4242, "0-3", "0")
    for resting, claims in (((), ["SlowPCIeLink"]), ((GPU,), [])):
        answer = NvmlAnswer(processes=((4242, GPU),), resting=resting)
        found = FactsReader("n", tree.roots, DeviceQueries(gpus=lambda: answer)).read()  # noqa: B023
        assert [each.hypothesis.name for each in evaluate(found, 1) if each.hypothesis] == claims


def test_managed_interrupts_are_known_by_their_files(tree: Tree) -> None:
    assert FactsReader("n", tree.roots).read().devices[0].vectors.managed is None
    path = tree.roots.proc / "irq/103/smp_affinity_list"
    path.chmod(0o444)
    assert {each.address: each.vectors.managed for each in facts(tree).devices}[CARD] is True


def test_lost_frames_are_counted_in_a_million(tree: Tree) -> None:
    folder = "sys/class/net/eth0/statistics"
    tree.write(f"{folder}/rx_missed_errors", 3_000)
    tree.write(f"{folder}/rx_packets", 1_000_000_000)
    assert facts(tree).nics[0].missed_per_million == 3
    tree.write(f"{folder}/rx_missed_errors", 0)
    assert facts(tree).nics[0].missed_per_million is None


def test_a_job_on_the_wrong_socket_is_claimed_with_its_cgroup(tree: Tree) -> None:
    add_gpu_process(tree, 4242, "4-7,12-15", "1", cgroup="/slurm/job_9")
    add_gpu_process(tree, 4243, "0-15", "0-1")
    found = evaluate(facts(tree, (4242, GPU), (4243, GPU), (9999, GPU)), 1)
    names = [finding.hypothesis.name for finding in found if finding.hypothesis]
    assert names == ["GPUProcessOnRemoteCPUs", "GPUProcessOnRemoteMemory"]
    assert {finding.subjects[0].name for finding in found} == {"/slurm/job_9"}


def test_a_guest_has_no_claims_about_its_hypervisor(tree: Tree) -> None:
    add_setup(tree, Setup(vendor="QEMU", product="Standard PC"))
    tree.write(f"sys/bus/pci/devices/{DRIVE}/current_link_width", 1)
    tree.write("sys/devices/system/cpu/online", "0-7\n")
    assert claims_about(tree) == []


# the deliberate misconfigurations of the trees
HINTS = {
    "dgx_h100": ["IdleHugePages", "NarrowPCIeLink"], "amd_two_socket_ib": ["SlowClocksource"],
    "grace": [], "k3s_nested": [], "docker_cri": [], "vm_cloud": [], "recorded_vm": [],
}  # fmt: skip


@pytest.mark.parametrize("name", HINTS)
def test_whole_hosts_have_facts_of_bounded_size_and_no_false_alarm(
    name: str, tmp_path: Path
) -> None:
    simulated = Tree(tmp_path)
    getattr(complete_hosts, name)(simulated)
    inventory = FactsReader("n", simulated.roots)
    found = inventory.read()
    assert found.cpu.online
    assert found.memory.total
    assert len(found.to_json()) < 32 << 10
    assert Facts.from_json(found.to_json()) == found
    assert inventory.read() == found
    assert claims_about(simulated) == HINTS[name]


def test_rates_of_looking_see_what_changed_in_time(tree: Tree) -> None:
    inventory = FactsReader("n", tree.roots)
    inventory.read()
    add_setup(tree, Setup(clocksource="hpet"))
    tree.remove("proc/900")
    tree.write("sys/devices/system/cpu/cpufreq/policy0/scaling_governor", "powersave\n")
    add_vectors(tree, CARD, 100, [5] * 8)
    soon = inventory.read()
    assert soon.kernel.clocksource == "hpet"
    assert {policy.governor for policy in soon.cpu.policies} == {"powersave", "performance"}
    assert soon.kernel.services == ("containerd", "irqbalance")
    later = [inventory.read() for _ in range(4)][-1]
    assert {device.vectors.served for device in later.devices} >= {"5"}
    assert [inventory.read() for _ in range(5)][-1].kernel.services == ("containerd",)


def test_an_empty_tree_has_no_facts_and_no_error(tmp_path: Path) -> None:
    roots = Roots(tmp_path / "proc", tmp_path / "sys", tmp_path / "cgroup")
    assert FactsReader("n", roots).read() == Facts(node="n")


def test_the_watch_keeps_the_same_object_until_facts_change(tree: Tree) -> None:
    watch = FactsPublisher(FactsReader("n", tree.roots))
    watch.refresh()
    first = watch.latest
    watch.refresh()
    assert watch.latest is first
    assert first is not None
    assert json.loads(first)["node"] == "n"
    add_setup(tree, Setup(clocksource="hpet"))
    watch.refresh()
    assert watch.latest != first


@pytest.mark.parametrize(
    ("flags", "vendor", "product", "hypervisor", "guest"),
    [
        (("hypervisor",), "", "", "", True),
        ((), "QEMU", "KVM Virtual Machine", "", True),
        ((), "Amazon EC2", "m7g.large", "", True),
        ((), "Amazon EC2", "c7g.metal", "", False),
        ((), "Microsoft Corporation", "Virtual Machine", "", True),
        ((), "Microsoft Corporation", "C2080", "", False),
        ((), "Google", "Google Compute Engine", "", True),
        ((), "Dell Inc.", "PowerEdge XE9680", "", False),
        ((), "", "", "xen", True),
        ((), "", "", "", None),
    ],
)
def test_who_is_a_guest(
    flags: tuple[str, ...], vendor: str, product: str, hypervisor: str, guest: bool | None
) -> None:
    assert kernel.virtual(flags, vendor, product, hypervisor) is guest


def test_the_command_line_gives_what_matters_and_no_secret() -> None:
    line = "root=UUID=1 token=secret isolcpus=2-3 mitigations=off quiet hugepages=16"
    assert kernel.flags(line) == ["isolcpus=2-3", "mitigations=off", "hugepages=16"]


def test_cgroups_of_either_version() -> None:
    assert gpus.cgroup("0::/user.slice/a:b.scope\n") == "/user.slice/a:b.scope"
    assert gpus.cgroup("12:cpu,cpuacct:/job\n3:memory:/other\n0::/init\n") == "/job"
    assert gpus.cgroup("0::/\n") == gpus.cgroup("") == gpus.cgroup("nonsense") == ""


def test_rings_are_asked_where_cards_answer(tree: Tree) -> None:
    sizes = nics.NicSizes(rx_ring=256, rx_ring_most=8192)
    found = FactsReader("n", tree.roots, DeviceQueries(sizes=lambda _: sizes)).read()
    assert (found.nics[0].rx_ring, found.nics[0].rx_ring_most) == (256, 8192)
    assert card_sizes("none-such") == nics.NicSizes()


def test_a_failing_library_costs_its_own_facts_alone(tree: Tree) -> None:
    def fail() -> NvmlAnswer:
        raise Unsupported("no driver")

    found = FactsReader("n", tree.roots, DeviceQueries(gpus=fail)).read()
    assert found.gpus == (Gpu(pci=GPU),)
    assert found.cpu.sockets == 2


def test_settings_that_cannot_be_read_are_left_out_and_never_those_of_before(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(5, "Input/output error")

    inventory = FactsReader("n", tree.roots)
    before = inventory.read()
    assert before.cpu.policies and before.kernel.clocksource == "tsc"
    monkeypatch.setattr(cpu, "settings", fail)
    monkeypatch.setattr(kernel, "settings", fail)
    after = inventory.read()
    assert (after.cpu.model, after.cpu.policies) == (before.cpu.model, ())
    assert (after.kernel.release, after.kernel.clocksource) == (before.kernel.release, "")
    monkeypatch.undo()
    assert inventory.read() == before


def test_another_hosts_tree_is_never_asked_about_by_call(tree: Tree) -> None:
    assert queries_for(tree.roots, lambda: True) == DeviceQueries()


def test_the_driver_names_its_gpus_without_a_library(tree: Tree) -> None:
    tree.write(
        f"proc/driver/nvidia/gpus/{GPU}/information",
        "Model: \t\t NVIDIA H100 80GB HBM3\nIRQ:   \t\t 18\nGPU UUID: \t GPU-1\n",
    )
    tree.write("sys/module/nvidia/version", "550.90.07\n")
    found = facts(tree)
    assert found.gpus == (Gpu(GPU, "NVIDIA H100 80GB HBM3", "GPU-1"),)
    assert found.drivers == {"nvidia": "550.90.07"}


lines = st.text(st.sampled_from("0123456789 :\t\n-,[]=/()kBaz\x00\xff"), max_size=60)


@given(lines)
@examples(300)
def test_parsers_take_any_text(text: str) -> None:
    cpu.family(cpu.first_processor(text))
    memory.total(text, "MemTotal:")
    for swap in memory.swaps(text):
        assert swap.size >= 0
    kernel.os_name(text)
    kernel.flags(text)
    assert isinstance(gpus.cgroup(text), str)


@given(st.binary(max_size=40))
@examples(100)
def test_files_of_any_bytes_break_no_inventory(
    tmp_path_factory: pytest.TempPathFactory, data: bytes
) -> None:
    simulated = Tree(tmp_path_factory.mktemp("odd"))
    for path in (
        "proc/cpuinfo", "proc/meminfo", "proc/swaps", "sys/devices/system/cpu/present",
        "sys/devices/system/node/node0/distance", "sys/devices/system/cpu/online",
        "sys/bus/pci/devices/0000:00:01.0/class", "proc/irq/1/effective_affinity_list",
    ):  # fmt: skip
        simulated.write(path, data)
    assert Facts.from_json(FactsReader("n", simulated.roots).read().to_json()).node == "n"
