"""Which interfaces have a link state that is meaningful for the host."""

from __future__ import annotations

from pathlib import Path

import pytest

from reveal_collector.readers.source import Roots
from reveal_collector.sources import nic


def _interface(root: Path, name: str) -> None:
    folder = root / "class/net" / name
    folder.mkdir(parents=True)
    for file, value in (("operstate", "up"), ("carrier_changes", 2), ("carrier_down_count", 1)):
        (folder / file).write_text(f"{value}\n")


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("veth743316ec", False),
        ("cali0123456789a", False),
        ("eth0", True),  # of a node that is a container
        ("ens5", True),
        ("cni0", False),
        ("bond0.100", False),
        ("tunl0", False),
    ],
)
def test_what_is_no_card_is_left_out(tmp_path: Path, name: str, read: bool) -> None:
    _interface(tmp_path, name)
    _interface(tmp_path, "eth1")
    [links, _] = nic.sources(Roots(sys=tmp_path))
    links.open()
    names = {link.instance for link in links.channels}
    assert names == ({name, "eth1"} if read else {"eth1"})


def test_what_is_on_a_bus_is_a_card_by_any_name(tmp_path: Path) -> None:
    _interface(tmp_path, "rail0")
    (tmp_path / "class/net/rail0/device").mkdir()
    [links, _] = nic.sources(Roots(sys=tmp_path))
    links.open()
    assert {link.metric for link in links.channels} == {
        "network.nic.carrier_changes", "network.nic.link_downed", "network.nic.up",
    }  # fmt: skip
