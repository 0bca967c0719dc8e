"""Samples as Prometheus metrics: names, units, bounds, and nothing counted twice."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import pytest
from prometheus_client.core import Metric

from reveal_collector.exporter.samples import LEFT_OUT, SampleExporter, family_name, metric_families
from reveal_collector.readers.raw_slice import MISSING, RawSlice
from reveal_contract.catalogue import find, rows
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.metric import Kind, Lane

FAST = (
    Channel("cpu.user", "", Kind.COUNTER, 1e7),
    Channel("cpu.user", "0", Kind.COUNTER, 1e7),
    Channel("cpu.user", "1", Kind.COUNTER, 1e7),
    Channel("memory.mem_free", "", Kind.GAUGE, 1024.0),
    Channel("storage.disk.read_bytes", "nvme0n1", Kind.COUNTER, 512.0),
)
SLOW = (Channel("network.nic.up", "eth0", Kind.STATE, 1.0, Lane.SLOW),)
TABLE = ChannelTable(FAST, SLOW)
LAST = [300, 100, 200, 7, -1]


def raw(last: Sequence[int] = LAST, slow: Sequence[int] = (1,)) -> RawSlice:
    fast = array("q", [*([0] * len(FAST)), *last])
    return RawSlice(1, 0, TABLE, fast, array("q", slow), (0, 0))


def scraped(slice_: RawSlice | None, most: int = 100) -> dict[str, Metric]:
    return {family.name: family for family in SampleExporter(lambda: slice_, most).collect()}


def test_the_last_row_in_base_units() -> None:
    found = scraped(raw())
    (sample,) = found["reveal_cpu_user_seconds"].samples
    assert (sample.name, sample.value) == ("reveal_cpu_user_seconds_total", pytest.approx(3.0))
    assert found["reveal_memory_mem_free_bytes"].samples[0].value == 7 * 1024
    (up,) = found["reveal_network_nic_up"].samples
    assert (up.labels, up.value) == ({"nic": "eth0"}, 1)


def test_a_sum_over_cpus_does_not_count_the_host_twice() -> None:
    by_cpu = scraped(raw())["reveal_cpu_user_by_cpu_seconds"].samples
    assert {sample.labels["cpu"]: round(sample.value, 9) for sample in by_cpu} == {"0": 1, "1": 2}


def test_counters_over_two_to_the_63_are_not_negative() -> None:
    (sample,) = scraped(raw())["reveal_storage_disk_read_bytes"].samples
    assert sample.value == (2**64 - 1) * 512.0


def test_what_was_not_read_is_absent() -> None:
    found = scraped(raw([MISSING, 1, MISSING, 1, 1], [MISSING]))
    assert not found["reveal_cpu_user_seconds"].samples
    assert len(found["reveal_cpu_user_by_cpu_seconds"].samples) == 1
    assert not found["reveal_network_nic_up"].samples


def test_a_level_outside_of_its_bounds_is_absent() -> None:
    below_zero = scraped(raw([300, 100, 200, -128, 1]))
    assert not below_zero["reveal_memory_mem_free_bytes"].samples
    assert below_zero["reveal_storage_disk_read_bytes"].samples


def test_before_the_first_slice_there_is_nothing() -> None:
    assert scraped(None) == {}


def test_series_are_limited_and_the_excess_is_counted() -> None:
    found = scraped(raw(), most=4)
    assert "reveal_cpu_user_seconds" in found
    assert "reveal_cpu_user_by_cpu_seconds" not in found
    assert found[LEFT_OUT].samples[0].value == 2


@pytest.mark.parametrize("most", range(8))
def test_exported_and_omitted_series_are_all_channels(most: int) -> None:
    families, left_out = metric_families(TABLE, most)
    exported = sum(len(family.series) for family in families)
    assert exported <= most
    assert exported + left_out == len(FAST) + len(SLOW)


def test_another_table_is_another_layout() -> None:
    slices = [raw()]
    exporter = SampleExporter(lambda: slices[-1], 100)
    assert "reveal_cpu_user_seconds" in {family.name for family in exporter.collect()}
    table = ChannelTable((FAST[3],), ())
    slices.append(RawSlice(2, 0, table, array("q", [5]), array("q"), (0,)))
    assert {family.name for family in exporter.collect()} == {
        "reveal_memory_mem_free_bytes", LEFT_OUT,
    }  # fmt: skip


def test_every_metric_has_a_name_of_its_own() -> None:
    names: dict[tuple[str, Kind], str] = {}
    for row in rows():
        for instance in ("", "0"):
            name, _ = family_name(row, Channel(row.name, instance, row.kind))
            assert names.setdefault((name, row.kind), row.name) == row.name


@pytest.mark.parametrize(
    ("metric", "instance", "name"),
    [
        ("cpu.user", "", "reveal_cpu_user_seconds"),
        ("storage.disk.read_bytes", "sda", "reveal_storage_disk_read_bytes"),
        ("cpu.interrupts.total", "", "reveal_cpu_interrupts_total_now"),
        ("memory.huge_pages_total", "", "reveal_memory_huge_pages_total_now"),
        ("memory.s_reclaimable", "", "reveal_memory_slab_reclaimable_bytes"),
        ("network.nic.speed", "eth0", "reveal_network_nic_speed_bytes_per_second"),
        ("cpu.softirqs", "NET_RX", "reveal_cpu_softirqs"),
        ("network.tcp.retransmit_share", "", "reveal_network_tcp_retransmit_share_ratio"),
    ],
)
def test_names(metric: str, instance: str, name: str) -> None:
    assert family_name(find(metric), Channel(metric, instance))[0] == name
