"""Storage I/O of subjects from their processes, where cgroups do not count it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from reveal_collector.kernel_interfaces.errors import LayoutChanged, Unsupported
from reveal_collector.subjects.cgroup_files import counts_storage, hierarchies, requests_root
from reveal_collector.subjects.storage import SubjectStorage
from reveal_collector.subjects.tracker import SubjectSelection, SubjectTracker
from support.hosts.tree import Tree

UNIT = "/system.slice/job.service"
READ, WRITTEN = (f"storage.subject.{name}{{{UNIT}}}" for name in ("read_bytes", "write_bytes"))
UNCOUNTED = "Total 0\n"


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """A cgroup v1 host without I/O limits, with two processes of a unit."""
    tree = Tree(tmp_path)
    for controller in ("cpu", "cpuacct", "blkio"):
        tree.write(f"cgroup/{controller}/cgroup.procs", "1\n")
        tree.write(f"cgroup/{controller}{UNIT}/cgroup.procs", "10\n11\n")
    tree.write("cgroup/blkio/blkio.throttle.io_service_bytes_recursive", UNCOUNTED)
    tree.write(f"cgroup/blkio{UNIT}/blkio.throttle.io_service_bytes_recursive", UNCOUNTED)
    tree.write(f"cgroup/cpuacct{UNIT}/cpuacct.usage", "7\n")
    process(tree, 10, 1000, 2000)
    process(tree, 11, 50, 0, parent=10)
    return tree


def process(
    tree: Tree, pid: int, read: int, written: int, *, parent: int = 1, start: int = 5
) -> None:
    fields = ["0"] * 30
    fields[1], fields[19] = str(parent), str(start)
    tree.write(f"proc/{pid}/stat", f"{pid} (a b) S {' '.join(fields[1:])}\n")
    tree.write(
        f"proc/{pid}/io", f"rchar: 9\nwchar: 9\nread_bytes: {read}\nwrite_bytes: {written}\n"
    )


def ends(tree: Tree, pid: int) -> None:
    tree.write(f"proc/{pid}/io", "")
    tree.remove(f"proc/{pid}")


@contextmanager
def opened(tree: Tree) -> Iterator[tuple[SubjectStorage, SubjectTracker]]:
    tracker = SubjectTracker(hierarchies(tree.roots.cgroup), SubjectSelection())
    tracker._users = 1  # kept up by the test, not by a thread
    tracker.update(0.0)
    source = SubjectStorage(tree.roots, tracker)
    source.open()
    try:
        yield source, tracker
    finally:
        source.close()


def read(source: SubjectStorage, seconds: int = 1) -> dict[str, int | None]:
    for _ in range(seconds):
        row = source.read()
    return dict(zip((each.label for each in source.channels), row, strict=True))


def test_a_blkio_that_counts_nothing_is_no_hierarchy(tree: Tree) -> None:
    cgroup = tree.roots.cgroup
    assert set(hierarchies(cgroup)) == {"cpu", "cpuacct"}
    assert not counts_storage(hierarchies(cgroup))
    tree.write(
        "cgroup/blkio/blkio.throttle.io_service_bytes_recursive", "8:0 Read 0\n8:0 Total 0\n"
    )
    assert "blkio" in hierarchies(cgroup)
    with pytest.raises(Unsupported, match="not needed"), opened(tree):
        pass


def test_requests_to_disks_belong_to_cgroups_of_a_blkio_that_counts_nothing(tree: Tree) -> None:
    """Else the ledger counts those that the kernel sends later for the kernel."""
    cgroup = tree.roots.cgroup
    tree.write("cgroup/blkio/cgroup.procs", "")
    assert "blkio" not in hierarchies(cgroup)
    assert requests_root(cgroup) == cgroup / "blkio"


def test_requests_to_disks_belong_to_the_unified_hierarchy_where_that_controls_them(
    tmp_path: Path,
) -> None:
    tree = Tree(tmp_path)
    for folder in ("cgroup", "cgroup/unified"):
        tree.write(f"{folder}/cgroup.controllers", "cpu io memory\n")
        assert requests_root(tree.roots.cgroup) == tmp_path / folder
        tree.write(f"{folder}/cgroup.controllers", "cpu\n")
    assert requests_root(tree.roots.cgroup) is None


@pytest.mark.parametrize(("controllers", "counts"), [("cpu io", True), ("cpu memory", False)])
def test_version_2_counts_where_its_controller_is(
    tmp_path: Path, controllers: str, counts: bool
) -> None:
    tree = Tree(tmp_path)
    tree.write("cgroup/cgroup.controllers", f"{controllers}\n")
    assert counts_storage(hierarchies(tree.roots.cgroup)) is counts


def test_what_its_processes_do_is_the_subject_s(tree: Tree) -> None:
    with opened(tree) as (source, _):
        assert read(source) == {READ: 0, WRITTEN: 0}  # earlier I/O is not counted
        process(tree, 10, 1500, 2000)
        process(tree, 11, 50, 300, parent=10)
        assert read(source, 5) == {READ: 500, WRITTEN: 300}


def test_a_new_process_counts_in_full_and_a_finished_process_only_once(tree: Tree) -> None:
    """What a child did is its parent's as soon as the parent has waited for it (kernel: exit.c)."""
    with opened(tree) as (source, _):
        tree.write(f"cgroup/cpuacct{UNIT}/cgroup.procs", "10\n11\n12\n")
        process(tree, 12, 700, 0, parent=10, start=2**40)
        assert read(source, 15)[READ] == 700
        ends(tree, 12)
        tree.write(f"cgroup/cpuacct{UNIT}/cgroup.procs", "10\n11\n")
        process(tree, 10, 1000 + 700 + 25, 2000)
        assert read(source, 15)[READ] == 725


def test_a_subject_without_read_permission_is_missing(tree: Tree) -> None:
    for pid in (10, 11):
        tree.remove(f"proc/{pid}/io")
    with opened(tree) as (source, _):
        assert read(source) == {READ: None, WRITTEN: None}


def test_a_subject_whose_processes_can_no_longer_be_read_is_missing_not_idle(tree: Tree) -> None:
    with opened(tree) as (source, _):
        process(tree, 10, 1500, 2000)
        assert read(source, 5) == {READ: 500, WRITTEN: 0}
        for pid in (10, 11):
            tree.write(f"proc/{pid}/io", "")
            tree.remove(f"proc/{pid}/io")
        assert read(source, 15) == {READ: None, WRITTEN: None}
        process(tree, 10, 1500, 2000)
        assert read(source, 15)[READ] is not None
        tree.write(f"cgroup/cpuacct{UNIT}/cgroup.procs", "")
        assert read(source, 15)[READ] is not None  # without processes it does nothing


def write_many_processes(tree: Tree, read_bytes: int) -> None:
    """Write a thousand processes of one subject, from process 100 on."""
    many = range(100, 1100)
    for pid in many:
        process(tree, pid, read_bytes, 0)
    pids = "".join(f"{pid}\n" for pid in many)
    tree.write("cgroup/cpuacct/system.slice/a.service/cgroup.procs", pids)


def test_a_subject_of_many_processes_leaves_room_for_the_others(tree: Tree) -> None:
    write_many_processes(tree, 0)
    with opened(tree) as (source, _):
        process(tree, 10, 1500, 2000)
        process(tree, 100, 70, 0)
        now = read(source, 5)
    assert now[READ] == 500
    assert now["storage.subject.read_bytes{/system.slice/a.service}"] == 70


def test_a_process_that_begins_its_io_is_found_among_many(tree: Tree) -> None:
    write_many_processes(tree, 5000)
    label = "storage.subject.read_bytes{/system.slice/a.service}"
    with opened(tree) as (source, _):
        for second in range(60):
            process(tree, 1098, 5000 + second * 10**12, 0)
            now = read(source)
        before = now[label]
        process(tree, 1098, 5000 + 60 * 10**12, 0)
        assert before is not None
        assert (read(source, 5)[label] or 0) - before == 10**12
        assert before < 60 * 10**12  # not what it did before it was followed


def test_subjects_come_and_go(tree: Tree) -> None:
    with opened(tree) as (source, tracker):
        tree.write("cgroup/cpuacct/system.slice/new.service/cgroup.procs", "20\n")
        process(tree, 20, 5, 5, start=2**40)
        tracker.update(1.0)
        with pytest.raises(LayoutChanged):
            source.read()
        now = read(source, 5)
        assert now["storage.subject.read_bytes{/system.slice/new.service}"] == 5
        assert now[READ] == 0
        for controller in ("cpu", "cpuacct"):
            tree.remove(f"cgroup/{controller}{UNIT}")
        tracker.update(2.0)
        tracker.update(60.0)
        with pytest.raises(LayoutChanged):
            source.read()
        assert READ not in read(source)
