"""Which events are counted on which CPU: the vendors' tables on simulated hosts."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveal_collector.kernel_interfaces.errors import Unsupported
from reveal_collector.kernel_interfaces.perf_event import PerfEvent
from reveal_collector.readers.source import Roots
from reveal_collector.sources import cstates, energy, hardware, msr, uncore
from reveal_collector.sources.pmu.platform import (
    CORE,
    Count,
    CpuModel,
    Platform,
    choose,
    cpus,
    pack,
)
from reveal_contract import catalogue
from support.hosts import cpuinfo, pmu
from support.hosts.base import add_machine
from support.hosts.machine import SERVER
from support.hosts.tree import Tree
from support.property_tests import examples


def platforms(server: Tree) -> dict[str, str]:
    return {cores.device.name: cores.platform.name for cores in hardware.core_pmus(server.roots)}


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (cpuinfo.SKYLAKE_SP, "Skylake, Cascade Lake, Cooper Lake (servers)"),
        (cpuinfo.SAPPHIRE_RAPIDS, "Sapphire Rapids, Emerald Rapids"),
        (cpuinfo.ROME, "Zen 2"),
        (cpuinfo.MILAN, "Zen 3"),
        (cpuinfo.GENOA, "Zen 4"),
        (cpuinfo.TURIN, "Zen 5"),
        (cpuinfo.NEOVERSE_N1, "Neoverse N1"),
        (cpuinfo.NEOVERSE_V2, "Neoverse V1, N2, V2, N3, V3"),
        (cpuinfo.AMPEREONE, "generic"),
    ],
)
def test_the_cpu_chooses_the_table(
    server: Tree, model: cpuinfo.X86 | cpuinfo.Arm, name: str
) -> None:
    cpuinfo.add_cpuinfo(server, SERVER, model)
    if isinstance(model, cpuinfo.Arm):
        pmu.add_arm_pmus(server, SERVER)
    else:
        pmu.add_intel_pmus(server, SERVER)
    assert list(platforms(server).values()) == [name]


def test_cores_of_two_kinds_are_counted_each_by_their_own_pmu(server: Tree) -> None:
    cpuinfo.add_cpuinfo(server, SERVER, cpuinfo.ALDER_LAKE)
    pmu.add_hybrid_pmus(server, big=4, small=4)
    assert platforms(server) == {"cpu_core": "performance cores", "cpu_atom": "efficient cores"}
    plan = hardware.plan(server.roots)
    cycles = next(parts for column, parts in plan.columns.items() if "cycles" in column.metric)
    assert sorted(cycles) == [(cpu, PerfEvent(0, 4 << 32)) for cpu in range(4)] + [
        (cpu, PerfEvent(0, 10 << 32)) for cpu in range(4, 8)
    ]


def test_a_plan_counts_every_event_once_on_every_cpu(server: Tree) -> None:
    cpuinfo.add_cpuinfo(server, SERVER, cpuinfo.GENOA)
    pmu.add_amd_pmus(server, SERVER)
    plan = hardware.plan(server.roots)
    opened = [(cpu, event) for cpu, events in plan.groups for event in events]
    assert len(opened) == len(set(opened))
    assert sorted(opened) == sorted(part for parts in plan.columns.values() for part in parts)
    loads = next(parts for column, parts in plan.columns.items() if "loads" in column.metric)
    assert loads == [(cpu, PerfEvent(4, 0x0129)) for cpu in range(8)]
    stalls = next(column for column in plan.columns if "stalls" in column.metric)
    assert stalls.scale == pytest.approx(1 / 6)  # six slots a cycle


def test_the_watchdog_takes_a_counter_from_every_group(server: Tree) -> None:
    cpuinfo.add_cpuinfo(server, SERVER, cpuinfo.GENOA)
    pmu.add_amd_pmus(server, SERVER)
    most = max(len(events) for _, events in hardware.plan(server.roots).groups)
    server.write("proc/sys/kernel/nmi_watchdog", 1)
    assert max(len(events) for _, events in hardware.plan(server.roots).groups) == most - 1 == 5


def test_a_virtual_machine_has_no_core_pmu(server: Tree) -> None:
    cpuinfo.add_cpuinfo(server, SERVER, cpuinfo.GENOA)
    pmu.add_kernel_pmus(server)
    with pytest.raises(Unsupported, match="not exposed"):
        hardware.plan(server.roots)


@pytest.mark.parametrize("platform", hardware.PLATFORMS, ids=lambda platform: platform.name)
def test_tables_name_metrics_of_the_catalogue_and_fit_the_counters(platform: Platform) -> None:
    for name in platform.events:
        assert catalogue.find(name).source == "pmu"
    assert platform.fixed <= platform.events.keys()
    for taken in (0, 1):
        for group in pack(platform, list(platform.events), taken):
            general = len(group) if taken else len([each for each in group
                                                    if each not in platform.fixed])  # fmt: skip
            assert 1 <= general <= platform.counters - taken or general == 0


@examples(100)
@given(
    st.lists(st.sampled_from(sorted(CORE)), unique=True),
    st.integers(1, 8),
    st.integers(0, 2),
)
def test_packing_keeps_all_in_order(names: list[str], counters: int, taken: int) -> None:
    platform = Platform("any", "any", frozenset(), frozenset(), counters, CORE,
                        frozenset(("cpu.pmu.cycles",)))  # fmt: skip
    groups = pack(platform, names, taken)
    assert [name for group in groups for name in group] == names
    assert all(groups)


def test_a_platform_is_a_row() -> None:
    """A new CPU needs only the events that differ, and the CPU models they are for."""
    events = {**CORE, "memory.pmu.loads": Count("event=0x06,umask=0x0b")}
    row = Platform("LoongArch 3C6000", "Loongson-64bit", frozenset((0,)), frozenset((0x11,)),
                   4, events)  # fmt: skip
    assert choose((*hardware.PLATFORMS, row), CpuModel("Loongson-64bit", 0, 0x11)) is row


@examples(100)
@given(st.text(alphabet="processor\t: 0123vendor_idCPUparx\n", max_size=200))
def test_any_cpuinfo_is_read_or_left_out(text: str) -> None:
    assert isinstance(cpus(text), dict)


def channels(roots: Roots, plan: str) -> list[str]:
    plans = {"uncore": uncore._plan, "msr": msr._clocks, "smi": msr._smi,
            "cstates": cstates._plan, "energy": energy._plan}  # fmt: skip
    return [column.label for column in plans[plan](roots).columns]


def test_memory_controllers_of_each_vendor(tmp_path: Path) -> None:
    observed = {}
    for name, model in (("spr", cpuinfo.SAPPHIRE_RAPIDS), ("zen4", cpuinfo.GENOA),
                        ("zen3", cpuinfo.MILAN), ("grace", cpuinfo.NEOVERSE_V2)):  # fmt: skip
        tree = Tree(tmp_path / name)
        add_machine(tree, SERVER)
        cpuinfo.add_cpuinfo(tree, SERVER, model)
        match name:
            case "spr":
                pmu.add_intel_pmus(tree, SERVER)
            case "zen4":
                pmu.add_amd_pmus(tree, SERVER)
            case "zen3":
                pmu.add_amd_pmus(tree, SERVER, controllers=0)
            case "grace":
                pmu.add_arm_pmus(tree, SERVER)
        observed[name] = {
            column.label: (column.scale, len(parts))
            for column, parts in uncore._plan(tree.roots).columns.items()
        }
    both = [f"memory.bandwidth.{way}{{{socket}}}" for socket in (0, 1) for way in ("read", "write")]
    assert set(observed["spr"]) == set(observed["zen4"]) == set(observed["grace"]) == set(both)
    assert observed["spr"][both[0]] == (64.0, 8)
    assert observed["zen4"][both[0]] == (64.0, 12)
    assert observed["zen3"] == {
        f"memory.bandwidth.total{{{socket}}}": (64.0, 8) for socket in (0, 1)
    }
    assert observed["grace"][both[0]] == (32.0, 1)
    assert observed["grace"][both[1]] == (1.0, 1)


def test_the_kernels_own_names_come_first(server: Tree) -> None:
    cpuinfo.add_cpuinfo(server, SERVER, cpuinfo.SKYLAKE_SP)
    pmu.add_intel_pmus(server, SERVER, channels=6, named=True)
    plan = uncore._plan(server.roots)
    column, parts = next(iter(plan.columns.items()))
    assert column.scale == pytest.approx(64.0)  # 6.1e-5 MiB
    assert parts == [(0, PerfEvent(20 + index, 0x0304)) for index in range(6)]
    assert {len(events) for _, events in plan.groups} == {2}


def test_a_controller_of_an_unknown_platform_is_not_guessed(server: Tree) -> None:
    cpuinfo.add_cpuinfo(server, SERVER, cpuinfo.SKYLAKE_SP)
    pmu.add_intel_pmus(server, SERVER)
    with pytest.raises(Unsupported, match="memory controller"):
        uncore._plan(server.roots)


def test_what_turbostat_shows_is_by_host_and_package(server: Tree) -> None:
    pmu.add_intel_pmus(server, SERVER)
    assert channels(server.roots, "msr")[:4] == [
        "cpu.aperf", "cpu.mperf", "cpu.tsc", "cpu.aperf.package{0}",
    ]  # fmt: skip
    assert channels(server.roots, "smi") == ["cpu.smi{0}", "cpu.smi{1}"]
    assert channels(server.roots, "energy") == [
        "cpu.energy.package{0}", "memory.energy{0}", "cpu.energy.package{1}", "memory.energy{1}",
    ]  # fmt: skip
    assert "cpu.residency.core{C6}" in channels(server.roots, "cstates")


def test_a_virtual_machine_is_not_asked_for_the_smis_of_its_host(server: Tree) -> None:
    pmu.add_intel_pmus(server, SERVER)
    server.write("proc/cpuinfo", "processor\t: 0\nflags\t\t: fpu msr hypervisor\n")
    with pytest.raises(Unsupported, match="virtual machine"):
        msr._smi(server.roots)
    assert "cpu.residency.package{1/C2}" in channels(server.roots, "cstates")


def test_means_of_a_cpu_come_from_the_scale(server: Tree) -> None:
    pmu.add_msr_pmu(server)
    scales = {column.label: column.scale for column in msr._clocks(server.roots).columns}
    assert scales["cpu.tsc"] == 1 / 8
    assert scales["cpu.tsc.package{0}"] == 1 / 4


def test_a_virtual_machines_msr_pmu_has_the_tsc_alone(server: Tree) -> None:
    pmu.add_msr_pmu(server, ("tsc",))
    with pytest.raises(Unsupported, match="aperf"):
        msr._clocks(server.roots)


def test_the_busiest_and_the_slowest_cpu() -> None:
    second = 1_000_000_000
    steps = [
        (second, (3_000_000_000, 2_000_000_000, 2_000_000_000)),  # all the time at 3 GHz
        (second, (500_000_000, 1_000_000_000, 2_000_000_000)),  # half the time at 1 GHz
        (2 * second, (1_000, 10_000, 4_000_000_000)),  # idle: its clock is undefined
        (0, (0, 0, 0)),
        None,
    ]
    assert msr.extremes(steps) == (1_000_000, 1_000_000_000)
    assert msr.extremes([None]) == (None, None)
