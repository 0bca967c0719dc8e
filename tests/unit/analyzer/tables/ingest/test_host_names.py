"""The host and the subsystem from the column names of tables from other tools."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveal_analyzer.tables.ingest.host_names import HostMetric, split_hosts
from reveal_analyzer.tables.ingest.subsystems import subsystem_of
from reveal_contract import catalogue
from reveal_contract.metric import Subsystem
from support.property_tests import examples


@pytest.mark.parametrize(
    ("name", "area"),
    [
        ("cpu_r", Subsystem.CPU),
        ("load_15", Subsystem.CPU),
        ("%usr", Subsystem.CPU),
        ("mem_shmem", Subsystem.MEMORY),
        ("si", Subsystem.MEMORY),
        ("AnonHugePages", Subsystem.MEMORY),
        ("node_memory_MemFree_bytes", Subsystem.MEMORY),
        ("disk_svc", Subsystem.STORAGE),
        ("cpu_iowait", Subsystem.STORAGE),
        ("node_disk_read_bytes_total{device=sda}", Subsystem.STORAGE),
        ("eth1_fi", Subsystem.NETWORK),
        ("active_opens", Subsystem.NETWORK),
        ("cpu.softirq", Subsystem.NETWORK),
        ("TcpRetransSegs", Subsystem.NETWORK),
        ("gpu0_mem_used", Subsystem.GPU),
        ("DCGM_FI_DEV_GPU_UTIL", Subsystem.GPU),
        ("m17", None),
        ("", None),
        ("value", None),
    ],
)
def test_a_name_gives_the_subsystem_or_nothing(name: str, area: Subsystem | None) -> None:
    assert subsystem_of(name) is area


def test_names_of_reveal_are_found_in_the_catalogue() -> None:
    for row in catalogue.rows():
        assert subsystem_of(row.name) is row.subsystem
        assert subsystem_of(f"{row.name}{{x}}__mean") is row.subsystem


METRICS = ("cpu.user", "mem.free", "disk.reads", "net.rx")


@pytest.mark.parametrize(
    "pattern",
    [
        "{host}.{metric}", "{host}/{metric}", "{host}:{metric}", "{host}_{metric}",
        "{metric}@{host}", "{metric}.{host}", '{metric}{{instance="{host}:9100"}}',
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "hosts", [("n1", "n2", "n3"), ("gpu-a-01",), ("web-1", "db-1"), ("node17", "node18")]
)
def test_hosts_are_found_wherever_they_stand(pattern: str, hosts: tuple[str, ...]) -> None:
    columns = [pattern.format(host=host, metric=m) for host in hosts for m in METRICS]
    assert split_hosts(columns) == [
        HostMetric(host, metric) for host in hosts for metric in METRICS
    ]


def test_a_host_name_of_several_parts_is_a_single_host() -> None:
    columns = [f"gpu_node_{number:02d}_{m}" for number in (1, 2) for m in ("cpu", "mem", "disk")]
    assert {name.host for name in split_hosts(columns)} == {"gpu_node_01", "gpu_node_02"}


@pytest.mark.parametrize("name", ["{" * 1_000_000, "a" * 1_000_000, "{" + "a" * 1_000_000 + "}"])
def test_a_name_of_any_length_is_read_in_a_pass(name: str) -> None:
    """A name of 30 kB took 8 s, and one of a megabyte hours."""
    assert split_hosts([name, name + "x"])[0].host == ""


def test_labels_other_than_the_hosts_stay_with_the_metric() -> None:
    columns = [f'cpu{{instance="n{number}:9100",mode="user"}}' for number in (1, 2)]
    columns += [f'mem{{instance="n{number}:9100"}}' for number in (1, 2)]
    assert split_hosts(columns)[0] == HostMetric("n1", 'cpu{mode="user"}')


@pytest.mark.parametrize(
    "columns",
    [
        ["cpu0.user", "cpu0.sys", "cpu1.user", "cpu1.sys"],
        ["eth0_rx", "eth0_tx", "eth1_rx", "eth1_tx"],
        ["cpu.p50", "mem.p50", "cpu.p99", "mem.p99"],
        ["cpu_r", "load_1", "load_5", "mem_u", "disk_q"],
        ["m1", "m2", "m3"],
        ["n1.cpu", "n2.mem"],  # not the same metrics
        ["a1.rx", "a1.tx", "a2.rx", "a2.tx"],  # of one subsystem: cards, not hosts
        ["n1.cpu", "n1.cpu#2"],
        ["user_cpu-x", "system_cpu-x"],  # two columns are too few to decide
        [],
    ],
)
def test_what_is_not_evident_stays_a_name(columns: list[str]) -> None:
    assert split_hosts(columns) == [HostMetric("", column) for column in columns]


def test_columns_that_do_not_name_the_lone_host_are_its_own() -> None:
    columns = ["n7.cpu", "n7.mem", "n7.disk", "uptime"]
    assert split_hosts(columns) == [
        HostMetric("n7", name) for name in ("cpu", "mem", "disk", "uptime")
    ]
    twins = ["n7.cpu", "n7.mem", "n7.disk", "cpu"]
    assert split_hosts(twins) == [HostMetric("", name) for name in twins]


words = st.text(st.sampled_from("abn01-_./:@ {}=\"'é"), max_size=12)


@examples(200)
@given(st.lists(words, max_size=8, unique=True))
def test_columns_are_never_merged(columns: list[str]) -> None:
    result = split_hosts(columns)
    assert len(result) == len(columns)
    assert len(set(result)) == len(result)
