"""InfiniBand and RoCE ports: words, sticky counters, lanes by price, interfaces on top."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveal_collector.devices import rdma
from reveal_collector.kernel_interfaces.errors import LayoutChanged, Unsupported
from reveal_collector.sources import infiniband
from reveal_contract.catalogue import find
from reveal_contract.metric import Harm, Lane
from support.hosts.infiniband import Adapter, add_adapter
from support.hosts.tree import Tree
from support.source_reader import open_source, read_values, source_opened

ROCE = Adapter("mlx5_1", "sys/devices/pci0000:29/0000:29:00.0", ethernet=True, netdev="eth2",
               ip="10.1.2.3", rate="100 Gb/sec (4X EDR)")  # fmt: skip


@pytest.fixture(autouse=True)
def _cheap(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine files in memory may cost more than a read of the fast lane may."""
    monkeypatch.setattr(infiniband, "FAST_MEDIAN_NS", 1_000_000_000)


def test_a_host_without_ports_has_a_reason(tree: Tree) -> None:
    for name in ("infiniband", "infiniband-errors"):
        with pytest.raises(Unsupported, match="no InfiniBand"):
            open_source(infiniband.sources, tree.roots, name)


def test_data_is_counted_in_words_of_four_bytes(tree: Tree) -> None:
    ports = add_adapter(tree, Adapter(bytes_a_second=4_000_000))
    source = open_source(infiniband.sources, tree.roots, "infiniband")
    assert source.lane is Lane.FAST  # files in memory are cheap
    before = read_values(source)
    tree.advance(1.0)
    after = read_values(source)
    label = "network.infiniband.tx_bytes{mlx5_0/1}"
    first, second = before[label], after[label]
    assert first is not None
    assert second is not None
    assert second - first == 4_000_000
    assert set(after) == {
        f"network.infiniband.{name}{{mlx5_0/1}}"
        for name in ("rx_bytes", "tx_bytes", "rx_packets", "tx_packets")
    }
    tree.write(f"{ports}/1/counters/port_xmit_data", 2**32 - 1)
    assert read_values(source)[label] is None  # stuck at 32 bits


def test_expensive_counters_have_their_own_thread(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(infiniband, "FAST_MEDIAN_NS", 0)
    add_adapter(tree, Adapter())
    source = open_source(infiniband.sources, tree.roots, "infiniband")
    try:
        assert source.lane is Lane.SLOW
        assert {channel.lane for channel in source.channels} == {Lane.SLOW}
        assert isinstance(source, infiniband.PortTraffic)
        assert len(source.read()) == 4
    finally:
        source.close()


def test_errors_state_and_the_drivers_own_counters(tree: Tree) -> None:
    ports = add_adapter(tree, Adapter())
    tree.write(f"{ports}/1/counters/link_downed", 2)
    tree.write(f"{ports}/1/counters/symbol_error", 65_535)  # 16 bits: it counts no more
    tree.write(f"{ports}/1/hw_counters/out_of_sequence", 9)
    source = open_source(infiniband.sources, tree.roots, "infiniband-errors")
    try:
        observed = read_values(source)
        assert observed["network.infiniband.state{mlx5_0/1}"] == 4
        assert observed["network.infiniband.phys_state{mlx5_0/1}"] == 5
        assert observed["network.infiniband.rate{mlx5_0/1}"] == 400e9
        assert observed["network.infiniband.link_downed{mlx5_0/1}"] == 2
        assert observed["network.infiniband.symbol_error{mlx5_0/1}"] is None
        assert observed["network.infiniband.hw.out_of_sequence{mlx5_0/1}"] == 9
        assert not any("lifespan" in label or "unicast" in label for label in observed
                       if "multicast" not in label)  # fmt: skip
        tree.write(f"{ports}/1/state", "1: DOWN\n")
        tree.write(f"{ports}/1/rate", "garbled\n")
        observed = read_values(source)
        assert observed["network.infiniband.state{mlx5_0/1}"] == 1
        assert observed["network.infiniband.rate{mlx5_0/1}"] is None
    finally:
        source.close()


def test_a_stuck_counter_is_missing_and_reported_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    parse = infiniband.SaturatingCounter(8, tmp_path / "link_downed")
    assert [parse(b"254\n"), parse(b"255\n"), parse(b"255\n"), parse(b"3\n")] == [
        254, None, None, 3,
    ]  # fmt: skip
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "link_downed" in caplog.text


PORT = "sys/class/infiniband/{device}/ports/{port}"


def add_port(tree: Tree, device: str, counters: Mapping[str, int], port: int = 1) -> None:
    """A port whose driver has counters of its own only."""
    folder = PORT.format(device=device, port=port)
    tree.write(f"{folder}/link_layer", "Ethernet\n")
    tree.write(f"{folder}/state", "4: ACTIVE\n")
    tree.write(f"{folder}/rate", "100 Gb/sec (4X EDR)\n")
    for name, value in {"lifespan": 10, **counters}.items():
        tree.write(f"{folder}/hw_counters/{name}", value)


def traffic_of(tree: Tree, instance: str) -> dict[str, float | None]:
    with source_opened(infiniband.sources, tree.roots, "infiniband") as source:
        assert {channel.lane for channel in source.channels} == {source.lane}
        found = read_values(source)
    prefix, suffix = "network.infiniband.", f"{{{instance}}}"
    assert all(label.endswith(suffix) for label in found)
    return {label.removeprefix(prefix).removesuffix(suffix): value
            for label, value in found.items()}  # fmt: skip


EXPECTED = {"rx_bytes": 10, "tx_bytes": 20, "rx_packets": 1, "tx_packets": 2}


@pytest.mark.parametrize(
    "counters",
    [
        pytest.param({"rx_bytes": 10, "tx_bytes": 20, "rx_pkts": 1, "tx_pkts": 2}, id="efa"),
        pytest.param({"rx_bytes": 10, "tx_bytes": 20, "rx_packets": 1, "tx_packets": 2}, id="mana"),
        pytest.param(
            {"ip4InOctets": 7, "ip6InOctets": 3, "ip4OutOctets": 20, "ip6OutOctets": 0,
             "ip4InPkts": 1, "ip6InPkts": 0, "ip4OutPkts": 1, "ip6OutPkts": 1},
            id="irdma",
        ),
        pytest.param({"rx_bytes_cnt": 10, "tx_bytes_cnt": 20, "rx_packets_cnt": 1,
                      "tx_packets_cnt": 2}, id="erdma"),
        pytest.param({"rcvd_bytes": 10, "sent_bytes": 20, "rcvd_pkts": 1, "sent_pkts": 2},
                     id="rxe"),
    ],
)  # fmt: skip
def test_traffic_is_found_by_the_names_of_any_driver(
    tree: Tree, counters: Mapping[str, int]
) -> None:
    add_port(tree, "rdma0", counters)
    assert traffic_of(tree, "rdma0/1") == EXPECTED
    with source_opened(infiniband.sources, tree.roots, "infiniband-errors") as source:
        observed = read_values(source)
    assert observed["network.infiniband.rate{rdma0/1}"] == 100e9
    assert not any(".hw." in label for label in observed)  # each counter stands once


def test_a_driver_that_counts_packets_only_has_no_bytes(tree: Tree) -> None:
    add_port(tree, "rxe0", {"rcvd_pkts": 1, "sent_pkts": 2, "lifespan": 0})
    assert traffic_of(tree, "rxe0/1") == {"rx_packets": 1, "tx_packets": 2}


def test_counters_of_the_specification_come_first(tree: Tree) -> None:
    add_adapter(tree, Adapter(bytes_a_second=0))
    tree.write(f"{PORT.format(device='mlx5_0', port=1)}/hw_counters/rx_bytes", 5)
    assert traffic_of(tree, "mlx5_0/1")["rx_bytes"] == 4 * 10**9


def test_a_counter_that_counts_nothing_leaves_it_to_the_driver(tree: Tree) -> None:
    add_port(tree, "bnxt_re0", {"rx_bytes": 10, "tx_bytes": 20, "rx_pkts": 1, "tx_pkts": 2})
    folder = PORT.format(device="bnxt_re0", port=1)
    for name in ("port_rcv_data", "port_xmit_data"):
        tree.write(f"{folder}/counters/{name}", "N/A (no PMA)\n")
    assert traffic_of(tree, "bnxt_re0/1") == EXPECTED


def test_counters_of_a_device_are_those_of_its_only_port(tree: Tree) -> None:
    add_port(tree, "cxgb4_0", {})
    for name, value in {"ip4InSegs": 1, "ip6InSegs": 0, "ip4OutSegs": 2, "ip6OutSegs": 0}.items():
        tree.write(f"sys/class/infiniband/cxgb4_0/hw_counters/{name}", value)
    assert traffic_of(tree, "cxgb4_0/1") == {"rx_packets": 1, "tx_packets": 2}


def test_counters_of_a_device_with_several_ports_are_its_own(tree: Tree) -> None:
    for port in (1, 2):
        add_port(tree, "cxgb4_0", {}, port)
    for name in ("ip4InSegs", "ip4OutSegs"):
        tree.write(f"sys/class/infiniband/cxgb4_0/hw_counters/{name}", 3)
    assert traffic_of(tree, "cxgb4_0") == {"rx_packets": 3, "tx_packets": 3}


def test_errors_of_a_device_are_read_beside_those_of_its_ports(tree: Tree) -> None:
    add_port(tree, "efa_0", {"rx_bytes": 10, "rx_drops": 3, "recv_bytes": 9})
    counted = {"cmds_err": 4, "completed_cmds": 100, "rx_drops": 3, "rx_bytes": 10}
    for name, value in counted.items():
        tree.write(f"sys/class/infiniband/efa_0/hw_counters/{name}", value)
    with source_opened(infiniband.sources, tree.roots, "infiniband-errors") as source:
        observed = read_values(source)
    assert {label: value for label, value in observed.items() if ".hw." in label} == {
        "network.infiniband.hw.rx_drops{efa_0/1}": 3,
        "network.infiniband.hw.recv_bytes{efa_0/1}": 9,
        "network.infiniband.hw.cmds_err{efa_0}": 4,
    }
    assert find("network.infiniband.hw.recv_bytes").unit == "bytes"


def test_a_port_without_traffic_counters_is_not_called_absent(tree: Tree) -> None:
    add_port(tree, "siw0", {})
    with pytest.raises(Unsupported, match="no bytes or packets are counted for the ports of siw0"):
        open_source(infiniband.sources, tree.roots, "infiniband")


def test_answers_that_a_driver_keeps_do_not_count_as_cheap(
    tree: Tree, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(infiniband.time, "sleep", pauses.append)
    add_port(tree, "efa_0", {"rx_bytes": 10, "lifespan": 12})
    assert traffic_of(tree, "efa_0/1") == {"rx_bytes": 10}
    assert pauses == [0.012] * 3


@given(st.lists(st.binary(max_size=8), max_size=3), st.integers(1, 3))
def test_a_sum_of_counters_is_a_number_or_missing(texts: list[bytes], count: int) -> None:
    parse = infiniband.CounterSum([infiniband.SaturatingCounter(64, Path("x"))] * count)
    with suppress(ValueError):
        assert isinstance(parse(b"\n".join(texts)), int | None)


def test_a_device_that_comes_and_goes_leaves_the_other(tree: Tree) -> None:
    add_adapter(tree, Adapter())
    source = open_source(infiniband.sources, tree.roots, "infiniband")
    add_adapter(tree, ROCE)
    with pytest.raises(LayoutChanged):
        source.read()
    assert {channel.instance for channel in source.channels} == {"mlx5_0/1", "mlx5_1/1"}
    tree.remove("sys/class/infiniband/mlx5_0")
    with pytest.raises(LayoutChanged):
        source.read()
    assert {channel.instance for channel in source.channels} == {"mlx5_1/1"}
    assert None not in source.read()


def test_ports_and_the_interfaces_on_top_of_them(tree: Tree) -> None:
    add_adapter(tree, Adapter(netdev="ib0", ports=2))
    add_adapter(tree, ROCE)
    first, second, roce = rdma.ib_ports(tree.roots.sys)
    assert (first.name, first.netdevs, first.pci) == ("mlx5_0/1", ("ib0",), "0000:18:00.0")
    assert (second.name, second.netdevs) == ("mlx5_0/2", ("ib2",))
    assert (first.link_layer, first.addresses) == ("InfiniBand", ())
    assert (roce.netdevs, roce.addresses, roce.rate) == (("eth2",), ("10.1.2.3",), 100 * 10**9)
    assert (roce.state, roce.phys_state, roce.link_layer) == ("ACTIVE", "LinkUp", "Ethernet")


def test_ports_without_gids_are_identified_by_folder(tree: Tree) -> None:
    add_adapter(tree, Adapter(netdev="ib0"))
    (port,) = rdma.ib_ports(tree.roots.sys, addresses=False)
    assert (port.netdevs, port.addresses) == (("ib0",), ())
    assert rdma.ib_ports(tree.root / "nothing") == []


@pytest.mark.parametrize(
    ("gid", "address"),
    [("0000:0000:0000:0000:0000:ffff:c0a8:0102", "192.168.1.2"),
     ("2001:0db8:0000:0000:0000:0000:0000:0005", "2001:db8::5"),
     ("fe80:0000:0000:0000:0e42:a1ff:fe00:0001", ""),
     ("0000:0000:0000:0000:0000:0000:0000:0000", ""), ("", ""), ("nonsense", "")],
)  # fmt: skip
def test_addresses_in_gids(gid: str, address: str) -> None:
    assert rdma.ip_of_gid(gid) == address


@pytest.mark.parametrize(
    ("text", "tenths"),
    [("200 Gb/sec (4X HDR)", 2000), ("2.5 Gb/sec (1X SDR)", 25), ("56 Gb/sec (4X FDR)", 560)],
)
def test_rates(text: str, tenths: int) -> None:
    assert rdma.rate(text) == tenths


@given(st.binary(max_size=40))
def test_any_text_is_a_rate_and_a_state_or_refused(text: bytes) -> None:
    for parse in (rdma.rate, rdma.state_number):
        try:
            value = parse(text)
        except ValueError:
            continue
        assert isinstance(value, int)
        assert value >= 0


@given(st.text(max_size=60))
def test_any_gid_is_an_address_or_none(gid: str) -> None:
    assert isinstance(rdma.ip_of_gid(gid), str)


@pytest.mark.parametrize(
    ("name", "harm"),
    [("hw.out_of_sequence", Harm.HIGHER), ("hw.packet_seq_err", Harm.HIGHER),
     ("hw.local_ack_timeout_err", Harm.HIGHER), ("hw.rnr_nak_retry_err", Harm.HIGHER),
     ("hw.np_cnp_sent", Harm.HIGHER), ("hw.roce_adp_retrans", Harm.HIGHER),
     ("hw.rx_write_requests", Harm.NEITHER), ("hw.rx_read_requests", Harm.NEITHER),
     ("hw.req_cqe_error", Harm.HIGHER), ("hw.seq_errors_of_2030", Harm.HIGHER),
     ("multicast_rcv_packets", Harm.NEITHER), ("port_xmit_wait", Harm.HIGHER)],
)  # fmt: skip
def test_direction_that_hurts(name: str, harm: Harm) -> None:
    assert find(f"network.infiniband.{name}").harm is harm
