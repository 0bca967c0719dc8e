"""The catalogue's rows are complete, consistent, and use the field's names."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveal_contract import catalogue
from reveal_contract.catalogue import UnknownMetricError, find
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.metric import Capacity, Harm, Kind, Lane, Metric, Subsystem
from reveal_contract.names import snake

ROWS = {row.name: row for row in catalogue.rows()}


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS.keys())
def test_row_is_complete(row: Metric) -> None:
    assert re.fullmatch(r"[a-z0-9_.]+", row.name)
    assert row.unit
    assert row.origin or row.source == "own"
    assert row.quantum > 0
    assert len(row.meaning.split()) >= 2
    assert row.meaning[0].isupper()
    assert find(row.name) is row


# quantities and their one unit; every other metric is a count whose name has the counted thing
MEASURES = {
    "ns", "bytes", "bytes/s", "bits/s", "events/s", "Hz", "ppm", "percent", "celsius", "joules",
    "watts", "transfers/s",
}  # fmt: skip
OTHER_SPELLINGS = {
    "s", "ms", "us", "seconds", "sectors", "jiffies", "b", "kb", "mb", "gb", "kib", "mib", "byte",
    "bit", "hz", "khz", "mhz", "c", "degrees", "j", "uj", "w", "mw", "watt", "joule", "ratio",
    "share", "permille",
}  # fmt: skip


def test_a_quantity_has_its_base_unit() -> None:
    for row in ROWS.values():
        thing = row.unit.isalnum() and row.unit.casefold() not in OTHER_SPELLINGS
        assert row.unit in MEASURES or thing, f"{row.name}: {row.unit}"


def test_every_row_is_announced_and_understood() -> None:
    channels = tuple(Channel(row.name, "x", row.kind, 1.0, row.lane) for row in ROWS.values())
    table = ChannelTable(channels, ())
    assert ChannelTable.from_json(table.to_json()) == table


@pytest.mark.parametrize(
    ("name", "harm"),
    [
        ("cpu.pressure.some", Harm.HIGHER),
        ("cpu.procs_running", Harm.HIGHER),
        ("cpu.steal", Harm.HIGHER),
        ("cpu.user", Harm.NEITHER),
        ("cpu.context_switches", Harm.NEITHER),
        ("memory.mem_available", Harm.LOWER),
        ("memory.mem_free", Harm.NEITHER),
        ("memory.mlocked", Harm.HIGHER),
        ("memory.vm.allocstall_movable", Harm.HIGHER),
        ("memory.vm.pgscan_direct", Harm.HIGHER),
        ("memory.vm.thp_file_fallback", Harm.HIGHER),
        ("memory.vm.pgalloc_normal", Harm.NEITHER),
        ("storage.disk.queue_time", Harm.HIGHER),
        ("storage.disk.read_bytes", Harm.NEITHER),
        ("network.tcp_ext.tcpdsack_recv", Harm.HIGHER),
        ("network.tcp_ext.tcp_delivered", Harm.NEITHER),
        ("network.tcp_ext.listen_drops", Harm.HIGHER),
        ("network.udp.rcvbuf_errors", Harm.HIGHER),
        ("network.udp6.in_errors", Harm.HIGHER),
        ("network.ip.in_receives", Harm.NEITHER),
        ("network.nic.rx_drop", Harm.HIGHER),
        ("network.nic.rx_bytes", Harm.NEITHER),
    ],
)
def test_direction_that_hurts(name: str, harm: Harm) -> None:
    assert find(name).harm is harm


@pytest.mark.parametrize(
    ("name", "subsystem"),
    [
        ("cpu.iowait", Subsystem.STORAGE),
        ("cpu.softirq", Subsystem.NETWORK),
        ("storage.procs_blocked", Subsystem.STORAGE),
        ("memory.dirty", Subsystem.STORAGE),
        ("memory.numa.dirty", Subsystem.STORAGE),
        ("memory.vm.nr_dirty", Subsystem.STORAGE),
        ("memory.vm.pgpgout", Subsystem.STORAGE),
        ("memory.vm.pgscan_kswapd", Subsystem.MEMORY),
        ("memory.tlb_shootdowns", Subsystem.MEMORY),
        ("network.softirqs", Subsystem.NETWORK),
        ("storage.softirqs", Subsystem.STORAGE),
        ("cpu.softirqs", Subsystem.CPU),
    ],
)
def test_subsystem(name: str, subsystem: Subsystem) -> None:
    assert find(name).subsystem is subsystem


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("memory.vm.nr_mlock", "memory.mlocked"),
        ("memory.vm.nr_zone_unevictable", "memory.unevictable"),
        ("memory.vm.nr_free_pages", "memory.mem_free"),
        ("memory.vm.nr_hugetlb", "memory.huge_pages_total"),
        ("memory.hugetlb", "memory.hugepages.numa.total"),
        ("memory.numa.mlocked", "memory.mlocked"),
        ("memory.numa.huge_pages_total", "memory.huge_pages_total"),
        ("memory.pressure.some", "memory.pressure.full"),
        ("network.trace.tcp_retransmit_skb", "network.tcp.retrans_segs"),
        ("cpu.load.running", "cpu.procs_running"),
    ],
)
def test_aliases_of_a_metric_share_its_group(name: str, other: str) -> None:
    assert find(name).metric_group == find(other).metric_group


def test_families_are_named_after_a_metric_or_a_group_of_them() -> None:
    for row in ROWS.values():
        if not row.family or row.name.startswith(row.family):
            continue
        prefix = f"{row.family}."
        assert _known(row.family) or any(name.startswith(prefix) for name in ROWS), row.name


def _known(name: str) -> bool:
    try:
        return bool(find(name))
    except UnknownMetricError:
        return False


@pytest.mark.parametrize(
    ("protocol", "kernel_name"),
    [
        ("TcpExt", "TCPLostRetransmit"),
        ("TcpExt", "TCPSACKReneging"),
        ("TcpExt", "TCPSackShiftFallback"),
        ("TcpExt", "TCPDSACKOfoRecv"),
        ("TcpExt", "DelayedACKs"),
        ("TcpExt", "TcpTimeoutRehash"),
        ("IpExt", "InECT0Pkts"),
        ("MPTcpExt", "MPJoinSynAckHMacFailure"),
        ("Tcp", "RetransSegs"),
        ("UdpLite", "RcvbufErrors"),
        ("Icmp6", "InMLDv2Reports"),
    ],
)
def test_protocol_counters_are_known_as_nstat_calls_them(protocol: str, kernel_name: str) -> None:
    row = find(f"network.{snake(protocol)}.{snake(kernel_name)}")
    assert row.origin == protocol + kernel_name


def test_memory_levels_are_a_share_of_the_node() -> None:
    row = find("memory.vm.nr_anon_pages")
    assert (row.kind, row.capacity, row.quantum) == (Kind.GAUGE, Capacity.MEMORY, 1 / 512)


@pytest.mark.parametrize(
    "key", ["nr_dirtied", "nr_written", "nr_vmscan_write", "nr_foll_pin_acquired"]
)
def test_events_named_like_levels_are_counters(key: str) -> None:
    assert find(f"memory.vm.{key}").kind is Kind.COUNTER


def test_an_unknown_key_of_a_known_file_has_a_row() -> None:
    assert find("memory.vm.pgsteal_someday").harm is Harm.HIGHER
    assert find("memory.some_new_level").origin == "some_new_level"
    assert find("network.tcp_ext.tcp_new_drop").origin == "TcpExtTCPNewDrop"
    assert find("network.sockets.tcp6.inuse").lane is Lane.SLOW


@pytest.mark.parametrize(
    "name", ["", "cpu", "cpu.", "memory.", "memory.vm.", "memory.numa.", "memory.a.b.c",
             "network.tcp.", "network.nothing.x", "network.sockets.tcp.", "disk.x"]
)  # fmt: skip
def test_what_no_file_gives_is_unknown(name: str) -> None:
    with pytest.raises(UnknownMetricError):
        find(name)


@given(st.text(max_size=40))
def test_any_name_is_found_or_unknown(name: str) -> None:
    for prefix in ("", "memory.", "memory.vm.", "network.tcp_ext.", "network.sockets."):
        if _known(prefix + name):
            assert find(prefix + name).name == prefix + name
