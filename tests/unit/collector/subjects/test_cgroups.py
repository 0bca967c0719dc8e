"""Cgroups as subjects: version 1, version 2 and hybrid trees of files."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveal_collector.kernel_interfaces.errors import LayoutChanged, Unsupported
from reveal_collector.readers.plan import MemoryPlan
from reveal_collector.readers.raw_slice import MISSING
from reveal_collector.readers.source import Roots, Source
from reveal_collector.subjects import cgroups, tracker
from reveal_collector.subjects.cgroup_files import FILES, UNIFIED, CgroupFile, cpu_root, hierarchies
from reveal_collector.subjects.cgroup_reader import CgroupReader
from reveal_collector.subjects.cgroup_walk import walk
from reveal_collector.subjects.cgroups import CgroupClocks
from reveal_collector.subjects.tracker import (
    CgroupSubject,
    SubjectSelection,
    SubjectTracker,
)
from reveal_contract.metric import Lane

UNIT = "system.slice/job.service"
PATH = f"/{UNIT}"


def write(folder: Path, **files: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)


def version_1(root: Path, path: str, procs: str = "42\n", usage: int = 7_000_000) -> None:
    for controller in ("cpuacct", "cpu", "memory", "blkio", "pids"):
        write(root / controller, cgroup__procs="1\n")
        write(root / controller / path, cgroup__procs=procs)
    write(root / "cpuacct" / path, cpuacct__usage=f"{usage}\n")
    write(
        root / "cpu" / path, cpu__stat="nr_periods 20\nnr_throttled 3\nthrottled_time 150000000\n"
    )
    write(
        root / "memory" / path,
        memory__usage_in_bytes="8192\n",
        memory__stat="cache 1\nrss 2\npgfault 3\ntotal_cache 4096\ntotal_rss 2048\n"
        "total_pgfault 30\ntotal_pgmajfault 4\ntotal_workingset_refault_anon 5\n"
        "total_workingset_refault_file 6\n",
        memory__oom_control="oom_kill_disable 0\nunder_oom 0\noom_kill 2\n",
        memory__failcnt="9\n",
    )
    lines = (
        "8:0 Read {0}\n8:0 Write {1}\n8:0 Sync 5\n8:0 Total 9\n8:16 Read 1\n8:16 Write 2\nTotal 12"
    )
    write(
        root / "blkio" / path,
        blkio__throttle__io_service_bytes_recursive=lines.format(1000, 2000),
        blkio__throttle__io_service_bytes="8:0 Read 1\n8:0 Write 1\nTotal 2\n",
        blkio__throttle__io_serviced_recursive=lines.format(10, 20),
    )
    write(root / "pids" / path, pids__current="5\n")


def version_2(root: Path, path: str, procs: str = "42\n", usage: int = 7000) -> None:
    write(root, cgroup__controllers="cpu io memory pids\n", cgroup__procs="1\n")
    pressure = "some avg10=0.00 avg60=0.00 avg300=0.00 total={}\nfull avg10=0.00 total=1\n"
    write(
        root / path,
        cgroup__procs=procs,
        cpu__stat=f"usage_usec {usage}\nuser_usec 1\nsystem_usec 2\nnr_periods 20\n"
        "nr_throttled 3\nthrottled_usec 150000\n",
        memory__current="8192\n",
        memory__stat="anon 2048\nfile 4096\nworkingset_refault_anon 5\nworkingset_refault_file 6\n"
        "pgscan 8\npgfault 30\npgmajfault 4\n",
        memory__events="low 0\nhigh 0\nmax 9\noom 1\noom_kill 2\n",
        io__stat="8:0 rbytes=1000 wbytes=2000 rios=10 wios=20 dbytes=0 dios=0\n"
        "8:16 rbytes=1 wbytes=2 rios=1 wios=2 dbytes=0 dios=0\n",
        pids__current="5\n",
        cpu__pressure=pressure.format(11),
        memory__pressure=pressure.format(12),
        io__pressure=pressure.format(13),
    )


@contextmanager
def opened(
    root: Path, selection: SubjectSelection | None = None
) -> Iterator[tuple[Source, Source]]:
    clocks, use, *_ = cgroups.sources(Roots(cgroup=root), selection)
    clocks.open()
    use.open()
    try:
        yield clocks, use
    finally:
        clocks.close()
        use.close()


def values(*sources: Source) -> dict[str, float]:
    """Return the value of every channel in base units, by label."""
    read = {}
    for source in sources:
        for channel, value in zip(source.channels, source.read(), strict=True):
            assert value is not None
            read[channel.label] = value * channel.scale
    return read


EXPECTED = {
    "cpu.subject.usage": 7e6,
    "cpu.subject.throttled_periods": 3,
    "cpu.subject.throttled_time": 1.5e8,
    "memory.subject.usage": 8192,
    "memory.subject.anon": 2048,
    "memory.subject.file": 4096,
    "memory.subject.page_faults": 30,
    "memory.subject.major_faults": 4,
    "memory.subject.refaults": 11,
    "memory.subject.oom_kills": 2,
    "memory.subject.limit_hits": 9,
    "storage.subject.read_bytes": 1001,
    "storage.subject.write_bytes": 2002,
    "storage.subject.reads": 11,
    "storage.subject.writes": 22,
    "cpu.subject.tasks": 5,
}
ONLY_2 = {
    "memory.subject.scanned": 8,
    "cpu.subject.pressure": 11_000,
    "memory.subject.pressure": 12_000,
    "storage.subject.pressure": 13_000,
}


def of(path: str, expected: dict[str, float]) -> dict[str, float]:
    return {f"{metric}{{{path}}}": value for metric, value in expected.items()}


def only(path: str, read: dict[str, float]) -> dict[str, float]:
    return {label: value for label, value in read.items() if label.endswith(f"{{{path}}}")}


def test_version_1_and_2_give_the_same_metrics_in_the_same_units(tmp_path: Path) -> None:
    version_1(tmp_path / "1", UNIT)
    version_2(tmp_path / "2", UNIT)
    with opened(tmp_path / "1") as sources:
        assert only(PATH, values(*sources)) == of(PATH, EXPECTED)
    with opened(tmp_path / "2") as sources:
        assert only(PATH, values(*sources)) == of(PATH, EXPECTED | ONLY_2)


def test_a_hybrid_host_takes_from_version_2_what_is_missing_in_version_1(tmp_path: Path) -> None:
    version_1(tmp_path, UNIT)
    version_2(tmp_path / "unified", UNIT, usage=99)
    with opened(tmp_path) as sources:
        read = only(PATH, values(*sources))
    pressure = {name: value for name, value in ONLY_2.items() if name.endswith("pressure")}
    assert read == of(PATH, EXPECTED | pressure | {"memory.subject.scanned": 8})


def test_the_cpu_clock_and_throttling_are_fast_and_the_rest_slow(tmp_path: Path) -> None:
    version_2(tmp_path, UNIT)
    with opened(tmp_path) as (clocks, use):
        fast = {channel.metric for channel in clocks.channels}
        assert fast == {name for name in EXPECTED if "usage" in name or "thro" in name} - {
            "memory.subject.usage"
        }
        assert not fast & {channel.metric for channel in use.channels}


def test_a_cgroup_counts_where_a_process_is_in_it_or_it_is_new_and_empty(tmp_path: Path) -> None:
    version_2(tmp_path, "a/b", procs="7\n")
    version_2(tmp_path, "a", procs="")
    version_2(tmp_path, "empty", procs="")
    found = walk(hierarchies(tmp_path))
    assert {path for path, entry in found.items() if entry.has_processes} == {"/a/b"}
    assert {path for path, entry in found.items() if entry.is_leaf} == {"/a/b", "/empty"}
    tracker = SubjectTracker(hierarchies(tmp_path), SubjectSelection())
    tracker.update(0.0)
    assert [entry.path for entry in tracker.current] == ["/a/b", "/empty"]


def test_mounts_init_and_what_is_left_out_are_no_subjects(tmp_path: Path) -> None:
    for path in ("dev.mount", "init.scope", "reveal-fault-x", "a/b/c/d/e", "job"):
        version_2(tmp_path, path)
    for path in ("a", "a/b", "a/b/c", "a/b/c/d"):
        version_2(tmp_path, path, procs="")  # too deep: the fourth speaks for what is below it
    with opened(tmp_path, SubjectSelection(leave_out=("/reveal-fault",))) as (clocks, _):
        paths = {channel.instance for channel in clocks.channels}
    assert paths == {"/a/b/c/d", "/job"}


def test_a_quiet_cgroup_is_read_less_often_than_a_busy_cgroup(tmp_path: Path) -> None:
    version_2(tmp_path, UNIT)
    stat = tmp_path / UNIT / "cpu.stat"
    with opened(tmp_path) as (clocks, _):
        for _ in range(cgroups.QUIET + 2):
            clocks.read()
        text = stat.read_text()
        stat.write_text(text.replace("usage_usec 7000", "usage_usec 7001"))
        used = [clocks.read()[-3] for _ in range(cgroups.BACK_OFF)]
        assert used[-1] == 7001
        stat.write_text(text.replace("usage_usec 7000", "usage_usec 7002"))
        assert clocks.read()[-3] == 7002


def test_a_cgroup_that_waits_without_cpu_is_read_every_second(tmp_path: Path) -> None:
    version_2(tmp_path, UNIT)
    stat = tmp_path / UNIT / "memory.events"
    with opened(tmp_path) as (clocks, usage):
        column = next(n for n, each in enumerate(usage.channels) if "oom_kill" in each.metric)
        for _ in range(2 * cgroups.BACK_OFF):
            clocks.read()
            usage.read()
        sent = []
        for second in range(20):
            stat.write_text(f"low 0\nhigh 0\nmax 0\noom 0\noom_kill {100 + second}\n")
            clocks.read()
            sent.append(usage.read()[column])
        first = next(second for second, value in enumerate(sent) if value >= 100)
        assert first <= cgroups.BACK_OFF
        assert sent[first:] == list(range(100 + first, 120))


def test_a_removed_cgroup_is_read_once_and_its_columns_remain_missing(tmp_path: Path) -> None:
    """Its columns remain for half a minute without a new plan."""
    version_2(tmp_path, UNIT)
    with opened(tmp_path) as (clocks, _):
        assert isinstance(clocks, CgroupClocks)
        clocks.read()
        os.dup2(os.open(tmp_path, os.O_RDONLY), clocks.scans()[0].fd)  # a folder: EISDIR
        clocks.read()
        assert clocks.stale()
        (scan,) = clocks.scans()
        assert isinstance(scan.plan, MemoryPlan)
        assert list(scan.plan.values) == [7000, 3, 150000]
        values_read = []
        for _ in range(4):
            assert not clocks.stale()
            clocks.observe(scan.plan.values)
            values_read.append(list(scan.plan.values))
        assert values_read[0] == [7000, 3, 150000]
        assert values_read[-1] == [MISSING] * 3
        assert clocks.scans() == [scan]


def test_new_and_removed_cgroups_change_the_columns(tmp_path: Path) -> None:
    version_2(tmp_path, "a")
    found = SubjectTracker(hierarchies(tmp_path), SubjectSelection())
    found.update(0.0)
    version_2(tmp_path, "b", procs="")
    found.update(1.0)
    assert [subject.path for subject in found.current] == ["/a", "/b"]
    shutil.rmtree(tmp_path / "a")
    found.update(2.0)
    assert [subject.path for subject in found.current] == ["/a", "/b"]  # lingers
    found.update(2.0 + tracker._LINGER_S)
    assert [subject.path for subject in found.current] == []  # and the empty one had its time


def test_a_controller_that_is_turned_on_or_off_changes_the_columns(tmp_path: Path) -> None:
    """systemd does so for all units of a slice with the first and the last unit that needs it."""
    version_2(tmp_path, "a")
    found = SubjectTracker(hierarchies(tmp_path), SubjectSelection())
    found.update(0.0)
    version_2(tmp_path, UNIT)
    unit = tmp_path / UNIT
    write(unit, cgroup__controllers="cpu memory pids\n")
    text = (unit / "io.stat").read_text()
    (unit / "io.stat").unlink()
    found.update(1.0)
    before = subject_of(found, PATH)
    assert before.newborn
    write(unit, cgroup__controllers="cpu io memory pids\n", io__stat=text)
    found.update(1.5)
    after = subject_of(found, PATH)
    assert after != before
    assert not after.newborn  # its other counters have been shown
    assert "storage.subject.read_bytes" in metrics_of(after, tmp_path)
    write(unit, cgroup__controllers="cpu memory pids\n")
    (unit / "io.stat").unlink()
    found.update(2.0)
    assert "storage.subject.read_bytes" not in metrics_of(subject_of(found, PATH), tmp_path)
    assert "memory.subject.anon" in metrics_of(subject_of(found, PATH), tmp_path)


def subject_of(found: SubjectTracker, path: str) -> CgroupSubject:
    return next(subject for subject in found.current if subject.path == path)


def metrics_of(subject: CgroupSubject, root: Path) -> set[str]:
    cgroup = CgroupReader(subject, hierarchies(root), Lane.SLOW, frozenset[str]().__contains__)
    cgroup.close()
    return {channel.metric for channel in cgroup.channels}


def test_hierarchies_come_and_go_in_sequence(tmp_path: Path) -> None:
    version_1(tmp_path, "a")
    version_1(tmp_path, UNIT)
    memory = tmp_path / "memory" / UNIT
    memory.rename(tmp_path / "later")
    found = SubjectTracker(hierarchies(tmp_path), SubjectSelection())
    found.update(0.0)
    assert not metrics_of(subject_of(found, PATH), tmp_path) & {"memory.subject.usage"}
    (tmp_path / "later").rename(memory)
    found.update(1.0)
    assert metrics_of(subject_of(found, PATH), tmp_path) >= {"memory.subject.usage"}
    whole = found.current
    shutil.rmtree(tmp_path / "cpu" / UNIT)
    shutil.rmtree(tmp_path / "cpuacct" / UNIT)
    found.update(2.0)
    assert found.current is whole


def test_usage_before_the_selection_of_a_cgroup_is_not_counted(
    tmp_path: Path,
) -> None:
    version_2(tmp_path, "a", usage=1000)
    found = SubjectTracker(hierarchies(tmp_path), SubjectSelection(limit=1))
    found.update(0.0)
    version_2(tmp_path, "a", usage=2_000_000)
    version_2(tmp_path, "b", usage=900)
    found.update(1.0)
    assert [subject.path for subject in found.current] == ["/a"]
    version_2(tmp_path, "b", usage=90_000_000)
    found.update(60.0)
    assert [(subject.path, subject.newborn) for subject in found.current] == [("/b", False)]


def test_inotify_reports_a_new_cgroup_within_moments(tmp_path: Path) -> None:
    version_2(tmp_path, "a")
    with opened(tmp_path) as (clocks, _):
        before = clocks.channels
        version_2(tmp_path, "b")
        assert eventually_changes(clocks)
        assert {channel.instance for channel in clocks.channels} == {"/a", "/b"}
        assert len(clocks.read()) == len(clocks.channels) == 2 * len(before)


def eventually_changes(source: Source) -> bool:
    import time

    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            source.read()
        except LayoutChanged:
            return True
        time.sleep(0.005)
    return False


def test_a_host_without_cgroups_has_a_reason(tmp_path: Path) -> None:
    clocks, *_ = cgroups.sources(Roots(cgroup=tmp_path / "none"))
    with pytest.raises(Unsupported, match="no cgroup hierarchy"):
        clocks.open()


def test_the_tree_that_owns_cpu_time_is_found(tmp_path: Path) -> None:
    version_2(tmp_path / "2", UNIT)
    version_1(tmp_path / "1", UNIT)
    assert cpu_root(hierarchies(tmp_path / "2")) == tmp_path / "2"
    assert cpu_root(hierarchies(tmp_path / "1")) == tmp_path / "1" / "cpuacct"
    assert cpu_root({}) is None
    assert set(hierarchies(tmp_path / "2")) == {UNIFIED}


@given(st.sampled_from(FILES), st.binary(max_size=300))
def test_no_text_of_a_file_breaks_more_than_that_file(file: CgroupFile, data: bytes) -> None:
    try:
        parsed = file.parser(frozenset[str]().__contains__)(data)
    except ValueError:
        return
    assert len(parsed) == len(file.metrics)
    assert all(value is None or isinstance(value, int) for value in parsed)


def test_a_garbled_file_costs_its_own_columns_only(tmp_path: Path) -> None:
    version_2(tmp_path, UNIT)
    with opened(tmp_path) as (_, use):
        use.read()
        (tmp_path / UNIT / "io.stat").write_text("8:0 rbytes=x wbytes=1")
        rows = [use.read() for _ in range(cgroups.BACK_OFF)]
        lost = {
            channel.metric
            for channel, value in zip(use.channels, rows[-1], strict=True)
            if value is None
        }
    assert lost == {f"storage.subject.{name}" for name in ("reads", "writes")} | {
        f"storage.subject.{name}_bytes" for name in ("read", "write")
    }
