"""Disks whose I/O no other disk repeats."""

from __future__ import annotations

import pytest

from reveal_analyzer.derive.disk_layers import lowest_disks


@pytest.mark.parametrize(
    ("names", "lowest"),
    [
        (["sda", "sdb", "md0", "md_data", "dm-0"], ["sda", "sdb"]),
        (["nvme0n1", "nvme1n1", "dm-12", "bcache0", "md127"], ["nvme0n1", "nvme1n1"]),
        (["nvme0n1", "nvme0c1n1", "nvme0c2n1", "nvme1n1"], ["nvme0c1n1", "nvme0c2n1", "nvme1n1"]),
        (["zram0", "vda"], ["zram0", "vda"]),
        (["loop0", "loop12", "zd16", "md/data", "vda"], ["vda"]),
        (["loop0", "zram0"], ["zram0"]),
        (["dm-0"], ["dm-0"]),
        ([], []),
    ],
)
def test_the_lowest_disks_stay(names: list[str], lowest: list[str]) -> None:
    assert lowest_disks(names) == lowest
