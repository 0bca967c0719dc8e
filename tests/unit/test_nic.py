"""Which interfaces have a link whose state says something of the host."""

from __future__ import annotations

from pathlib import Path

import pytest

from reveal_collector.source import Roots
from reveal_collector.sources import nic


def _interface(root: Path, name: str, index: int, other: int, kind: str = "") -> None:
    folder = root / "class/net" / name
    folder.mkdir(parents=True)
    told = {
        "ifindex": index, "iflink": other, "operstate": "up", "carrier_changes": 2,
        "uevent": f"{f'DEVTYPE={kind}' if kind else ''}\nINTERFACE={name}\nIFINDEX={index}",
    }  # fmt: skip
    for file, value in told.items():
        (folder / file).write_text(f"{value}\n")


@pytest.mark.parametrize(
    ("name", "other", "kind", "read"),
    [
        ("veth743316ec", 2, "", False),
        ("cali0123456789a", 4, "", False),
        ("eth0", 9, "", True),  # of a node that is a container
        ("ens5", 7, "", True),
        ("cni0", 7, "bridge", True),
        ("bond0.100", 3, "vlan", True),
        ("tunl0", 0, "", True),
    ],
)
def test_the_ends_of_pods_cables_are_left_out(
    tmp_path: Path, name: str, other: int, kind: str, read: bool
) -> None:
    _interface(tmp_path, name, 7, other, kind)
    _interface(tmp_path, "eth1", 8, 8)
    [links, _] = nic.sources(Roots(sys=tmp_path))
    links.open()
    names = {one.instance for one in links.channels}
    assert names == ({name, "eth1"} if read else {"eth1"})
