"""InfiniBand and RoCE ports: words, sticky counters, lanes by price, interfaces on top."""

from __future__ import annotations

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
from support.source_reader import open_source, read_values

ROCE = Adapter("mlx5_1", "sys/devices/pci0000:29/0000:29:00.0", ethernet=True, netdev="eth2",
               ip="10.1.2.3", rate="100 Gb/sec (4X EDR)")  # fmt: skip


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
