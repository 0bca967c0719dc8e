"""Disks read from a file each: the same numbers as /proc/diskstats, and hot-plugged disks."""

from __future__ import annotations

from pathlib import Path

import pytest

from reveal_collector.kernel_interfaces.errors import LayoutChanged, Unsupported
from reveal_collector.readers.source import CHECK_EVERY
from reveal_collector.sources.diskstats import DiskStats
from support.hosts.base import add_machine
from support.hosts.machine import Disk, Machine
from support.hosts.procfs import UNUSED_DISK
from support.hosts.tree import Tree

MACHINE = Machine(disks=(Disk("vda", rate=400), Disk("nvme0n1", rate=90, partitions=2)))


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    result = Tree(tmp_path)
    add_machine(result, MACHINE)
    return result


def opened(tree: Tree, block: str = "block") -> DiskStats:
    source = DiskStats(tree.roots.proc / "diskstats", tree.roots.sys / block)
    source.open()
    return source


def stale(source: DiskStats) -> bool:
    return any(source.stale() for _ in range(CHECK_EVERY))


def names(source: DiskStats) -> set[str]:
    return {channel.instance for channel in source.channels}


def test_a_file_each_gives_what_the_list_gives(tree: Tree) -> None:
    files, listed = opened(tree), opened(tree, "no-block")
    for _ in range(3):
        assert list(files.read()) == list(listed.read())
        tree.advance(100)
    assert files.channels == listed.channels
    assert [len(source.scans() or ()) for source in (files, listed)] == [2, 1]
    assert not stale(files)


def test_the_first_request_to_an_unused_device_adds_it(tree: Tree) -> None:
    source = opened(tree)
    used = "3 0 24 1 " + "0 " * 12 + "0"
    path = tree.root / "proc/diskstats"
    path.write_text(path.read_text().replace(f"loop2 {UNUSED_DISK}", f"loop2 {used}"))
    tree.write("sys/block/loop2/stat", used)
    assert stale(source)
    with pytest.raises(LayoutChanged):
        source.read()
    assert names(source) == {"vda", "nvme0n1", "loop2"}
    observed = dict(zip((each.label for each in source.channels), source.read(), strict=True))
    assert observed["storage.disk.read_bytes{loop2}"] == 24
    assert not stale(source)


def test_a_disk_that_sysfs_shows_later_is_found(tree: Tree) -> None:
    """The kernel lists a disk in /proc/diskstats a moment before it links it in /sys/block."""
    source = opened(tree)
    path = tree.root / "proc/diskstats"
    line = next(line for line in path.open() if "vda" in line)
    path.write_text(path.read_text() + line.replace("vda", "vdz"))
    assert not stale(source)
    stat = (tree.root / "sys/block/vda/stat").read_text()
    tree.write("sys/block/vdz/stat", stat)
    assert any(stale(source) for _ in range(12))


def test_disk_that_is_unplugged_leaves_the_rest(tree: Tree) -> None:
    source = opened(tree)
    path = tree.root / "proc/diskstats"
    path.write_text("".join(line for line in path.open() if "vda" not in line))
    assert stale(source)
    with pytest.raises(LayoutChanged):
        source.read()
    assert names(source) == {"nvme0n1"}
    assert None not in source.read()


def test_without_the_scanner_others_are_found_by_reading(tree: Tree) -> None:
    source = opened(tree)
    path = tree.root / "proc/diskstats"
    path.write_text("".join(line for line in path.open() if "nvme" not in line))
    with pytest.raises(LayoutChanged):
        for _ in range(10 * CHECK_EVERY):
            source.read()
    assert names(source) == {"vda"}


def test_a_missing_list_is_reported_with_its_path(tmp_path: Path) -> None:
    with pytest.raises(Unsupported, match="diskstats does not exist"):
        opened(Tree(tmp_path))
