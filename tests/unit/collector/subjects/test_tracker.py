"""The tracker of subjects: which of many cgroups it selects."""

from __future__ import annotations

from pathlib import Path

from reveal_collector.subjects.cgroup_files import hierarchies
from reveal_collector.subjects.tracker import SubjectSelection, SubjectTracker


def add(root: Path, path: str) -> None:
    """Add a cgroup of version 2 with a process."""
    (root / path).mkdir()
    (root / "cgroup.controllers").write_text("cpu\n")
    (root / path / "cgroup.procs").write_text("42\n")
    (root / path / "cpu.stat").write_text("usage_usec 0\n")


def test_the_busiest_are_selected_and_similar_cgroups_do_not_alternate(tmp_path: Path) -> None:
    for path in "abc":
        add(tmp_path, path)
    found = SubjectTracker(hierarchies(tmp_path), SubjectSelection(limit=2))
    used = dict.fromkeys("abc", 0)

    def walk_after(second: float, **cpus: float) -> list[str]:
        for path, rate in cpus.items():
            used[path] += round(rate * 30e6)
            (tmp_path / path / "cpu.stat").write_text(f"usage_usec {used[path]}\n")
        found.update(second)
        return [subject.path for subject in found.current]

    walk_after(0.0, a=1.0, b=1.0, c=0.0)
    for walks in range(1, 20):
        uses = {"a": 0.5, "b": 0.4, "c": 0.7} if walks % 2 else {"a": 0.5, "b": 0.6, "c": 0.3}
        assert walk_after(30.0 * walks, **uses) == ["/a", "/b"]
    assert walk_after(600.0, a=0.5, b=0.1, c=4.0) == ["/a", "/c"]


def test_new_cgroups_are_announced_also_those_that_are_not_selected(
    tmp_path: Path,
) -> None:
    calls: list[int] = []
    add(tmp_path, "a")
    found = SubjectTracker(hierarchies(tmp_path), SubjectSelection(limit=1))
    found.update(0.0)
    found.on_found = lambda: calls.append(len(found.candidates))
    found.update(1.0)
    assert calls == []
    add(tmp_path, "b")
    found.update(2.0)
    assert calls == [2]
    (tmp_path / "b" / "cgroup.procs").write_text("")
    found.update(100.0)
    assert (len(found.candidates), calls) == (1, [2])
