"""Software RAID: missing disks, rebuilds and checks of arrays that come and go."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveal_collector.kernel_interfaces.errors import LayoutChanged, Unsupported
from reveal_collector.readers.source import degraded_of
from reveal_collector.sources import md
from support.hosts.raid import add_array
from support.hosts.tree import Tree
from support.source_reader import open_source, read_current, read_values

TURNS = 10  # readings within which a quiet file, and what there is, is read
RAID = "storage.raid"


def test_a_host_without_arrays_has_a_reason(tree: Tree) -> None:
    tree.folder("sys/block/mdadm")
    tree.folder("sys/block/sda/md")
    with pytest.raises(Unsupported, match="no software RAID"):
        open_source(md.sources, tree.roots, "md")


def test_a_quiet_array_and_its_disks(tree: Tree) -> None:
    add_array(tree, "md127", disks=("sda1", "cciss!c0d1"))
    assert read_values(open_source(md.sources, tree.roots, "md")) == {
        f"{RAID}.broken{{md127}}": 0, f"{RAID}.missing{{md127}}": 0,
        f"{RAID}.rebuilding{{md127}}": 0, f"{RAID}.checking{{md127}}": 0,
        f"{RAID}.sync_speed{{md127}}": 0, f"{RAID}.mismatches{{md127}}": 0,
        f"{RAID}.disk_errors{{md127/sda1}}": 0, f"{RAID}.disk_errors{{md127/cciss/c0d1}}": 0,
    }  # fmt: skip


def test_arrays_without_redundancy_can_only_break(tree: Tree) -> None:
    folder = add_array(tree, "md_fast", "raid0", ())
    source = open_source(md.sources, tree.roots, "md")
    assert read_values(source) == {f"{RAID}.broken{{md_fast}}": 0}
    tree.write(f"{folder}/array_state", "broken\n")
    values = [read_values(source) for _ in range(TURNS)][-1]
    assert values == {f"{RAID}.broken{{md_fast}}": 1}


@pytest.mark.parametrize(
    ("action", "rebuilding", "checking"),
    [("idle", 0, 0), ("frozen", 0, 0), ("resync", 1, 0), ("recover", 1, 0), ("reshape", 1, 0),
     ("check", 0, 1), ("repair", 0, 1), ("dreaming", None, None), ("", None, None)],
)  # fmt: skip
def test_what_an_array_does(
    tree: Tree, action: str, rebuilding: int | None, checking: int | None
) -> None:
    folder = add_array(tree)
    tree.write(f"{folder}/sync_action", f"{action}\n")
    values = read_values(open_source(md.sources, tree.roots, "md"))
    assert values[f"{RAID}.rebuilding{{md0}}"] == rebuilding
    assert values[f"{RAID}.checking{{md0}}"] == checking


def test_a_degraded_array_that_recovers(tree: Tree) -> None:
    folder = add_array(tree)
    source = open_source(md.sources, tree.roots, "md")
    read_values(source)
    for name, text in (
        ("degraded", "1"), ("sync_action", "recover"), ("sync_speed", "33440"),
        ("mismatch_cnt", "256"), ("dev-sdb/errors", "3"),
    ):  # fmt: skip
        tree.write(f"{folder}/{name}", f"{text}\n")
    values = [read_values(source) for _ in range(TURNS)][-1]
    assert values[f"{RAID}.missing{{md0}}"] == 1
    assert values[f"{RAID}.rebuilding{{md0}}"] == 1
    assert values[f"{RAID}.sync_speed{{md0}}"] == 33440 * 1024
    assert values[f"{RAID}.mismatches{{md0}}"] == 256 * 512
    assert values[f"{RAID}.disk_errors{{md0/sdb}}"] == 3


def test_arrays_and_disks_come_and_go(tree: Tree) -> None:
    folder = add_array(tree)
    source = open_source(md.sources, tree.roots, "md")
    count = len(source.channels)
    tree.remove(f"{folder}/dev-sdb")
    add_array(tree, "md1", disks=("sdc",))
    with pytest.raises(LayoutChanged):
        for _ in range(TURNS):
            source.read()
    instances = {channel.instance for channel in source.channels}
    assert instances == {"md0", "md0/sda", "md1", "md1/sdc"}
    assert len(source.channels) == count - 1 + 7
    tree.remove("sys/block/md0")
    tree.remove("sys/block/md1")
    with pytest.raises(LayoutChanged):
        for _ in range(TURNS):
            source.read()
    assert not source.channels


def test_a_file_that_cannot_be_read_costs_its_own_columns_only(tree: Tree) -> None:
    folder = add_array(tree)
    for name, text in (("sync_speed", ""), ("degraded", "-1\n"), ("mismatch_cnt", "many: 7\n")):
        tree.write(f"{folder}/{name}", text)
    tree.remove(f"{folder}/array_state")
    source = open_source(md.sources, tree.roots, "md")
    values = read_values(source)
    assert f"{RAID}.broken{{md0}}" not in values
    assert values[f"{RAID}.sync_speed{{md0}}"] is None
    assert values[f"{RAID}.mismatches{{md0}}"] is None
    assert values[f"{RAID}.rebuilding{{md0}}"] == 0
    (phrase,) = degraded_of(source)
    assert "mismatch_cnt" in phrase


@given(st.binary(max_size=40))
def test_any_text_of_an_array_gives_numbers_or_none(text: bytes) -> None:
    assert md.action(text) in {(None, None), (0, 0), (1, 0), (0, 1)}
    with contextlib.suppress(ValueError):
        assert isinstance(md.speed(text), int)


@given(name=st.text(st.characters(exclude_characters="/\0", codec="utf-8"), max_size=12))
def test_an_array_may_have_any_name(tmp_path_factory: pytest.TempPathFactory, name: str) -> None:
    tree = Tree(tmp_path_factory.mktemp("host"))
    add_array(tree, f"md_{name}")
    assert None not in read_current(open_source(md.sources, tree.roots, "md"))
