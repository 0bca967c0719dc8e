"""Free memory in blocks of huge pages, on hosts of any page size."""

from __future__ import annotations

from pathlib import Path

import pytest

from reveal_collector.readers.source import Roots
from reveal_collector.sources import buddy, sockstat, vmstat


def host(root: Path, page: int, huge_kb: int, orders: int) -> Roots:
    """1000 pages are free in blocks of each order."""
    (root / "1/net").mkdir(parents=True)
    (root / "meminfo").write_text(
        f"MemTotal: 33554432 kB\nMemFree: {1000 * page // 1024} kB\nHugepagesize: {huge_kb} kB\n"
    )
    (root / "vmstat").write_text("nr_free_pages 1000\nnr_anon_pages 10\n")
    (root / "buddyinfo").write_text("Node 0, zone   Normal" + " 1" * orders + "\n")
    (root / "1/net/sockstat").write_text("sockets: used 3\nTCP: inuse 1 mem 7\n")
    return Roots(root, root / "sys")


def scaled(roots: Roots, name: str) -> dict[str, float]:
    factories = (buddy.sources, vmstat.sources, sockstat.sources)
    source = next(each for make in factories for each in make(roots) if each.name == name)
    source.open()
    found = zip(source.channels, source.read(), strict=True)
    return {each.label: (value or 0) * each.scale for each, value in found}


@pytest.mark.parametrize(
    ("page", "huge_kb", "orders", "first"),
    [
        (4096, 2048, 11, 9),
        (65_536, 524_288, 14, 13),
        (65_536, 2048, 14, 5),
        (16_384, 32_768, 12, 11),
        (4096, 1_048_576, 11, 9),  # the allocator has no block of 1 GiB
        (65_536, 524_288, 11, 10),  # nor this one any of a huge page: its largest ones
    ],
)
def test_large_blocks_are_those_of_huge_pages(
    page: int, huge_kb: int, orders: int, first: int, tmp_path: Path
) -> None:
    found = scaled(host(tmp_path, page, huge_kb, orders), "buddyinfo")
    assert found["memory.buddy.free{Normal/0}"] == (2**orders - 1) * page
    assert found["memory.buddy.free_large{Normal/0}"] == (2**orders - 2**first) * page


@pytest.mark.parametrize("page", [4096, 65_536])
def test_pages_are_those_of_the_recorded_host(page: int, tmp_path: Path) -> None:
    roots = host(tmp_path, page, 2048, 11)
    assert scaled(roots, "vmstat")["memory.vm.nr_free_pages"] == 1000 * page
    assert scaled(roots, "sockstat")["network.sockets.tcp.memory"] == 7 * page
