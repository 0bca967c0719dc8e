"""The C scanner and the Python reader return the same rows for the same files."""

from __future__ import annotations

import random
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given

from reveal_collector.kernel_interfaces.errors import LayoutChanged, ParseError, Unsupported
from reveal_collector.native import load
from reveal_collector.readers.plan import (
    QUIET,
    MatrixPlan,
    scans_of,
)
from reveal_collector.readers.raw_slice import MISSING, gather
from reveal_collector.readers.source import Roots, Source
from reveal_collector.readers.sysfs_attributes import AttributeSource
from reveal_collector.registry import FACTORIES
from reveal_collector.subjects import cgroups
from support import big_host
from support.file_mutations import Text, garbage, mutations
from support.hosts.complete_hosts import HOSTS
from support.hosts.tree import Tree
from support.property_tests import examples

if load().library is None:
    pytest.skip(load().unavailable, allow_module_level=True)

from array import array

from reveal_collector.native.scanner import MISMATCH
from support.native_scan_pass import start_scan_pass

TREE = Path(__file__).parents[3] / "fixtures/hosts/vm-2cpu"
SEVEN, MANY = (0, 1, 2, 3, 4, 6, 7), tuple(range(224))


def opened(roots: Roots, only: str = "") -> list[Source]:
    """Return the sources that open here and have plans, or the source of a name."""
    found = []
    own_sources = (each for factory in FACTORIES for each in factory(roots))
    for source in (*own_sources, *cgroups.sources(roots)):
        if only not in ("", source.name):
            continue
        try:
            source.open()
        except Unsupported:
            continue
        if scans_of(source):
            found.append(source)
        else:
            source.close()
    return found


def cells(values: Sequence[int | None]) -> list[int]:
    row = array("q")
    gather(row, values)
    return row.tolist()


def write_nodes(root: Path, cpus: Sequence[int]) -> None:
    """Assign half of the CPUs to each of two NUMA nodes."""
    half = len(cpus) // 2
    for node, part in enumerate((cpus[:half], cpus[half:])):
        folder = root / f"sys/devices/system/node/node{node}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "cpulist").write_text(",".join(map(str, part)) + "\n")


@pytest.fixture(params=["recorded", "seven", "many"])
def roots(request: pytest.FixtureRequest, tmp_path: Path) -> Roots:
    if request.param == "recorded":
        return Roots(TREE / "proc", TREE / "sys", TREE / "cgroup")
    cpus = SEVEN if request.param == "seven" else MANY
    write_nodes(tmp_path, cpus)
    return big_host.write(tmp_path, cpus)


def test_rows_of_whole_hosts_are_the_same(roots: Roots) -> None:
    sources = opened(roots)
    assert {"stat", "softirqs", "interrupts", "vmstat", "softnet"} <= {s.name for s in sources}
    for source in sources:
        with start_scan_pass(scans_of(source) or ()) as runner:
            assert runner.tick(0) == cells(source.read()), source.name
            assert runner.tick(1) == cells(source.read()), source.name
            assert runner.flags == b"\0", source.name
        source.close()


# a tree of 224 CPUs and thousands of interrupts takes its time to make
@pytest.mark.parametrize(
    "host", [pytest.param(host, marks=[pytest.mark.slow] * (host == "dgx_h100")) for host in HOSTS]
)
def test_simulated_hosts_give_the_same_rows_while_they_work(host: str, tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    HOSTS[host](tree)
    reading = [(source, start_scan_pass(scans_of(source) or ())) for source in opened(tree.roots)]
    for tick in range(3):
        tree.advance(0.1, load=3.0)
        for source, runner in list(reading):
            row = runner.tick(tick)
            try:
                assert row == cells(source.read()), source.name
            except (LayoutChanged, ParseError):  # a device's first work: its plan fails too
                assert runner.flags != b"\0", source.name
                reading.remove((source, runner))
                runner.__exit__()
                source.close()
    assert len(reading) >= 10
    for source, runner in reading:
        runner.__exit__()
        source.close()


def moved(text: str, cpus: int, seed: int) -> str:
    """The counts of every line, of those that count at all, a bit further on."""
    dice = random.Random(seed)

    def step(found: re.Match[str]) -> str:
        return str(int(found[0]) + dice.choice((0, 0, 1, 3, 40)))

    return re.sub(
        r"(?m)^( *[a-zA-Z0-9_]+:? )(.*)$",
        lambda line: line[1] + re.sub(r"(?<!\S)[1-9]\d*(?!\S)", step, line[2], count=cpus),
        text,
    )


@pytest.mark.parametrize("version", [1, 2])
def test_cgroups_rest_and_wake_alike(version: int, tmp_path: Path) -> None:
    clock = write_cgroup(tmp_path / "cgroup", version)
    source = opened(Roots(tmp_path / "proc", tmp_path / "sys", tmp_path / "cgroup"), "cgroup-cpu")[
        0
    ]
    with start_scan_pass(scans_of(source) or ()) as runner:
        for tick in range(QUIET + 12):
            if tick in (3, QUIET + 5):
                clock(tick)
            ours, theirs = runner.tick(tick), cells(source.read())
            resting = tick - 3 > QUIET and ours != theirs
            assert ours == theirs or resting, tick
        assert ours == theirs
        assert runner.flags == b"\0"
    source.close()


def write_cgroup(root: Path, version: int) -> Callable[[int], None]:
    """One unit with a quota; gives what moves its CPU clock on."""
    usage = root / ("cpuacct/job.service/cpuacct.usage" if version == 1 else "job.service/cpu.stat")
    quota = root / "cpu/job.service/cpu.stat"
    for folder in {usage.parent, usage.parent.parent, quota.parent, quota.parent.parent}:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "cgroup.procs").write_text("42\n")
    if version == 2:
        (root / "cgroup.controllers").write_text("cpu\n")

    def move(now: int) -> None:
        limits = f"nr_periods 5\nnr_throttled {now}\n"
        if version == 1:
            quota.write_text(f"{limits}throttled_time {now}000\n")
            usage.write_text(f"{now}000000\n")
        else:
            text = f"usage_usec {now}000\nuser_usec 1\n{limits}throttled_usec {now}\n"
            usage.write_text(text)

    move(1)
    return move


@pytest.mark.parametrize("cpus", [SEVEN, MANY])
@pytest.mark.parametrize("name", ["stat", "softirqs", "cpuclock", "interrupts"])
def test_rows_stay_the_same_while_a_host_works(
    name: str, cpus: tuple[int, ...], tmp_path: Path
) -> None:
    write_nodes(tmp_path, cpus)
    roots = big_host.write(tmp_path, cpus)
    file = {"cpuclock": "schedstat"}.get(name, name)
    source = opened(roots, name)[0]
    runner = start_scan_pass(scans_of(source) or ())
    for second in range(12):
        path = tmp_path / "proc" / file
        if second % 4:
            path.write_text(moved(path.read_text(), len(cpus), second))
        expected = cells(source.read())
        assert runner.tick(second) == expected
    assert runner.flags == b"\0"


def test_a_host_of_many_cpus_shows_the_extremes(tmp_path: Path) -> None:
    write_nodes(tmp_path, MANY)
    source = opened(big_host.write(tmp_path, MANY), "stat")[0]
    columns = {each.label: n for n, each in enumerate(source.channels)}
    assert "cpu.user{3}" not in columns
    runner = start_scan_pass(scans_of(source) or ())
    first = runner.tick(0)
    path = tmp_path / "proc/stat"
    path.write_text(path.read_text().replace("cpu17 117 ", "cpu17 127 "))
    row = runner.tick(1)
    assert row[columns["cpu.percpu.user.max"]] - first[columns["cpu.percpu.user.max"]] == 10
    assert row[columns["cpu.percpu.user.argmax"]] == 17
    assert row[columns["cpu.percpu.busy.max"]] == 10
    assert row[columns["cpu.numa.user{0}"]] - first[columns["cpu.numa.user{0}"]] == 10
    assert row[columns["cpu.numa.user{1}"]] == first[columns["cpu.numa.user{1}"]]
    assert row[columns["cpu.percpu.user.spread"]] == 0


FILES = {
    "stat": "proc/stat", "softirqs": "proc/softirqs", "interrupts": "proc/interrupts",
    "loadavg": "proc/loadavg", "meminfo": "proc/meminfo", "diskstats": "proc/diskstats",
    "psi": "proc/pressure/io", "netdev": "proc/1/net/dev", "snmp": "proc/1/net/snmp",
    "softnet": "proc/1/net/softnet_stat", "cpuclock": "cgroup/cpuacct/cpuacct.usage_percpu",
}  # fmt: skip


@pytest.fixture(scope="module")
def tree() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(shutil.copytree(TREE, Path(folder) / "host"))


def compare(tree: Path, name: str, change: Text) -> None:
    """Where the reader in Python has a row the scanner has the same, or asks to learn."""
    path = tree / FILES[name]
    original = path.read_bytes()
    source = opened(Roots(tree / "proc", tree / "sys", tree / "cgroup"), name)[0]
    scans, channels = scans_of(source) or (), source.channels
    runner = start_scan_pass(scans, room=8)
    before = runner.tick(0)
    try:
        path.write_bytes(change(original))
        row, flags = runner.tick(1), runner.flags
        try:
            expected: list[int] | None = cells(source.read())
        except (LayoutChanged, ParseError):
            expected = None
        if flags == b"\0":
            assert expected == row
            assert source.channels == channels
        else:
            blank = [index for index, value in enumerate(row) if value == MISSING]
            assert blank
            assert expected is None or source.channels == channels
            kept = {index for index in range(len(row)) if index not in blank}
            assert expected is None or all(row[index] == expected[index] for index in kept)
        path.write_bytes(original)
        assert runner.tick(2) == before
    finally:
        path.write_bytes(original)
        runner.__exit__()
        source.close()


@pytest.mark.parametrize("name", FILES)
@examples(40)
@given(change=mutations())
def test_changed_files_give_the_same_rows_or_none(tree: Path, name: str, change: Text) -> None:
    compare(tree, name, change)


@pytest.mark.parametrize("name", FILES)
@examples(40)
@given(spoil=garbage())
def test_any_bytes_give_the_same_rows_or_none(tree: Path, name: str, spoil: Text) -> None:
    compare(tree, name, spoil)


@pytest.mark.parametrize("name", FILES)
def test_an_emptied_file_is_no_row(tree: Path, name: str) -> None:
    compare(tree, name, lambda _: b"")


def test_a_row_of_a_matrix_that_first_counts_is_flagged(tmp_path: Path) -> None:
    source = opened(big_host.write(tmp_path), "interrupts")[0]
    scans = scans_of(source) or ()
    assert isinstance(scans[0].plan, MatrixPlan)
    runner = start_scan_pass(scans)
    runner.tick(0)
    path = tmp_path / "proc/interrupts"
    path.write_text(path.read_text().replace(" 99: 0", " 99: 1"))
    assert set(runner.tick(1)) == {MISSING}
    assert runner.flags == bytes([MISMATCH])


def test_a_word_is_what_it_was_until_its_source_reads_another(tmp_path: Path) -> None:
    folder = tmp_path / "sys/class/net/eth0"
    folder.mkdir(parents=True)
    (folder / "carrier_changes").write_text("2\n")
    (folder / "operstate").write_text("up\n")
    [source] = opened(Roots(tmp_path / "proc", tmp_path / "sys", tmp_path / "cgroup"), "nic")
    first = scans_of(source)
    with start_scan_pass(first or ()) as runner:
        assert runner.tick(0) == cells(source.read()) == [2, 1]
        assert scans_of(source) == first  # no new plan is needed
        (folder / "operstate").write_text("lowerlayerdown\n")
        runner.tick(1)
        assert runner.flags == bytes([MISMATCH])
    assert cells(source.read()) == [2, 0]
    assert scans_of(source) != first
    with start_scan_pass(scans_of(source) or ()) as runner:
        assert runner.tick(0) == [2, 0]
        assert runner.flags == b"\0"


def test_cpus_that_are_online_are_counted_by_their_list(tmp_path: Path) -> None:
    path = tmp_path / "sys/devices/system/cpu/online"
    path.parent.mkdir(parents=True)
    path.write_text("0-3,8\n")
    [source] = opened(Roots(tmp_path / "proc", tmp_path / "sys", tmp_path / "cgroup"), "online")
    with start_scan_pass(scans_of(source) or ()) as runner:
        assert runner.tick(0) == [5]
        path.write_text("0-3\n")
        runner.tick(1)
        assert runner.flags == bytes([MISMATCH])
    assert cells(source.read()) == [4]
    with start_scan_pass(scans_of(source) or ()) as runner:
        assert runner.tick(0) == [4]


def test_a_new_compressed_disk_is_found_within_seconds(tmp_path: Path) -> None:
    block = tmp_path / "sys/block"
    for name in ("zram0", "zram1"):
        (block / name).mkdir(parents=True)
        (block / name / "io_stat").write_text("       1        2        3        4\n")
    (block / "zram1").rename(tmp_path / "zram1")
    [source] = opened(Roots(tmp_path / "proc", tmp_path / "sys", tmp_path / "cgroup"), "zram")
    assert isinstance(source, AttributeSource)
    with start_scan_pass(scans_of(source) or ()) as runner:
        assert runner.tick(0) == [1, 2, 3, 4]
        (block / "zram0/io_stat").write_text("       1        2        3       40\n")
        assert runner.tick(1) == cells(source.read()) == [1, 2, 3, 40]
    assert not any(source.stale() for _ in range(10))
    (tmp_path / "zram1").rename(block / "zram1")
    assert any(source.stale() for _ in range(10))
    with pytest.raises(LayoutChanged):
        source.read()
    with start_scan_pass(scans_of(source) or ()) as runner:
        assert runner.tick(0) == [1, 2, 3, 40, 1, 2, 3, 4]
