"""Clocks, idle states, energy and temperatures on simulated hosts."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveal_collector.kernel_interfaces.errors import LayoutChanged, Unsupported
from reveal_collector.readers.source import CHECK_EVERY, Roots, Source
from reveal_collector.sources import cpufreq, cpuidle, energy, hwmon
from support.hosts import cpufreq as clocks
from support.hosts import cpuidle as idle
from support.hosts import hwmon as sensors
from support.hosts import powercap
from support.hosts.base import add_machine
from support.hosts.machine import SERVER, Machine
from support.hosts.tree import Tree
from support.property_tests import examples
from support.source_reader import read_values


def opened(sources: list[Source], name: str) -> Source:
    source = next(each for each in sources if each.name == name)
    source.open()
    return source


def read(source: Source) -> dict[str, float]:
    cells = zip(source.channels, source.read(), strict=True)
    return {column.label: cell * column.scale for column, cell in cells if cell is not None}


def steps(source: Source, server: Tree, seconds: float = 1.0) -> dict[str, float]:
    before = read(source)
    server.advance(seconds)
    return {label: value - before[label] for label, value in read(source).items()}


def test_idle_time_is_summed_over_cpus_by_state(server: Tree) -> None:
    idle.add_cpuidle(server, SERVER)
    observed = steps(opened(cpuidle.sources(server.roots), "cpuidle"), server, 10.0)
    assert observed["cpu.idle_state.time{C6}"] == pytest.approx(8 * 0.7 * 10e9)
    assert observed["cpu.idle_state.time{C1E}"] == pytest.approx(8 * 0.15 * 10e9)
    assert observed["cpu.idle_state.entries{C6}"] == pytest.approx(8 * 140 * 10)
    assert len(observed) == 8


def test_a_cpu_that_goes_and_comes_back_makes_no_jump(server: Tree) -> None:
    idle.add_cpuidle(server, SERVER)
    source = opened(cpuidle.sources(server.roots), "cpuidle")
    steps(source, server)
    for state in range(4):
        for file in ("time", "usage"):
            server.write(f"sys/devices/system/cpu/cpu7/cpuidle/state{state}/{file}", "\n")
    assert steps(source, server)["cpu.idle_state.time{C6}"] == pytest.approx(7 * 0.7e9)
    before = read(source)
    server.advance(100.0)
    idle.add_cpuidle(server, SERVER)
    gained = read(source)["cpu.idle_state.time{C6}"] - before["cpu.idle_state.time{C6}"]
    assert gained == pytest.approx(7 * 70e9)  # what the last one counted meanwhile is not known
    assert steps(source, server)["cpu.idle_state.time{C6}"] == pytest.approx(8 * 0.7e9)


def test_each_cpus_clock_on_a_small_host(server: Tree) -> None:
    clocks.add_cpufreq(server, SERVER)
    observed = read(opened(cpufreq.sources(server.roots), "cpufreq"))
    assert observed["cpu.frequency{3}"] == 3_197_000_000
    assert len(observed) == 8
    limits = opened(cpufreq.sources(server.roots), "frequency-limits")
    server.write("sys/devices/system/cpu/cpufreq/policy2/scaling_max_freq", 1_200_000)
    assert read(limits) == {
        "cpu.frequency.maximum{0}": 3_800_000_000,
        "cpu.frequency.maximum{1}": 1_200_000_000,  # a policy of its CPUs is held down
    }


def test_a_large_host_reads_only_some_clocks_in_each_read(tmp_path: Path) -> None:
    large = Machine(cpus=192, sockets=2)
    tree = Tree(tmp_path)
    add_machine(tree, large)
    clocks.add_cpufreq(tree, large)
    source = opened(cpufreq.sources(tree.roots), "cpufreq")
    first = read(source)
    assert first == {
        "cpu.frequency.mean": 3_104_500_000,
        "cpu.frequency.lowest": 3_009_000_000,
        "cpu.frequency.highest": 3_200_000_000,
    }
    tree.write("sys/devices/system/cpu/cpufreq/policy17/scaling_cur_freq", 800_000)
    lowest = [read(source)["cpu.frequency.lowest"] for _ in range(3)]
    assert sorted(set(lowest)) == [800_000_000, 3_009_000_000] or set(lowest) == {800_000_000}
    assert lowest[-1] == 800_000_000  # seen within three seconds


def test_a_new_cpu_is_learned(server: Tree) -> None:
    clocks.add_cpufreq(server, SERVER)
    source = opened(cpufreq.sources(server.roots), "cpufreq")
    server.write("sys/devices/system/cpu/cpu8/cpufreq/scaling_cur_freq", 1000)
    server.write("sys/devices/system/cpu/online", "0-8\n")
    with pytest.raises(LayoutChanged):
        source.read()
    assert read(source)["cpu.frequency{8}"] == 1_000_000


def test_throttling_is_counted_once_a_core_and_once_a_package(server: Tree) -> None:
    clocks.add_throttling(server, SERVER, hot=1)
    package = steps(opened(cpufreq.sources(server.roots), "throttling"), server, 2.0)
    assert package["cpu.thermal_throttle.package{1}"] == 20
    assert package["cpu.thermal_throttle.package_time{1}"] == 100e6
    assert package["cpu.thermal_throttle.package{0}"] == 0
    core = steps(opened(cpufreq.sources(server.roots), "core-throttling"), server, 2.0)
    assert core["cpu.thermal_throttle.core{1}"] == 2 * 20  # two cores, four threads
    assert core["cpu.thermal_throttle.core{0}"] == 0


def test_joules_a_second_are_watts_even_as_the_counter_wraps(server: Tree) -> None:
    powercap.add_powercap(server, 2, watts=250.0, start=powercap.RANGE - 300_000_000)
    powercap.add_mmio_zone(server)
    source = opened(energy.sources(server.roots), "energy")
    for _ in range(3):
        observed = steps(source, server)
        assert observed == pytest.approx(
            {
                "cpu.energy.package{0}": 250.0,
                "cpu.energy.package{1}": 250.0,
                "memory.energy{0}": 25.0,
                "memory.energy{1}": 25.0,
            }
        )
    assert int(server.text("sys/class/powercap/intel-rapl:0/energy_uj")) < powercap.RANGE // 2


def test_zones_of_a_module_that_is_loaded_later_are_read(server: Tree) -> None:
    powercap.add_powercap(server, dram=False)
    source = opened(energy.sources(server.roots), "energy")
    assert set(read_values(source)) == {"cpu.energy.package{0}"}
    powercap.add_powercap(server, 2, dram=False)
    for _ in range(2 * CHECK_EVERY):
        labels = set(read_values(source))
    assert labels == {"cpu.energy.package{0}", "cpu.energy.package{1}"}


def test_the_dies_of_a_package_are_added(server: Tree) -> None:
    for zone, (name, watts) in enumerate(
        [("package-0-die-0", 100), ("package-0-die-1", 250), ("package-1-die-0", 50)]
    ):
        powercap.add_zone(server, f"intel-rapl:{zone}", name, watts)
        powercap.add_zone(server, f"intel-rapl:{zone}:0", "dram", watts / 10)
    observed = steps(opened(energy.sources(server.roots), "energy"), server)
    assert observed == pytest.approx(
        {
            "cpu.energy.package{0}": 350.0, "memory.energy{0}": 35.0,
            "cpu.energy.package{1}": 50.0, "memory.energy{1}": 5.0,
        }
    )  # fmt: skip


@pytest.mark.parametrize("second", ["psys", "psys-1"])
def test_two_platforms_stay_apart(server: Tree, second: str) -> None:
    powercap.add_zone(server, "intel-rapl:0", "psys", 400)
    powercap.add_zone(server, "intel-rapl:1", second, 300)
    observed = steps(opened(energy.sources(server.roots), "energy"), server)
    assert observed == pytest.approx(
        {"cpu.energy.platform": 400.0, "cpu.energy.platform{1}": 300.0}
    )


def test_a_die_that_cannot_be_read_makes_the_package_missing(server: Tree) -> None:
    for die in (0, 1):
        powercap.add_zone(server, f"intel-rapl:{die}", f"package-0-die-{die}", 100)
    source = opened(energy.sources(server.roots), "energy")
    assert read(source).keys() == {"cpu.energy.package{0}"}
    server.write("sys/devices/virtual/powercap/intel-rapl/intel-rapl:1/energy_uj", "")
    assert read(source) == {}


def test_a_reloaded_module_costs_a_sample(server: Tree) -> None:
    powercap.add_powercap(server, start=5_000_000)
    source = opened(energy.sources(server.roots), "energy")
    read(source)
    server.write("sys/devices/virtual/powercap/intel-rapl/intel-rapl:0/energy_uj", 7)
    assert "cpu.energy.package{0}" not in read(source)
    server.write("sys/devices/virtual/powercap/intel-rapl/intel-rapl:0/energy_uj", 9_000_007)
    assert read(source)["cpu.energy.package{0}"] == pytest.approx(9.0)


@examples(200)
@given(st.integers(1, 2**40), st.data())
def test_what_was_gained_is_found_across_the_wrap(limit: int, data: st.DataObject) -> None:
    last = data.draw(st.integers(0, limit))
    gained = data.draw(st.integers(0, limit // 2))
    assert energy.unwrapped(last, (last + gained) % (limit + 1), limit) == gained


def test_a_host_without_zones_has_a_reason(server: Tree) -> None:
    with pytest.raises(Unsupported, match="no energy counter"):
        opened(energy.sources(server.roots), "energy")


def test_package_and_core_temperatures_of_intel(server: Tree) -> None:
    sensors.add_nvme_sensor(server, "0000:50:00.0", "nvme0")
    sensors.add_coretemp(server, SERVER)
    sensors.add_nic_sensor(server, "0000:18:00.0")
    assert read(opened(hwmon.sources(server.roots), "hwmon")) == {
        "cpu.temperature.package{0}": 58.0,
        "cpu.temperature.package{1}": 59.0,
    }
    assert read(opened(hwmon.sources(server.roots), "sensors")) == pytest.approx(
        {
            "cpu.temperature.core{0}": 49.1,  # the hotter of two
            "cpu.temperature.core{1}": 49.1,
            "storage.temperature{nvme0/Composite}": 38.85,
            "network.temperature{0000_18_00.0/asic}": 61.0,
            "network.temperature{0000_18_00.0/Module0}": 43.0,
        }
    )


def test_the_offset_of_a_control_temperature_is_no_temperature(server: Tree) -> None:
    sensors.add_k10temp(server, offset=27_000)
    assert read(opened(hwmon.sources(server.roots), "hwmon")) == {
        "cpu.temperature.package{0}": 53.0
    }


def test_packages_of_amd_are_numbered_by_the_order_of_their_devices(server: Tree) -> None:
    sensors.add_k10temp(server, sockets=2)
    assert read(opened(hwmon.sources(server.roots), "hwmon")) == {
        "cpu.temperature.package{0}": 53.0,
        "cpu.temperature.package{1}": 54.0,
    }
    assert read(opened(hwmon.sources(server.roots), "sensors")) == {
        "cpu.temperature.core{0}": 49.75,
        "cpu.temperature.core{1}": 49.75,
    }


def test_power_meters_are_named_as_the_firmware_does(server: Tree) -> None:
    sensors.add_power_meters(server)
    observed = read(opened(hwmon.sources(server.roots), "sensors"))
    assert len(observed) == 4
    assert observed["cpu.power{power_meter-1/Grace_Power_Socket_0}"] == 245.0


def test_the_power_of_a_gpu_is_not_that_of_the_cpu(server: Tree) -> None:
    files = {"power1_label": "PPT\n", "power1_average": 612_000_000, "temp1_input": 41_000}
    sensors.add_chip(server, "pci0000:00/0000:05:00.0", "amdgpu", files)
    observed = read(opened(hwmon.sources(server.roots), "sensors"))
    assert observed == {"gpu.temperature.sensor{0000_05_00.0/temp1}": 41.0}


def test_a_sensor_that_fails_leaves_its_column_empty(server: Tree) -> None:
    sensors.add_k10temp(server, sockets=2)
    source = opened(hwmon.sources(server.roots), "hwmon")
    (server.root / "sys/devices/pci0000:00/0000:00:19.3/hwmon/hwmon1/temp1_input").write_text("")
    assert read(source) == {"cpu.temperature.package{0}": 53.0}


def test_a_clock_of_zero_is_unknown(tmp_path: Path) -> None:
    for cpu, clock in ((0, "0"), (1, "2400000")):
        folder = tmp_path / f"devices/system/cpu/cpu{cpu}/cpufreq"
        folder.mkdir(parents=True)
        (folder / "scaling_cur_freq").write_text(f"{clock}\n")
    source = opened(cpufreq.sources(Roots(sys=tmp_path)), "cpufreq")
    assert read(source) == {"cpu.frequency{1}": 2.4e9}
