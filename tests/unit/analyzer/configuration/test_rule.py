"""Configuration rules: broken rules are found; intact and unknown ones are not."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from reveal_analyzer.configuration.__main__ import page
from reveal_analyzer.configuration.evaluate import RULES, evaluate, finding_id
from reveal_contract.facts import (
    Facts,
    Gpu,
    HugePool,
    InterruptVectors,
    NumaNode,
    PcieLink,
    RdmaPortFacts,
    Swap,
)
from reveal_contract.finding import FindingKind, Severity, State
from reveal_contract.metric import Subsystem
from support.configured_hosts import (
    CARD,
    DRIVE,
    GIB,
    GPU,
    SOUND,
    WIDE,
    cpu,
    device,
    guest,
    housekeeping,
    idle,
    isolated,
    kernel,
    memory,
    nic,
    policy,
    process,
    split,
    sysctl,
    unknown,
)


@dataclass(frozen=True)
class Case:
    rule: str
    broken: Facts
    words: tuple[str, ...]
    fix: str
    sound: tuple[Facts, ...] = ()


def beside(equal: str, **changes: object) -> Facts:
    """Return the sound host with one more device, equal to the one with this address but for it."""
    device = next(each for each in SOUND.devices if each.address == equal)
    changed = {"address": "0000:3b:01.0", **changes}
    return replace(SOUND, devices=(*SOUND.devices, replace(device, **changed)))  # type: ignore[arg-type]


HALF = replace(WIDE, width=8)
LATE = replace(WIDE, speed=16.0)
VECTORS = InterruptVectors(16, "3", "0-15")
FAR = InterruptVectors(16, "8-15", "0-15")
CAPPED = policy(highest=2_000_000)
UNEVEN = (NumaNode(0, "0-7", 224 * GIB, (10, 21)), NumaNode(1, "8-15", 256 * GIB, (21, 10)))
CASES = [
    Case(
        "LowestClockGovernor", policy(driver="acpi-cpufreq"), ("CPUs 0-15", "0.8 GHz"),
        "cpupower frequency-set -g performance",
        (policy(driver="acpi-cpufreq", governor="schedutil"), policy(driver="amd-pstate-epp"),
         policy(driver="acpi-cpufreq", lowest=3_800_000), policy(driver="")),
    ),
    Case(
        "EnergyPreferencePower", policy(preference="power"), ("CPUs 0-15",), "balance_performance",
        (policy(preference="balance_power"), policy(preference="power", governor="performance")),
    ),
    Case(
        "ClockLimited", CAPPED, ("2.0 GHz", "3.8"), "-u 3800000",
        (policy(highest=3_100_000), policy(highest=None),
         replace(CAPPED, cpu=replace(CAPPED.cpu, boost=False))),
    ),
    Case(
        "CPUsOffline", cpu(online="0-13"), ("CPUs 14-15",), "cpu14/online",
        (cpu(online="0-7", smt="off"), cpu(online="0-7", cores=8),
         replace(cpu(online="0-13"), kernel=replace(SOUND.kernel, flags=("maxcpus=14",))),
         guest(cpu(online="0-13")), cpu(online="", present="")),
    ),
    Case(
        "SlowClocksource", kernel(clocksource="hpet"), ("hpet",), "echo tsc >",
        (kernel(clocksource="kvm-clock"), kernel(clocksource="arch_sys_counter"),
         replace(kernel(clocksource="acpi_pm"), cpu=replace(SOUND.cpu, clock_flags=()))),
    ),
    Case(
        "IdleHugePages", memory(huge=(HugePool(GIB, None, 64, 64), HugePool(GIB, 0, 64, 64))),
        ("64 GiB", "0 of 64 pages"), "echo 0 > /sys/kernel/mm/hugepages/hugepages-1048576kB",
        (memory(huge=(HugePool(GIB, None, 64, 64, reserved=60),)),
         memory(huge=(HugePool(GIB, None, 64, 40),)),  # of virtual machines, one not started yet
         memory(huge=(HugePool(GIB, None, 64, 64, reserved=1),)),
         memory(huge=(HugePool(GIB, None, 64, None),)),
         replace(memory(huge=(HugePool(GIB, None, 64, 64),)),
                 kernel=replace(SOUND.kernel, services=("libvirtd",))),
         device(CARD, memory(huge=(HugePool(GIB, None, 64, 64),)), driver="vfio-pci"),
         memory(huge=(HugePool(GIB, None, 64, 20),)),
         memory(huge=(HugePool(2 << 20, None, 500, 500),)),
         memory(huge=(HugePool(GIB, 0, 64, 64),))),
    ),
    Case(
        "SwapPreferredToFiles", sysctl(swappiness="150"), ("150", "/dev/sda2"),
        "vm.swappiness=60",
        (sysctl(swappiness="100"), sysctl(swappiness="odd"),
         replace(sysctl(swappiness="150"), memory=replace(SOUND.memory, zswap=True)),
         replace(sysctl(swappiness="150"),
                 memory=replace(SOUND.memory, swaps=(Swap("/dev/zram0", "partition", GIB),))),
         replace(sysctl(swappiness="150"), memory=replace(SOUND.memory, swaps=()))),
    ),
    Case(
        "ZoneReclaim", sysctl(zone_reclaim_mode="1"), ("zone_reclaim_mode is 1",),
        "vm.zone_reclaim_mode=0",
        (replace(sysctl(zone_reclaim_mode="1"),
                 memory=replace(SOUND.memory, nodes=SOUND.memory.nodes[:1])),),
    ),
    Case(
        "StallingTHP", memory(thp_defrag="always"), ("huge page",), "echo madvise",
        (memory(thp="madvise", thp_defrag="always"), memory(thp_defrag="defer+madvise")),
    ),
    Case(
        "NodeWithoutMemory",
        memory(nodes=(SOUND.memory.nodes[0], replace(SOUND.memory.nodes[1], memory=0))),
        ("NUMA node 1", "8-15"), "dmidecode",
        (memory(nodes=(SOUND.memory.nodes[0], NumaNode(1, "", 0, (21, 10)))),
         memory(nodes=(SOUND.memory.nodes[0], NumaNode(1, "8-15", None, (21, 10)))),
         guest(memory(nodes=(SOUND.memory.nodes[0], NumaNode(1, "8-15", 0, (21, 10)))))),
    ),
    Case(
        "UnevenMemory", memory(nodes=UNEVEN), ("224 GiB", "256 GiB"), "dmidecode",
        (guest(memory(nodes=UNEVEN)), memory(nodes=(UNEVEN[1], NumaNode(1, "", 16 * GIB))),
         memory(nodes=(NumaNode(0, "0", 13 * GIB), NumaNode(1, "1", 16 * GIB)))),
    ),
    Case(
        "NarrowPCIeLink", device(GPU, link=HALF), ("GPU 0000:3b:00.0 (NVIDIA H100)", "8 of 16"),
        "lspci -vv -s 0000:3b:00.0",
        (guest(device(GPU, link=HALF)), unknown(device(GPU, link=HALF)),
         device(GPU, link=replace(HALF, port_width=8)),
         device(GPU, link=replace(HALF, port_width=None))),
    ),
    Case(
        "SlowPCIeLink", device(CARD, link=LATE), ("network card eth0", "16 GT/s", "32"), "lspci",
        (idle(device(GPU, link=LATE)), device(CARD, link=replace(LATE, port_speed=16.0)),
         guest(device(CARD, link=LATE))),
    ),
    Case(
        "DeviceWithoutDriver", beside(GPU, ids="10de:2330", driver=""),
        ("GPU 0000:3b:01.0", "has no driver", "nvidia"), "dmesg",
        (beside(GPU, ids="10de:2330", driver="vfio-pci"), beside(GPU, ids="10de:128b", driver=""),
         beside(GPU, ids="10de:", driver="")),
    ),
    Case(
        "CardWithoutRDMAPort", beside(CARD, address="0000:5f:00.0"),
        ("0000:5f:00.0", "no RDMA port"), "rdma dev",
        (beside(CARD, address=CARD[:-1] + "1"), beside(CARD, address="0000:5f:00.0", ids="8086:1"),
         replace(beside(CARD, address="0000:5f:00.0"), unread=("ports",)),
         replace(SOUND, ports=())),
    ),
    Case(
        "InterruptsOnOneCPU", device(CARD, vectors=VECTORS), ("All 16 interrupts", "eth0", "CPU 3"),
        "/sys/bus/pci/devices/0000:5e:00.0/msi_irqs",
        (device(CARD, vectors=InterruptVectors(3, "3", "0-15")),
         isolated("1-15", VECTORS), isolated("3-15", VECTORS), housekeeping("0-2", VECTORS),
         housekeeping("0-15:1/4", VECTORS), isolated("4-7", replace(VECTORS, managed=True)),
         # the only CPU of its socket that may serve them
         isolated("0-2,4-7", VECTORS),
         device(DRIVE, vectors=InterruptVectors(17, "9", "9")),
         replace(device(CARD, vectors=VECTORS), cpu=replace(SOUND.cpu, online="0-2")),
         replace(device(CARD, vectors=VECTORS), nics=(replace(SOUND.nics[0], rx_queues=1),)),
         replace(device(CARD, vectors=VECTORS), nics=(), ports=())),
    ),
    Case(
        "RemoteInterrupts", device(CARD, vectors=InterruptVectors(16, "8-15", "0-15")),
        ("NUMA node 0", "CPUs 8-15"), "echo 0-7 >",
        (device(CARD, vectors=InterruptVectors(16, "7-15", "0-15")),
         isolated("0-7", FAR), housekeeping("8-15", FAR),
         device(CARD, vectors=replace(FAR, managed=True)),
         device(DRIVE, vectors=InterruptVectors(17, "0-7", "0-15")),
         device(CARD, vectors=InterruptVectors(16, "8-15", "0-15"), node=None),
         device(CARD, vectors=InterruptVectors(16, "8-15", "0-15"), node=5),
         device(CARD, split("0-7", "8-15"), vectors=InterruptVectors(16, "8-15", "0-15"))),
    ),
    Case(
        "SmallReceiveRing", nic(missed=4000), ("lost 4000", "1024", "8192"),
        "ethtool -G eth0 rx 8192",
        (nic(missed=1), nic(missed=1023, missed_per_million=1000),  # when the driver started
         nic(missed=4000, missed_per_million=0), nic(missed=9000, rx_ring=8192),
         nic(missed=4000, rx_ring_most=None), nic(missed=None)),
    ),
    Case(
        "OneNetworkQueue", nic(channels=1), ("one of 63",), "ethtool -L eth0 combined 8",
        (nic(channels=1, channels_most=1), nic(channels=1, up=False), nic(channels=None)),
    ),
    Case("HalfDuplex", nic(duplex="half"), ("eth0",), "autoneg on", (nic(duplex="unknown"),)),
    Case(
        "BondPartDown", replace(SOUND, bonds=(replace(SOUND.bonds[0], down=("eth1",)),)),
        ("eth1 of bond0", "1 of 2", "802.3ad"), "ip link set eth1 up",
    ),
    Case("BondMTUMismatch", nic(mtu=1500), ("eth0", "1500", "9000"), "mtu 9000", (nic(mtu=None),)),
    Case(
        "InfiniBandOnOneLane",
        replace(SOUND, ports=(replace(SOUND.ports[0], rate="100 Gb/sec (1X NDR)"),)),
        ("mlx5_0/1", "1X"), "iblinkinfo",
        (replace(SOUND,
                 ports=(RdmaPortFacts("m/1", "Ethernet", "ACTIVE", "25 Gb/sec (1X EDR)", CARD),)),
         replace(SOUND,
                 ports=(RdmaPortFacts("m/1", "InfiniBand", "DOWN", "2.5 Gb/sec (1X SDR)", CARD),))),
    ),
    Case(
        "GPUProcessOnRemoteCPUs", process(cpus="8-11"), ("python (77)", "node 0", "CPUs 8-11"),
        "taskset -a -c -p 0-7 77",
        (process(cpus="7-15"), process(gpus=("0000:99:00.0",), cpus="8-15"), process(cpus="odd"),
         replace(split("0-7", "8-15"), processes=process(cpus="8-15").processes)),
    ),
    Case(
        "GPUProcessOnRemoteMemory", process(memory="1"), ("python (77)", "only from node 1"),
        "node 0",
        (process(memory="0-1"), process(memory="")),
    ),
    Case(
        "NoPersistence", replace(SOUND, gpus=(Gpu(GPU, persistence=False),)), ("1 GPU:",),
        "nvidia-smi -pm 1",
        (replace(kernel(services=("nvidia-persiste",)), gpus=(Gpu(GPU, persistence=False),)),
         replace(SOUND, gpus=(Gpu(GPU),))),
    ),
]  # fmt: skip


def broken(facts: Facts) -> list[str]:
    return [finding.hypothesis.name for finding in evaluate(facts, 5) if finding.hypothesis]


def test_a_sound_host_breaks_no_rule() -> None:
    assert evaluate(SOUND, 5) == []


def test_unknown_facts_have_no_findings() -> None:
    assert evaluate(Facts(node="n"), 5) == []


def test_every_rule_has_its_case() -> None:
    assert sorted(case.rule for case in CASES) == sorted(rule.name for rule in RULES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule)
def test_a_broken_rule_is_found_with_claim_and_fix(case: Case) -> None:
    [finding] = evaluate(case.broken, 5)
    assert finding.hypothesis is not None
    assert finding.hypothesis.name == case.rule
    for words in case.words:
        assert words in finding.claim
    assert case.fix in finding.hypothesis.remediation
    assert finding.kind is FindingKind.CONFIGURATION
    assert finding.confidence_percent == finding.score_percent == 100
    assert finding.severity.rank <= Severity.MEDIUM.rank
    assert finding.evidence
    assert finding.state is State.OPEN


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule)
def test_what_only_looks_like_it_is_left_alone(case: Case) -> None:
    for facts in case.sound:
        assert case.rule not in broken(facts)


def test_an_infiniband_card_needs_no_equal_to_be_expected_to_have_a_port() -> None:
    alone = replace(device(CARD, infiniband=True), ports=())
    assert broken(alone) == ["CardWithoutRDMAPort"]
    assert broken(device(CARD, infiniband=True)) == []


def test_a_narrow_link_of_an_idle_gpu_weighs_less() -> None:
    [busy], [resting] = (
        evaluate(given(device(GPU, link=HALF)), 5) for given in (lambda f: f, idle)
    )
    assert (busy.severity, resting.severity) == (Severity.MEDIUM, Severity.LOW)
    assert busy.subsystem is Subsystem.GPU
    [drive] = evaluate(device(DRIVE, link=PcieLink(2, 4, 4)), 5)
    assert drive.subsystem is Subsystem.STORAGE


def test_functions_of_the_same_card_are_reported_once() -> None:
    card = next(each for each in SOUND.devices if each.address == CARD)
    other = replace(card, address=CARD[:-1] + "1", link=HALF)
    assert broken(device(CARD, replace(SOUND, devices=(*SOUND.devices, other)), link=HALF)) == [
        "NarrowPCIeLink"
    ]


def test_interrupts_that_may_spread_are_left_to_irqbalance() -> None:
    facts = device(CARD, kernel(services=()), vectors=VECTORS)
    [finding] = evaluate(facts, 5)
    assert finding.hypothesis is not None
    assert finding.hypothesis.remediation == "systemctl enable --now irqbalance"


def fix(facts: Facts) -> str:
    [finding] = evaluate(facts, 5)
    assert finding.hypothesis is not None
    return finding.hypothesis.remediation


def test_no_fix_moves_interrupts_to_isolated_cpus() -> None:
    assert "CPUs 0-3)" in fix(isolated("4-7", VECTORS))
    assert "echo 0-3 >" in fix(isolated("4-7", FAR))
    assert "echo 2-4 >" in fix(housekeeping("2-4,9", FAR))


def test_irqbalance_is_no_fix_where_the_boot_parameters_choose_the_cpus() -> None:
    facts = housekeeping("0-7", VECTORS)
    assert "irqbalance" not in fix(replace(facts, kernel=replace(facts.kernel, services=())))


def test_the_culprit_of_a_misplaced_job_is_named() -> None:
    [finding] = evaluate(process(cpus="8-15"), 5)
    assert [(subject.kind, subject.name) for subject in finding.subjects] == [
        ("Cgroup", "/slurm/job_7")
    ]
    [finding] = evaluate(process(cpus="8-15", cgroup=""), 5)
    assert [(subject.kind, subject.name) for subject in finding.subjects] == [
        ("ProcessGroup", "python")
    ]


def test_identities_are_of_node_rule_and_object() -> None:
    [first] = evaluate(nic(duplex="half"), 1)
    [again] = evaluate(nic(duplex="half"), 2)
    [elsewhere] = evaluate(replace(nic(duplex="half"), node="m"), 1)
    assert first.id == again.id == finding_id("n", "HalfDuplex", "eth0")
    assert elsewhere.id != first.id
    assert first.id.replace("-", "").isalnum()


def test_the_page_of_the_rules_is_current() -> None:
    kept = Path(__file__).parents[4] / "docs/reference/configuration-rules.md"
    assert kept.read_text() == page(), (
        "python -m reveal_analyzer.configuration > docs/reference/configuration-rules.md"
    )


def test_every_rule_has_a_reason_and_a_reference() -> None:
    for rule in RULES:
        assert len(rule.why) > 60
        assert len(rule.reference) > 10
        assert rule.fix
