"""Swap, compressed memory disks and free space of file systems."""

from __future__ import annotations

import contextlib
import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveal_collector.kernel_interfaces.errors import LayoutChanged, Unsupported
from reveal_collector.readers.source import AdaptiveSource, Roots
from reveal_collector.sources import filesystems, swaps, zram
from support.hosts.swap import add_swaps, add_zram
from support.hosts.tree import Tree
from support.source_reader import open_source, read_values

TABLE = r"""22 27 0:21 / /proc rw,relatime - proc proc rw
27 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,discard
43 27 254:0 /run/netns /run/netns rw,relatime shared:1 - ext4 /dev/vda rw
50 27 259:3 / /srv/my\040data ro,noatime - xfs /dev/nvme0n1p3 ro
51 27 0:40 / /home rw - nfs4 server:/home rw,vers=4.2
52 27 0:41 / /mnt/bucket rw - fuse.s3fs s3fs rw
53 27 7:3 / /snap/core/1 ro - squashfs /dev/loop3 ro
54 27 0:44 /@ /pool rw - btrfs /dev/sdb1 rw
55 27 0:45 / /tank rw master:1 - zfs tank rw
56 27 0:46 / /scratch rw - lustre 10.0.0.1@o2ib:/scratch rw
57 27 0:47 / /merged rw - overlay overlay rw
short line - ext4
"""


def test_swap_by_device(tree: Tree) -> None:
    add_swaps(tree, ("/dev/dm-1", 8 << 30, 3 << 30), (r"/swap\040file", 1 << 30, 0))
    assert read_values(open_source(swaps.sources, tree.roots, "swaps")) == {
        "memory.swap.size{/dev/dm-1}": 8 << 30, "memory.swap.used{/dev/dm-1}": 3 << 30,
        "memory.swap.priority{/dev/dm-1}": -2,
        "memory.swap.size{/swap file}": 1 << 30, "memory.swap.used{/swap file}": 0,
        "memory.swap.priority{/swap file}": -3,
    }  # fmt: skip


def test_swap_switched_on_while_running(tree: Tree) -> None:
    add_swaps(tree)
    source = open_source(swaps.sources, tree.roots, "swaps")
    assert source.channels == ()
    add_swaps(tree, ("/dev/dm-1", 8 << 30, 0))
    with pytest.raises(LayoutChanged):
        source.read()
    assert list(source.read()) == [8 << 20, 0, -2]


def test_a_swap_file_that_was_removed_in_use() -> None:
    columns, unfit = swaps.usage("/swap (deleted)    file  1048572 5 -2\n")
    assert not unfit
    assert {channel.instance: value for channel, value in columns.items()} == {"/swap": -2}


def test_a_file_system_is_asked_by_the_bytes_of_its_path(tmp_path: Path) -> None:
    path = os.fsdecode(b"/data\xff\r\xc3\xa9")
    (tmp_path / f"host{path}").mkdir(parents=True)
    (tmp_path / "proc/1").mkdir(parents=True)
    (tmp_path / "proc/1/root").symlink_to(tmp_path / "host")
    row = f"27 1 254:0 / {path} rw,relatime - ext4 /dev/vda rw\n"
    (tmp_path / "proc/1/mountinfo").write_bytes(os.fsencode(row))
    sizes = {
        each.label: value for each, value in filesystems.usage(tmp_path / "proc").columns.items()
    }
    assert sizes["storage.filesystem.size{/data\\xff\\x0dé}"]


def test_rows_of_swap_in_another_form_are_stated(tree: Tree) -> None:
    add_swaps(tree, ("/dev/dm-1", 8 << 30, 3 << 30))
    source = open_source(swaps.sources, tree.roots, "swaps")
    assert isinstance(source, AdaptiveSource)
    assert not source.degraded
    path = tree.roots.proc / "swaps"
    path.write_text(path.read_text() + "/dev/dm-2 partition 8G 0 -3\n")
    assert list(source.read()) == [8 << 20, 3 << 20, -2]
    assert source.degraded == (
        f"swaps: numbers are missing, because 1 line of {path} cannot be read: /dev/dm-2",
    )


def test_a_kernel_without_swap(tree: Tree) -> None:
    with pytest.raises(Unsupported, match="swaps"):
        open_source(swaps.sources, tree.roots, "swaps")


@pytest.mark.root
def test_swap_of_this_kernel(tmp_path: Path) -> None:
    file = tmp_path / "swap"
    file.write_bytes(bytes(1 << 20))
    file.chmod(0o600)
    source = open_source(swaps.sources, Roots(), "swaps")
    before = set(source.channels)
    try:
        for command in ("mkswap", "swapon"):
            subprocess.run([command, str(file)], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"swap cannot be switched on here: {error}")
    try:
        observed = read_values(source)
        mine = {label: value for label, value in observed.items() if str(file) in label}
        assert 0 < (mine[f"memory.swap.size{{{file}}}"] or 0) < 1 << 20  # less its header
        assert mine[f"memory.swap.used{{{file}}}"] == 0
    finally:
        subprocess.run(["swapoff", str(file)], check=True, capture_output=True)
    read_values(source)
    assert set(source.channels) == before


@given(st.text(max_size=200))
def test_any_text_is_a_table_of_swaps(text: str) -> None:
    columns, unfit = swaps.usage(text)
    assert all(isinstance(value, int) for value in columns.values())
    assert len(columns) // 3 + len(unfit) <= len(text.split("\n"))


@pytest.mark.parametrize("columns", [7, 8, 9])
def test_zram_of_three_kernels(tree: Tree, columns: int) -> None:
    add_zram(tree, columns=columns)
    observed = read_values(open_source(zram.sources, tree.roots, "zram"))
    assert len(observed) == columns + 4
    assert observed["memory.zram.original{zram0}"] == 15 << 28
    assert observed["memory.zram.used_maximum{zram0}"] == 2 << 30
    assert observed["memory.zram.notify_free{zram0}"] == 1200
    assert ("memory.zram.huge_pages_total{zram0}" in observed) is (columns == 9)


def test_zram_with_a_backing_device(tree: Tree) -> None:
    add_zram(tree, 1, backing=True)
    observed = read_values(open_source(zram.sources, tree.roots, "zram"))
    assert observed["memory.zram.backing.used{zram1}"] == 256 * 4096
    assert observed["memory.zram.backing.written{zram1}"] == 400 * 4096


def test_zram_added_and_removed(tree: Tree) -> None:
    add_zram(tree)
    source = open_source(zram.sources, tree.roots, "zram")
    add_zram(tree, 1)
    with pytest.raises(LayoutChanged):
        source.read()
    tree.remove("sys/block/zram0")
    with pytest.raises(LayoutChanged):
        source.read()
    assert {channel.instance for channel in source.channels} == {"zram1"}
    with pytest.raises(Unsupported, match="no zram"):
        open_source(zram.sources, Tree(tree.root / "other").roots, "zram")


def test_zram_that_is_garbled_is_missing(tree: Tree) -> None:
    add_zram(tree)
    source = open_source(zram.sources, tree.roots, "zram")
    tree.write("sys/block/zram0/mm_stat", "1 2 x\n")
    observed = read_values(source)
    assert observed["memory.zram.original{zram0}"] is None
    assert observed["memory.zram.failed_reads{zram0}"] == 0


@given(st.binary(max_size=60), st.integers(1, 9))
def test_any_line_is_so_many_numbers_or_refused(data: bytes, width: int) -> None:
    with contextlib.suppress(ValueError):
        assert len(zram.numbers(data, width)) == width


def test_own_file_systems_once_each_and_none_that_waits_for_a_server() -> None:
    table, unfit = filesystems.mounts(TABLE)
    assert unfit == ["short line - ext4"]
    found = filesystems.local_mounts(table)
    assert [(mount.path, mount.type) for mount in found] == [
        ("/", "ext4"), ("/pool", "btrfs"), ("/srv/my data", "xfs"), ("/tank", "zfs"),
    ]  # fmt: skip
    assert [mount.path for mount in found if mount.read_only] == ["/srv/my data"]


@given(st.text(max_size=200))
def test_any_text_is_a_table_of_mounts(text: str) -> None:
    table, unfit = filesystems.mounts(text)
    assert len(table) + len(unfit) == sum(map(bool, text.split("\n")))
    for mount in table:
        assert mount.device


@given(st.text(st.characters(codec="ascii", exclude_characters="\0"), max_size=30))
def test_paths_come_back_as_they_are(path: str) -> None:
    escaped = "".join(f"\\{ord(c):03o}" if c in " \t\n\\" else c for c in path)
    assert filesystems.unescaped(escaped) == path


def test_file_systems_of_another_hosts_files_are_not_asked(tree: Tree) -> None:
    with pytest.raises(Unsupported, match="machine itself"):
        open_source(filesystems.sources, tree.roots, "filesystems")


def test_free_space_here_is_that_of_df() -> None:
    try:
        source = open_source(filesystems.sources, Roots(), "filesystems")
    except Unsupported as refusal:
        pytest.skip(refusal.reason)
    observed = read_values(source)
    mount = source.channels[0].instance
    try:
        done = subprocess.run(
            ["df", "-B1", "--output=size,avail,itotal", mount],
            check=True, capture_output=True, text=True,
        )  # fmt: skip
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"nothing to compare with: {error}")
    size, available, inodes = (int(word) for word in done.stdout.split()[-3:])
    assert observed[f"storage.filesystem.size{{{mount}}}"] == size
    assert observed[f"storage.filesystem.available{{{mount}}}"] == pytest.approx(
        available, rel=0.05
    )
    assert observed[f"storage.filesystem.inodes{{{mount}}}"] in (inodes, None)
    assert observed[f"storage.filesystem.read_only{{{mount}}}"] in (0, 1)
