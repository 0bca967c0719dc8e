"""Process groups: no time is counted twice or lost, and columns do not flap."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveal_collector.kernel_interfaces.errors import LayoutChanged
from reveal_collector.readers.source import Roots
from reveal_collector.subjects import processes
from reveal_collector.subjects.cgroup_files import cpu_root, hierarchies
from reveal_collector.subjects.process_groups import (
    GroupAccounting,
    ProcessGroup,
    ProcessSample,
    ScoreWeights,
    update_scores,
)
from reveal_collector.subjects.processes import (
    NotAProcess,
    ProcessGroups,
    parse_io,
    parse_stat,
)
from reveal_collector.subjects.tracker import SubjectSelection
from reveal_contract.foreign_names import printable

LATER = 10**9


def reading(
    cpu: int, parent: int = 1, group: int = 10, start: int = 5, io: int = 0
) -> ProcessSample:
    return ProcessSample(group, parent, start, "job", (cpu, 0, io, 0, 0), 4096, 1)


def used(accounting: GroupAccounting, group: int = 10) -> int:
    return accounting.groups[group].totals[0]


def test_a_group_is_the_sum_of_its_processes_since_their_first_reading() -> None:
    accounting = GroupAccounting()
    accounting.update({10: reading(100), 11: reading(50, 10)}, LATER)
    accounting.update({10: reading(103), 11: reading(54, 10)}, LATER)
    assert used(accounting) == 7
    assert (accounting.groups[10].memory, accounting.groups[10].threads) == (8192, 2)


def test_a_new_process_counts_in_full_and_a_moved_process_from_now_on() -> None:
    accounting = GroupAccounting()
    accounting.update({10: reading(0)}, LATER)
    accounting.update({10: reading(0), 11: reading(9, 10, start=50), 12: reading(70, 10)}, 40)
    assert used(accounting) == 9
    accounting.update({10: reading(0), 11: reading(9, 10, start=50), 12: reading(71, 10)}, 60)
    assert used(accounting) == 10


def shell(waited: int, io: int = 0) -> ProcessSample:
    """Return a process that did nothing itself; its children used ``waited`` and ``io``."""
    return ProcessSample(10, 1, 5, "sh", (waited, 0, io, 0), 4096, 1, waited=waited)


def test_the_whole_life_of_a_child_of_another_cgroup_is_not_its_parents() -> None:
    accounting = GroupAccounting()
    accounting.update({10: shell(0)}, LATER)
    accounting.update({10: shell(0)}, LATER)
    accounting.update({10: shell(2800, io=10**9)}, LATER)  # 28 s of CPU time within a second
    accounting.update({10: shell(2800, io=10**9)}, LATER)
    assert used(accounting) <= 20
    assert accounting.groups[10].totals[2] == 0


def test_short_lived_children_count_for_their_parent() -> None:
    accounting = GroupAccounting()
    for second in range(60):  # a loop of commands that takes nine tenths of a CPU
        accounting.update({10: shell(90 * second, io=second)}, LATER)
    assert 0.9 * 90 * 59 <= used(accounting) <= 90 * 59
    assert accounting.groups[10].totals[2] >= 50


def test_a_followed_child_is_not_counted_again_when_its_parent_waits_for_it() -> None:
    accounting = GroupAccounting()
    accounting.update({10: reading(0), 11: reading(0, 10)}, LATER)
    accounting.update({10: reading(0), 11: reading(40, 10)}, LATER)
    accounting.update({10: reading(42)}, LATER)  # the child's 40 and 2 more it used in the end
    assert used(accounting) == 42


def test_an_unobserved_child_counts_through_its_parent() -> None:
    accounting = GroupAccounting()
    accounting.update({10: reading(0)}, LATER)
    accounting.update({10: reading(25)}, LATER)
    assert used(accounting) == 25


def test_a_parent_read_just_before_it_waited_gets_the_credit_a_pass_later() -> None:
    accounting = GroupAccounting()
    accounting.update({10: reading(0), 11: reading(0, 10)}, LATER)
    accounting.update({10: reading(0), 11: reading(40, 10)}, LATER)
    accounting.update({10: reading(1)}, LATER)
    accounting.update({10: reading(41)}, LATER)
    assert used(accounting) == 41
    accounting.update({10: reading(81)}, LATER)
    assert used(accounting) == 81


def test_a_grandchild_is_credited_to_who_is_left() -> None:
    accounting = GroupAccounting()
    accounting.update({10: reading(0), 11: reading(0, 10), 12: reading(0, 11)}, LATER)
    accounting.update({10: reading(0), 11: reading(5, 10), 12: reading(30, 11)}, LATER)
    accounting.update({10: reading(35)}, LATER)
    assert used(accounting) == 35


def test_a_pid_used_again_is_another_process() -> None:
    accounting = GroupAccounting()
    accounting.update({10: reading(0), 11: reading(1000, 10)}, LATER)
    accounting.update({10: reading(0), 11: reading(3, 10, start=77)}, 70)
    assert used(accounting) == 3


@given(st.lists(st.dictionaries(st.integers(2, 6), st.integers(0, 100), max_size=5), max_size=8))
def test_totals_never_fall(passes: list[dict[int, int]]) -> None:
    accounting = GroupAccounting()
    before: dict[int, int] = {}
    for counts in passes:
        accounting.update(
            {pid: reading(cpu, pid - 1, pid % 2) for pid, cpu in counts.items()}, LATER
        )
        now = {number: group.totals[0] for number, group in accounting.groups.items()}
        assert all(now[number] >= total for number, total in before.items() if number in now)
        before = now


def test_scores_follow_use() -> None:
    single = ProcessGroup(1, "g1", 1, 20)
    single.used, single.memory = [100, 0, 0, 0, 0], 0
    update_scores([single], ScoreWeights(100, 1 << 30), 1.0)
    assert single.score == pytest.approx(1.0)
    single.used = [0, 0, 0, 0, 0]
    update_scores([single], ScoreWeights(100, 1 << 30), 1.0)
    assert single.score == pytest.approx(0.7)


STAT = (
    b"%d (%s) S %d %d 1 0 -1 %d 7 8 %d %d %d %d %d %d 20 0 3 0 %d 1000 25 184467 1 1 0 0 0 0 0 0 0"
)


def stat(  # noqa: PLR0913 - one argument a field of the file
    pid: int, name: bytes = b"job", *, parent: int = 1, group: int = 10, flags: int = 0,
    cpu: int = 0, waited: int = 0, start: int = 5,
) -> bytes:  # fmt: skip
    return STAT % (pid, name, parent, group, flags, 2, 3, cpu, 0, waited, 0, start)


def test_a_name_with_brackets_and_blanks_shifts_nothing() -> None:
    plain = parse_stat(7, stat(7, cpu=4, waited=6), 4096)
    odd = parse_stat(7, stat(7, b"a) S 1 (b", cpu=4, waited=6), 4096)
    assert (odd.totals, odd.group, odd.memory) == (plain.totals, 10, 25 * 4096)
    assert plain.totals == (10, 5, 0, 0, 20)
    assert odd.name == "a) S 1 (b"


def test_init_is_not_billed_for_the_orphans_it_reaps() -> None:
    assert parse_stat(1, stat(1, cpu=4, waited=6), 4096).totals == (4, 2, 0, 0, 9)


def test_a_kernel_thread_is_no_subject() -> None:
    with pytest.raises(NotAProcess):
        parse_stat(2, stat(2, flags=0x0020_8040), 4096)


@given(st.binary(max_size=200))
def test_a_garbled_stat_is_refused(data: bytes) -> None:
    with pytest.raises((ValueError, NotAProcess)):
        parse_stat(3, data, 4096)


@given(st.binary(max_size=16))
def test_a_name_from_anybody_is_printable(name: bytes) -> None:
    assert parse_stat(3, stat(3, name=name), 4096).name == printable(os.fsdecode(name))


def test_a_name_truncated_inside_a_character_shows_its_bytes() -> None:
    name = "inner-job-名字".encode()[:15]
    assert parse_stat(3, stat(3, name=name), 4096).name == "inner-job-名\\xe5\\xad"


def test_io_is_read_by_name() -> None:
    text = b"rchar: 1\nwchar: 2\nread_bytes: 4096\nwrite_bytes: 8192\ncancelled_write_bytes: 5\n"
    assert parse_io(text) == (4096, 8192)


@pytest.mark.parametrize("text", [b"", b"read_bytes: 4096\n", b"write_bytes: 1\nread_bytes: x\n"])
def test_io_without_its_numbers_is_no_zero(text: bytes) -> None:
    with pytest.raises(ValueError, match=r"io of a process|invalid literal"):
        parse_io(text)


class Tree:
    """A /proc of plain files."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.source = ProcessGroups(Roots(root), None, SubjectSelection())

    def put(self, pid: int, data: bytes, io: int | None = 0) -> None:
        folder = self.root / str(pid)
        folder.mkdir(exist_ok=True)
        (folder / "stat").write_bytes(data)
        if io is not None:
            (folder / "io").write_text(f"read_bytes: {io}\nwrite_bytes: 0\n")

    def end(self, pid: int) -> None:
        shutil.rmtree(self.root / str(pid))

    def values(self) -> dict[str, int | None]:
        try:
            row = self.source.read()
        except LayoutChanged:
            row = self.source.read()
        return dict(zip([c.label for c in self.source.channels], row, strict=True))


def test_groups_of_a_proc_tree(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    tree.put(2, stat(2, b"kworker", flags=0x0020_0000, group=0))
    tree.put(10, stat(10, cpu=100))
    tree.put(11, stat(11, b"worker", parent=10, cpu=50), io=4096)
    (tmp_path / "self").mkdir()
    tree.source.open()
    tree.put(10, stat(10, cpu=103))
    tree.put(11, stat(11, b"worker", parent=10, cpu=54), io=8192)
    assert tree.values() == {
        "cpu.subject.usage{pgrp:job[10]}": 7,
        "memory.subject.major_faults{pgrp:job[10]}": 0,
        "storage.subject.read_bytes{pgrp:job[10]}": 4096,
        "storage.subject.write_bytes{pgrp:job[10]}": 0,
        "memory.subject.usage{pgrp:job[10]}": 2 * 25 * 4096,
        "memory.subject.page_faults{pgrp:job[10]}": 0,
        "cpu.subject.tasks{pgrp:job[10]}": 6,
    }
    tree.end(11)
    assert tree.values()["cpu.subject.usage{pgrp:job[10]}"] == 7
    tree.end(10)
    assert set(tree.values().values()) == {None}
    tree.source.close()


def test_storage_of_a_process_that_may_not_be_asked_is_missing_not_zero(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    tree.put(10, stat(10), io=None)
    tree.source.open()
    read = tree.values()
    assert read["storage.subject.read_bytes{pgrp:job[10]}"] is None
    assert read["cpu.subject.usage{pgrp:job[10]}"] == 0
    tree.source.close()


def test_storage_of_a_group_is_missing_from_when_it_may_no_longer_be_asked(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    tree.put(10, stat(10), io=4096)
    tree.source.open()
    assert tree.values()["storage.subject.read_bytes{pgrp:job[10]}"] == 0
    (tmp_path / "10/io").write_text("no numbers\n")  # a process that changed its user: EACCES
    tree.put(10, stat(10, cpu=5), io=None)
    read = tree.values()
    assert read["storage.subject.read_bytes{pgrp:job[10]}"] is None
    assert read["cpu.subject.usage{pgrp:job[10]}"] == 5
    tree.source.close()


def test_a_large_new_group_becomes_a_column(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    tree.put(10, stat(10))
    tree.source.open()
    for cpu in (1, 500, 1000):
        tree.put(20, stat(20, b"new", group=20, cpu=cpu, start=1))
        read = tree.values()
    assert "cpu.subject.usage{pgrp:new[20]}" in read
    tree.source.close()


def test_pages_and_memory_are_those_of_the_recorded_host(tmp_path: Path) -> None:
    (tmp_path / "meminfo").write_text("MemTotal: 1048576 kB\nMemFree: 64000 kB\n")
    (tmp_path / "vmstat").write_text("nr_free_pages 1000\n")
    tree = Tree(tmp_path)
    tree.put(10, stat(10))
    tree.source.open()
    assert tree.values()["memory.subject.usage{pgrp:job[10]}"] == 25 * 65_536
    assert tree.source._weights == ScoreWeights(100, 1 << 30)
    tree.source.close()


def test_a_left_out_group_is_no_column(tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    tree.source = ProcessGroups(Roots(tmp_path), None, SubjectSelection(leave_out=("pgrp:job",)))
    tree.put(10, stat(10))
    tree.put(20, stat(20, b"other", group=20))
    tree.source.open()
    assert {c.instance for c in tree.source.channels} == {"pgrp:other[20]"}
    tree.source.close()


def test_a_job_is_followed_that_starts_after_as_many_processes_as_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "MAX_PROCESSES", 8)
    tree = Tree(tmp_path)
    for pid in range(100, 130):
        tree.put(pid, stat(pid, group=pid))
    tree.source.open()
    used = 0
    for cpu in range(0, 4000, 100):
        tree.put(900, stat(900, b"train", group=900, cpu=cpu, start=2**40))
        read = tree.values()
        used = max(used, read.get("cpu.subject.usage{pgrp:train[900]}") or 0)
        assert len(tree.source._processes) == 8
    assert 900 in tree.source._processes
    assert used >= 2000  # counted from when it was followed
    tree.source.close()


def test_a_process_that_makes_room_gives_its_parent_no_credit() -> None:
    accounting = GroupAccounting()
    accounting.update({10: reading(0), 11: reading(500, 10)}, LATER)
    accounting.forget(11)
    accounting.update({10: reading(40)}, LATER)
    assert used(accounting) == 40


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no procfs")
def test_a_real_child_shows_its_cpu_time_once() -> None:
    burn = "import time\nend = time.process_time() + .3\nwhile time.process_time() < end: pass\n"
    command = [sys.executable, "-c", burn + "input()"]
    source = ProcessGroups(Roots(), None, SubjectSelection())
    source.open()
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, process_group=0
    ) as child:
        wait_until_asleep(child.pid)
        passes(source)
        total = source._accounting.groups[child.pid].totals[0]
        assert child.stdin is not None
        child.stdin.close()
    passes(source)
    source.close()
    assert 25 <= total * 100 / os.sysconf("SC_CLK_TCK") <= 60


def wait_until_asleep(pid: int) -> None:
    """Until the process blocks in ``input()``, after its work."""
    used = -1
    while True:
        read = parse_stat(pid, Path(f"/proc/{pid}/stat").read_bytes(), 4096)
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        if state == "S" and read.totals[0] == used and used * 4 > os.sysconf("SC_CLK_TCK"):
            return
        used = read.totals[0]


def passes(source: ProcessGroups) -> None:
    try:
        source.read()
    except LayoutChanged:
        source.read()


def test_a_group_that_starts_later_is_a_subject_on_any_version_of_cgroups() -> None:
    """Version 1 keeps the list of a descriptor that is read again within a second."""
    trees = hierarchies(Roots().cgroup)
    source = ProcessGroups(Roots(), cpu_root(trees), SubjectSelection())
    source.open()
    spin = "import time\nwhile True: sum(range(9999))"
    started = subprocess.Popen([sys.executable, "-c", spin], start_new_session=True)
    try:
        ends = time.monotonic() + 30
        while source.instance_of(started.pid) is None:
            assert time.monotonic() < ends, "the process is not in the list"
            with suppress(LayoutChanged):
                source.read()
            time.sleep(0.2)
    finally:
        started.kill()
        started.wait()
        source.close()
