"""Host sources on other kernels and machines, and with hot-plugged devices."""

from __future__ import annotations

from pathlib import Path

import pytest

from reveal_collector.kernel_interfaces.errors import LayoutChanged, Unsupported
from reveal_collector.readers.net_paths import net_file
from reveal_collector.readers.source import AdaptiveSource, Roots, Source
from reveal_collector.registry import FACTORIES
from support import big_host


def source_of(roots: Roots, name: str) -> Source:
    by_name = {source.name: source for factory in FACTORIES for source in factory(roots)}
    by_name[name].open()
    return by_name[name]


def values(source: Source) -> dict[str, float]:
    return {
        channel.label: value * channel.scale
        for channel, value in zip(source.channels, source.read(), strict=True)
        if value is not None
    }


@pytest.fixture
def roots(tmp_path: Path) -> Roots:
    return big_host.write(tmp_path)


def test_stat_without_the_younger_columns(roots: Roots) -> None:
    observed = values(source_of(roots, "stat"))
    assert observed["cpu.user{6}"] == 106e7
    assert observed["cpu.softirq{7}"] == 7e7
    assert "cpu.steal" not in observed
    assert "cpu.user{5}" not in observed
    assert (observed["cpu.interrupts.total"], observed["cpu.context_switches"]) == (99, 12345)


def test_disks_of_three_kernel_generations(roots: Roots) -> None:
    observed = values(source_of(roots, "diskstats"))
    disks = {label.rpartition("{")[2].rstrip("}") for label in observed}
    assert disks == {"sda", "nvme0n1", "md0"}  # no partition, no unused loop device
    assert "storage.disk.discards{sda}" not in observed
    assert observed["storage.disk.discards{nvme0n1}"] == 5
    assert observed["storage.disk.flush_time{md0}"] == 4e6
    assert observed["storage.disk.queue_time{sda}"] == 13e6


def test_disk_that_sysfs_does_not_list_is_a_partition(roots: Roots) -> None:
    (roots.sys / "block/sda").mkdir(parents=True)
    observed = values(source_of(roots, "diskstats"))
    assert {label.rpartition("{")[2] for label in observed} == {"sda}"}


def test_an_unused_device_appears_with_its_first_request(roots: Roots) -> None:
    source = source_of(roots, "diskstats")
    path = roots.proc / "diskstats"
    path.write_text(path.read_text().replace("loop0 0 0 0", "loop0 1 0 8"))
    with pytest.raises(LayoutChanged):
        source.read()
    observed = values(source)
    assert observed["storage.disk.read_bytes{loop0}"] == 8 * 512
    assert observed["storage.disk.reads{sda}"] == 10


def test_disk_that_vanishes_leaves_the_rest(roots: Roots) -> None:
    source = source_of(roots, "diskstats")
    path = roots.proc / "diskstats"
    path.write_text("\n".join(path.read_text().splitlines()[2:]))
    with pytest.raises(LayoutChanged):
        source.read()
    assert values(source)["storage.disk.reads{nvme0n1}"] == 10


def test_interrupts_of_a_large_host(roots: Roots) -> None:
    source = source_of(roots, "interrupts")
    observed = values(source)
    assert observed["cpu.interrupts.irq{16:i801_smbus}"] == 7  # the first of a shared line
    assert observed["cpu.interrupts.irq{100:arch_timer}"] == 7
    assert "cpu.interrupts.irq{99:nvme0q0}" not in observed
    assert observed["cpu.interrupts.errors"] == 3  # one column, of no CPU
    assert observed["cpu.interrupts{6}"] == 4
    path = roots.proc / "interrupts"
    path.write_text(path.read_text().replace(" 99: 0 0", " 99: 0 2"))
    with pytest.raises(LayoutChanged):
        source.read()
    assert values(source)["cpu.interrupts.irq{99:nvme0q0}"] == 2
    assert values(source)["cpu.interrupts{1}"] == 6


def test_interrupts_that_move_are_followed(roots: Roots) -> None:
    source = source_of(roots, "interrupts")
    path = roots.proc / "interrupts"
    path.write_text(path.read_text().replace("LOC: 1", "LOC: 8"))
    observed = values(source)
    assert observed["cpu.interrupts.irq{LOC}"] == 14
    assert observed["cpu.interrupts{0}"] == 11


@pytest.mark.parametrize("name", ["stat", "softirqs", "interrupts", "cpuclock", "cpufreq"])
def test_cpu_that_comes_back(roots: Roots, tmp_path: Path, name: str) -> None:
    source = source_of(roots, name)
    before = {channel.label for channel in source.channels}
    big_host.write(tmp_path, tuple(range(8)))
    with pytest.raises(LayoutChanged):
        source.read()
    new = {channel.label for channel in source.channels} - before
    assert new
    assert all("5}" in label for label in new)
    assert len(source.read()) == len(source.channels)


def test_softirqs_of_scattered_cpus(roots: Roots) -> None:
    observed = values(source_of(roots, "softirqs"))
    assert observed["network.softirqs.percpu{NET_RX/7}"] == 7
    assert observed["network.softirqs{NET_RX}"] == sum(big_host.CPUS)
    assert observed["cpu.softirqs{TIMER}"] == 7


def test_schedstat_is_the_clock_where_it_exists(roots: Roots) -> None:
    observed = values(source_of(roots, "cpuclock"))
    assert observed["cpu.run_time{7}"] == 1007
    assert observed["cpu.run_delay{6}"] == 56


def test_cpuacct_is_the_clock_of_cgroup_v1(roots: Roots) -> None:
    (roots.proc / "schedstat").unlink()
    path = roots.cgroup / "cpu,cpuacct" / "cpuacct.usage_percpu"
    path.parent.mkdir(parents=True)
    path.write_text("500 0 700 \n")
    source = source_of(roots, "cpuclock")
    assert values(source) == {"cpu.run_time{0}": 500, "cpu.run_time{2}": 700}
    path.write_text("500 1 700 \n")  # a CPU's first work
    with pytest.raises(LayoutChanged):
        source.read()
    assert values(source)["cpu.run_time{1}"] == 1


@pytest.mark.parametrize("folder", ["", "unified"])
def test_cpu_stat_is_the_clock_of_cgroup_v2(roots: Roots, folder: str) -> None:
    (roots.proc / "schedstat").unlink()
    path = roots.cgroup / folder / "cpu.stat"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("usage_usec 12\nuser_usec 7\n")
    assert values(source_of(roots, "cpuclock")) == {"cpu.run_time": 12_000}


def test_vmstat_units_differ_within_the_file(roots: Roots) -> None:
    observed = values(source_of(roots, "vmstat"))
    assert observed["memory.vm.nr_free_pages"] == 125000 * 4096
    assert observed["memory.vm.pgpgin"] == 100 * 1024
    assert observed["memory.vm.allocstall"] == 3  # as before 4.10, not by zone


def test_numa_nodes_are_separated(roots: Roots) -> None:
    observed = values(source_of(roots, "numa"))
    assert (observed["memory.numa.hit{0}"], observed["memory.numa.hit{1}"]) == (1, 2)
    assert observed["memory.numa.mem_total{1}"] == 400000 * 1024
    assert observed["memory.numa.huge_pages_total{0}"] == 8


def test_softnet_without_cpu_numbers(roots: Roots) -> None:
    observed = values(source_of(roots, "softnet"))
    assert observed["network.softnet.processed{0}"] == 16
    assert observed["network.softnet.dropped"] == 70
    assert "network.softnet.backlog" not in observed


def test_settings_of_protocols_are_no_channels(roots: Roots) -> None:
    observed = values(source_of(roots, "snmp"))
    assert observed == {"network.tcp.curr_estab": 4, "network.tcp.retrans_segs": 5}


def test_interface_that_wakes_up(roots: Roots) -> None:
    source = source_of(roots, "netdev")
    assert values(source)["network.nic.tx_drop{ib0}"] == 12
    path = roots.proc / "net/dev"
    path.write_text(path.read_text().replace("sit0: 0 0", "sit0: 60 1"))
    with pytest.raises(LayoutChanged):
        source.read()
    assert values(source)["network.nic.rx_bytes{sit0}"] == 60


def test_clocks_and_throttling(roots: Roots) -> None:
    observed = values(source_of(roots, "cpufreq"))
    assert observed["cpu.frequency{7}"] == 1_000_007_000
    cores = source_of(roots, "core-throttling")
    before = values(cores)["cpu.thermal_throttle.core{0}"]
    (roots.sys / "devices/system/cpu/cpu6/thermal_throttle/core_throttle_count").write_text("9\n")
    assert values(cores)["cpu.thermal_throttle.core{0}"] == before + 3


def test_a_file_that_goes_leaves_its_column_empty(roots: Roots) -> None:
    folder = roots.sys / "class/net/eth0"
    folder.mkdir(parents=True)
    (folder / "carrier_changes").write_text("3\n")
    (folder / "operstate").write_text("lowerlayerdown\n")
    source = source_of(roots, "nic")
    assert values(source) == {
        "network.nic.carrier_changes{eth0}": 3,
        "network.nic.up{eth0}": 0,
    }
    (folder.parent / "eth1").mkdir()
    (folder.parent / "eth1" / "operstate").write_text("up\n")
    with pytest.raises(LayoutChanged):
        source.read()
    assert values(source)["network.nic.up{eth1}"] == 1


def test_the_hosts_namespace_is_read_through_pid_1(roots: Roots) -> None:
    assert net_file(roots, "dev") == roots.proc / "net/dev"
    first = roots.proc / "1/net/dev"
    first.parent.mkdir(parents=True)
    first.write_text("")
    assert net_file(roots, "dev") == roots.proc / "net/dev"  # there, but may not be read
    first.write_text(big_host.NET_DEV)
    assert net_file(roots, "dev") == first


@pytest.mark.parametrize("name", ["psi", "snmp6", "sockstat6", "buddyinfo", "loadavg"])
def test_files_missing_in_this_kernel_have_a_reason(roots: Roots, name: str) -> None:
    with pytest.raises(Unsupported, match="does not exist"):
        source_of(roots, name)


def test_load_averages_in_another_form_are_stated(roots: Roots) -> None:
    (roots.proc / "loadavg").write_text("0.03 0.15 - 2/90 7993\n")
    source = source_of(roots, "loadavg")
    assert values(source) == {
        "cpu.load.1m": 0.03, "cpu.load.5m": 0.15, "cpu.load.running": 2, "cpu.load.tasks": 90
    }  # fmt: skip
    assert isinstance(source, AdaptiveSource)
    [phrase] = source.degraded
    assert "1 line of" in phrase


def test_pressure_without_cpu_file_still_gives_the_others(roots: Roots) -> None:
    folder = roots.proc / "pressure"
    folder.mkdir()
    (folder / "memory").write_text(
        "some avg10=0.00 avg60=0.00 avg300=0.00 total=7\n"
        "full avg10=0.00 avg60=0.00 avg300=0.00 total=5\n"
    )
    (folder / "irq").write_text("full avg10=0.00 avg60=0.00 avg300=0.00 total=9\n")
    assert values(source_of(roots, "psi")) == {
        "memory.pressure.some": 7000,
        "memory.pressure.full": 5000,
        "cpu.pressure.irq": 9000,
    }


def test_a_protocol_of_a_younger_kernel_is_left_out(roots: Roots) -> None:
    path = roots.proc / "net/netstat"
    path.write_text(path.read_text() + "QuicExt: Streams \xff\nQuicExt: 3 4\n")
    assert values(source_of(roots, "netstat")) == {
        "network.tcp_ext.syncookies_sent": 1,
        "network.tcp_ext.tcp_timeouts": 2,
    }


def test_a_counter_without_a_name_is_left_out(roots: Roots) -> None:
    (roots.proc / "net/netstat").write_text("TcpExt: TW :\nTcpExt: 1 2\n")
    assert values(source_of(roots, "netstat")) == {"network.tcp_ext.tw": 1}


def test_a_folder_that_goes_and_comes_back(roots: Roots) -> None:
    folder = roots.sys / "class/net"
    (folder / "eth0").mkdir(parents=True)
    (folder / "eth0/operstate").write_text("up\n")
    source = source_of(roots, "nic")
    folder.rename(folder.with_name("away"))
    with pytest.raises(OSError, match="net"):
        source.read()
    folder.with_name("away").rename(folder)
    assert values(source) == {"network.nic.up{eth0}": 1}
