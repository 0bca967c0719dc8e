"""Every host source over the recorded tree of a 2-core virtual machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from reveal_collector.kernel_interfaces.errors import Unsupported
from reveal_collector.readers.source import Roots, Source
from reveal_collector.registry import FACTORIES
from reveal_contract import catalogue

TREE = Path(__file__).parents[3] / "fixtures/hosts/vm-2cpu"
ROOTS = Roots(TREE / "proc", TREE / "sys", TREE / "cgroup")
LIVE_ONLY = {
    "perf", "tracepoints", "qdisc", "tcpdiag", "msr", "smi", "cstates", "pmu", "uncore", "ethtool",
    "filesystems", "nvml", "nvml-state", "nvml-subjects",
}  # fmt: skip
# hardware a virtual machine has not
ABSENT = {
    "cpufreq", "frequency-limits", "throttling", "core-throttling", "cpuidle", "energy", "hwmon",
    "sensors", "edac", "pcie", "aer", "infiniband", "infiniband-errors", "amdgpu", "zram", "md",
    "swaps",
}  # fmt: skip


def opened(roots: Roots = ROOTS) -> dict[str, Source]:
    found = {}
    for source in (each for factory in FACTORIES for each in factory(roots)):
        try:
            source.open()
        except Unsupported as refusal:
            assert source.name in LIVE_ONLY | ABSENT, refusal.reason
        else:
            found[source.name] = source
    return found


@pytest.fixture(scope="module")
def sources() -> dict[str, Source]:
    return opened()


@pytest.fixture(scope="module")
def values(sources: dict[str, Source]) -> dict[str, float]:
    """Return values in the metric's base unit by channel label."""
    return {
        channel.label: value * channel.scale
        for source in sources.values()
        for channel, value in zip(source.channels, source.read(), strict=True)
        if value is not None
    }


def test_gives_the_channels_of_such_a_host(sources: dict[str, Source]) -> None:
    assert sum(len(source.channels) for source in sources.values()) >= 850


def test_labels_are_unique(sources: dict[str, Source]) -> None:
    labels = [each.label for source in sources.values() for each in source.channels]
    assert len(labels) == len(set(labels))


def test_channels_agree_with_the_catalogue(sources: dict[str, Source]) -> None:
    for source in sources.values():
        for each in source.channels:
            row = catalogue.find(each.metric)
            assert (each.kind, each.lane) == (row.kind, row.lane), each.label
            assert each.lane is source.lane, each.label


def test_rows_name_the_source_that_reads_them(sources: dict[str, Source]) -> None:
    for source in sources.values():
        for each in source.channels:
            named = catalogue.find(each.metric).source
            assert named == source.name.rstrip("6") or named == source.name, each.label


@pytest.mark.parametrize(
    ("label", "expected"),
    [
        ("memory.mem_total", 24684084 * 1024),
        ("memory.vm.nr_kernel_stack", "kB"),
        ("memory.huge_pages_total", 0),
        ("memory.numa.mem_total{0}", None),
        ("storage.disk.reads{vda}", 387322),
        ("storage.disk.read_bytes{vda}", 27289250 * 512),
        ("storage.disk.read_time{vda}", 130621e6),
        ("storage.disk.flush_time{vda}", 47e6),
        ("storage.disk.writes{loop0}", 171),
        ("network.nic.rx_bytes{eth0}", 331341993),
        ("network.nic.tx_packets{eth0}", 4995),
        ("network.nic.speed{eth0}", 10e9),
        ("network.nic.up{eth0}", 1),
        ("memory.hugepages.total{2048kB}", 0),
    ],
)
def test_values_in_base_units(
    values: dict[str, float], label: str, expected: float | str | None
) -> None:
    if expected == "kB":  # of all page counts of vmstat the one in kB
        lines = (TREE / "proc/vmstat").read_text().split()
        expected = int(lines[lines.index("nr_kernel_stack") + 1]) * 1024
    if expected is None:
        assert values[label] > 0
    else:
        assert values[label] == expected


def test_unused_devices_and_interfaces_wait_for_their_first_use(values: dict[str, float]) -> None:
    assert not [label for label in values if "{loop1}" in label or "{zram0}" in label]
    assert not [label for label in values if label.startswith("network.nic.rx") and "ifb0" in label]


def test_cpu_times_are_nanoseconds(values: dict[str, float]) -> None:
    ticks = (TREE / "proc/stat").read_text().split("\n")[0].split()
    assert values["cpu.user"] == int(ticks[1]) * 1e7
    assert values["cpu.softirq"] == int(ticks[7]) * 1e7
    assert values["cpu.user{0}"] + values["cpu.user{1}"] == pytest.approx(
        values["cpu.user"], rel=0.01
    )


@pytest.mark.parametrize(
    ("total", "part"),
    [
        ("network.softirqs{NET_RX}", "network.softirqs.percpu{NET_RX/%d}"),
        ("storage.softirqs{BLOCK}", "storage.softirqs.percpu{BLOCK/%d}"),
        ("network.softnet.processed", "network.softnet.processed{%d}"),
    ],
)
def test_sums_over_cpus(values: dict[str, float], total: str, part: str) -> None:
    assert values[total] == values[part % 0] + values[part % 1] > 0


def test_interrupts_by_source_and_by_cpu_are_the_same_interrupts(values: dict[str, float]) -> None:
    lines = (TREE / "proc/interrupts").read_text().splitlines()[1:]
    columns = [line.split()[1:3] for line in lines if line.split()[0] not in ("ERR:", "MIS:")]
    assert values["cpu.interrupts{0}"] == sum(int(row[0]) for row in columns)
    assert values["cpu.interrupts{1}"] == sum(int(row[1]) for row in columns)
    by_source = sum(v for k, v in values.items() if k.startswith("cpu.interrupts.irq"))
    own = values["memory.tlb_shootdowns"] + values["cpu.interrupts.thermal"]
    assert by_source + own == values["cpu.interrupts{0}"] + values["cpu.interrupts{1}"]
    assert values["cpu.interrupts.irq{36:virtio1-req.0}"] > 0
    assert "cpu.interrupts.irq{28:virtio0-config}" not in values  # never counted


def test_large_blocks_are_part_of_free_memory(values: dict[str, float]) -> None:
    zones = (TREE / "proc/buddyinfo").read_text().splitlines()
    normal = next(line.split() for line in zones if "Normal" in line)
    pages = [int(count) << order for order, count in enumerate(normal[4:])]
    assert values["memory.buddy.free{Normal/0}"] == sum(pages) * 4096
    assert values["memory.buddy.free_large{Normal/0}"] == sum(pages[9:]) * 4096


def test_pressure_is_nanoseconds(values: dict[str, float]) -> None:
    line = (TREE / "proc/pressure/io").read_text().split("\n")[0]
    assert values["storage.pressure.some"] == int(line.rpartition("=")[2]) * 1000
    assert "cpu.pressure.full" not in values


def test_protocol_counters_are_paired_by_name(values: dict[str, float]) -> None:
    lines = (TREE / "proc/1/net/netstat").read_text().splitlines()
    names, counts = lines[0].split(), lines[1].split()
    delivered = int(counts[names.index("TCPDelivered")])
    assert values["network.tcp_ext.tcp_delivered"] == delivered > 0


@pytest.mark.parametrize("name", sorted(LIVE_ONLY))
def test_what_asks_the_kernel_itself_refuses_a_recorded_tree(name: str) -> None:
    by_name = {source.name: source for factory in FACTORIES for source in factory(ROOTS)}
    with pytest.raises(Unsupported, match="machine itself"):
        by_name[name].open()
