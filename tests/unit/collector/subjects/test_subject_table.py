"""The subject table: process groups in cgroups that only other hierarchies have."""

from __future__ import annotations

from pathlib import Path

import pytest

from reveal_collector.kernel_interfaces.errors import LayoutChanged
from reveal_collector.readers.source import Roots
from reveal_collector.subjects.cgroup_files import hierarchies
from reveal_collector.subjects.cgroups import CgroupUsage
from reveal_collector.subjects.processes import ProcessGroups
from reveal_collector.subjects.subject_table import with_inner
from reveal_collector.subjects.tracker import SubjectSelection, SubjectTracker
from reveal_contract.subjects import Identity, SubjectKind

SESSION = Identity("/session", SubjectKind.CGROUP, "7")


def test_a_cgroup_names_its_process_groups() -> None:
    other = Identity("/other", SubjectKind.CGROUP, "8")
    found = with_inner((SESSION, other), {"pgrp:b[2]": "/session", "pgrp:a[1]": "/session"})
    assert [each.inner for each in found] == [("pgrp:a[1]", "pgrp:b[2]"), ()]


def test_an_ended_cgroup_has_none() -> None:
    ended = Identity("/session", SubjectKind.CGROUP, "6", until_ns=5)
    found = with_inner((SESSION, ended), {"pgrp:a[1]": "/session"})
    assert [each.inner for each in found] == [("pgrp:a[1]",), ()]


def put(proc: Path, pid: int, cgroup: str) -> None:
    """Write a process that is alone in its group."""
    fields = [f"{pid} (job) S 1 {pid}", "0 " * 8, "100 0 0 0", "20 0 1 0", str(2**40), "0 25"]
    (proc / str(pid)).mkdir()
    (proc / str(pid) / "stat").write_text(" ".join(" ".join(fields).split()) + " 0" * 20)
    (proc / str(pid) / "cgroup").write_text(f"4:memory:{cgroup}\n2:cpu:/\n")


def test_groups_are_looked_up_when_they_are_selected(tmp_path: Path) -> None:
    asked: list[int] = []

    def subject_of(pid: int, proc: Path) -> str | None:
        asked.append(pid)
        return (proc / str(pid) / "cgroup").read_text().split("\n")[0].rpartition(":")[2]

    put(tmp_path, 10, "/session")
    groups = ProcessGroups(Roots(tmp_path), None, SubjectSelection(), subject_of)
    groups.open()
    first = groups.outer
    assert first == {"pgrp:job[10]": "/session"}
    put(tmp_path, 20, "/other")
    for _ in range(30):
        try:
            groups.read()
        except LayoutChanged:
            continue
    assert groups.outer == {"pgrp:job[10]": "/session", "pgrp:job[20]": "/other"}
    assert asked == [10, 20]
    groups.close()


def test_the_table_is_the_same_object_while_nothing_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tracker = SubjectTracker(hierarchies(tmp_path), SubjectSelection())
    groups = ProcessGroups(Roots(tmp_path), None, tracker.selection)
    source = CgroupUsage(Roots(cgroup=tmp_path), tracker, groups)
    monkeypatch.setattr(tracker, "identities", (SESSION,))
    monkeypatch.setattr(groups, "outer", {"pgrp:a[1]": "/session"})
    table = source.subjects
    assert table[0].inner == ("pgrp:a[1]",)
    assert source.subjects is table
    monkeypatch.setattr(groups, "outer", {"pgrp:a[1]": "/session", "pgrp:b[2]": "/unselected"})
    assert source.subjects is table
