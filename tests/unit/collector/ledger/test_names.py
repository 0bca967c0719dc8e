"""Names of keys: cgroups, process groups and sessions."""

from __future__ import annotations

from pathlib import Path

from reveal_collector.ledger.names import CgroupKeys, GroupKeys, ProcessNames, hierarchy_of
from reveal_collector.ledger.programs import KEY_BLKIO, KEY_GROUP, KEY_SESSION, Hierarchy
from reveal_collector.subjects.tracker import CgroupSubject

SECOND = 1_000_000_000
GROUP, OTHER_GROUP, SESSION = KEY_GROUP | 40, KEY_GROUP | 41, KEY_SESSION | 7
NOBODY: frozenset[str] = frozenset()


def named(key: int) -> str:
    return f"name[{key & 0xFFFF}]"


def test_a_group_above_a_hundredth_of_a_cpu_gets_a_name() -> None:
    groups = GroupKeys(named)
    found = groups.update({GROUP: SECOND // 100, OTHER_GROUP: SECOND // 101}, SECOND, NOBODY)
    assert found == {"name[40]": frozenset({GROUP})}


def test_a_session_gets_a_name_for_what_its_named_groups_leave() -> None:
    """Groups that live for less than a second, as of a shell with job control."""
    groups = GroupKeys(named)
    first = {GROUP: SECOND // 2, SESSION: SECOND // 2}
    assert groups.update(first, SECOND, NOBODY) == {"name[40]": frozenset({GROUP})}
    assert "name[7]" not in groups.update({}, SECOND, NOBODY)
    short = {KEY_GROUP | n: SECOND // 1000 for n in range(100, 400)}
    groups.update(short | {SESSION: 3 * SECOND // 10}, SECOND, NOBODY)
    later = groups.update(short | {SESSION: 3 * SECOND // 10}, SECOND, NOBODY)
    assert later["name[7]"] == frozenset({SESSION})


def test_a_group_without_threads_loses_its_name_after_a_while() -> None:
    groups = GroupKeys(named)
    groups.update({GROUP: SECOND}, SECOND, NOBODY)
    for _ in range(60):
        assert groups.update({}, SECOND, frozenset({"name[40]"}))
    for _ in range(28):
        groups.update({}, SECOND, NOBODY)
    assert groups.update({}, SECOND, NOBODY)
    for _ in range(3):
        last = groups.update({}, SECOND, NOBODY)
    assert last == {}


def test_a_young_group_takes_the_name_of_what_its_leader_executes() -> None:
    command = ["bash"]
    groups = GroupKeys(lambda key: command[0])
    groups.update({GROUP: SECOND}, SECOND, NOBODY)
    command[0] = "train"
    assert list(groups.update({}, SECOND, NOBODY)) == ["train"]
    command[0] = ""
    assert list(groups.update({}, SECOND, NOBODY)) == ["train"]


def test_a_group_whose_leader_ended_has_a_name_all_the_same() -> None:
    groups = GroupKeys(lambda key: "")
    assert list(groups.update({GROUP: SECOND}, SECOND, NOBODY)) == ["pgrp:?[40]"]


def test_names_of_groups_are_those_of_the_source_of_process_groups(tmp_path: Path) -> None:
    fields = "S 1 40 40 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 100 0 0 0"
    (tmp_path / "40").mkdir()
    (tmp_path / "40/stat").write_text(f"40 (a hog) {fields}")
    names = ProcessNames(tmp_path, {41: "pgrp:train[41]"}.get)
    assert names(OTHER_GROUP) == "pgrp:train[41]"
    assert names(GROUP) == "pgrp:a hog[40]"
    assert names(KEY_SESSION | 40) == "session:a hog[40]"
    assert names(SESSION) == ""


def test_keys_of_a_cgroup_are_its_inodes(tmp_path: Path) -> None:
    for tree in ("cpuacct", "blkio"):
        (tmp_path / tree / "pod").mkdir(parents=True)
    trees = {"cpuacct": tmp_path / "cpuacct"}  # a blkio that counts nothing is none of them
    pod, gone = CgroupSubject("/pod", 1, "ns/pod"), CgroupSubject("/gone", 2, "ns/gone")
    cgroups = CgroupKeys(trees, tmp_path / "blkio")
    own, disk = ((tmp_path / tree / "pod").stat().st_ino for tree in ("cpuacct", "blkio"))
    assert cgroups.of([pod, gone]) == {"ns/pod": frozenset({own, KEY_BLKIO | disk})}
    assert cgroups.root == (tmp_path / "cpuacct").stat().st_ino


def test_in_version_2_the_same_cgroup_is_both(tmp_path: Path) -> None:
    (tmp_path / "pod").mkdir()
    cgroups = CgroupKeys({"unified": tmp_path}, tmp_path)
    keys = cgroups.of([CgroupSubject("/pod", 1, "ns/pod")])
    assert keys == {"ns/pod": frozenset({(tmp_path / "pod").stat().st_ino})}


def test_the_hierarchy_has_the_cpu_time(tmp_path: Path) -> None:
    trees = {name: tmp_path / name for name in ("memory", "cpu", "cpuacct", "unified")}
    assert hierarchy_of(trees) == (Hierarchy.CPUACCT, tmp_path / "cpuacct")
    del trees["cpuacct"]
    assert hierarchy_of(trees) == (Hierarchy.CPU, tmp_path / "cpu")
    del trees["cpu"]
    assert hierarchy_of(trees) == (Hierarchy.UNIFIED, tmp_path / "unified")
    assert hierarchy_of({}) == (Hierarchy.UNIFIED, None)
