"""Cgroups read by the C scanner: the same rows as the Python sources, with its own schedule."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveal_collector.native import load
from reveal_collector.readers.plan import FileScan, SumPlan, TextForm, TokenPlan, scans_of
from reveal_collector.readers.raw_slice import MISSING, RawSlice, gather
from reveal_collector.readers.reference_reader import Mismatch, SumReader
from reveal_collector.readers.source import Source
from reveal_collector.sampling.feed import Feed
from reveal_collector.subjects import cgroups
from reveal_contract.metric import Lane
from support.file_mutations import Text, garbage, mutations
from support.hosts.cgroups import HYBRID, V1, V2, Layout, add_cgroups
from support.hosts.tree import Tree
from support.property_tests import examples

if load().library is None:
    pytest.skip(load().unavailable, allow_module_level=True)

import threading
from array import array
from collections.abc import Sequence

from reveal_collector.native.scanner import MISMATCH, NativePlan, PlanRunner, ScanEntry
from reveal_collector.native.scanner import RowLayout as Rows
from reveal_collector.readers.plan import Gated
from reveal_collector.sampling.native_sampler import NativeSampler
from support.native_scan_pass import start_scan_pass

JOB = "/job.service"
PLAN = TokenPlan(1, (), (0,))


@pytest.fixture(scope="module")
def folder() -> Iterator[str]:
    with tempfile.TemporaryDirectory() as path:
        yield path


WORDS = st.sampled_from(
    [b"Read 5", b"Read 7", b"Write 2", b"Total", b"7", b"Read 18446744073709551615", b"Read -3",
     b"rios=5", b"rios 9", b"=", b"Rea 1", b"Readx 1", b"", b"Read", b"Read " + b"9" * 21,
     b"Read -9223372036854775808"]
)  # fmt: skip
NAMES = st.sampled_from(
    [b"8:0", b"8:0", b"8:16", b"253:1", b"(unknown)", b" 8:0", b"Read", b"8:0x"]
)
LINES = st.lists(st.tuples(NAMES, st.lists(WORDS, max_size=3)), max_size=4).map(
    lambda lines: b"\n".join(b" ".join((name, *words)) for name, words in lines)
)


@examples(300)
@given(
    texts=st.lists(LINES, min_size=1, max_size=5),
    form=st.sampled_from([TextForm(), TextForm(blanks=b"=")]),
    devices=st.lists(st.sampled_from([b"8:0", b"8:16"]), unique=True),
    offsets=st.sampled_from([(), (7, -9, 2**63 - 1)]),
)
def test_sums_of_devices_are_the_same(
    folder: str,
    texts: list[bytes],
    form: TextForm,
    devices: list[bytes],
    offsets: tuple[int, ...],
) -> None:
    ignored = (b"(unknown)", b"253:1")
    plan = SumPlan((b"Read", b"Write", b"rios"), form, tuple(devices), ignored, offsets)
    reference = SumReader(plan)
    path = Path(folder) / "sums"
    path.write_bytes(b"")
    with path.open("rb") as file, start_scan_pass([FileScan(plan, file.fileno(), 4096)]) as runner:
        for text in (*texts, texts[-1], texts[0]):
            path.write_bytes(text)
            try:
                expected = reference.row(text).tolist()
            except Mismatch:
                expected = [MISSING] * 3
            assert runner.tick(0) == expected


def test_devices_leave_without_another_plan_and_new_devices_need_it(folder: str) -> None:
    path = Path(folder) / "io.stat"
    both = "8:0 rbytes=10 wbytes=5 rios=1 wios=1\n254:1 rbytes=7 rios=2\n"
    path.write_text(both)
    plan = SumPlan((b"rbytes", b"rios"), TextForm(blanks=b"="), (b"8:0", b"254:1"), (b"9:0",))
    with path.open("rb") as file, start_scan_pass([FileScan(plan, file.fileno(), 100)]) as runner:
        assert runner.tick(0) == [17, 3]
        path.write_text("8:0 rbytes=11 wbytes=5 rios=1 wios=1\n")
        assert runner.tick(1) == [18, 3]
        path.write_text("8:0 rbytes=12 rios=1\n254:1 \n9:0 rbytes=900 rios=9\nTotal 5\n")
        assert runner.tick(2) == [19, 3]
        path.write_text(both)
        assert runner.tick(3) == [19, 3]
        assert runner.flags == b"\0"
        for number, text in enumerate(("8:0 rbytes=", f"{both}8:16 rbytes=5\n", "254:1 rios=3\n")):
            path.write_text(text)
            assert runner.tick(4 + number) == [MISSING, MISSING]
        assert runner.flags == bytes([MISMATCH])


def cells(values: Sequence[int | None]) -> list[int]:
    row = array("q")
    gather(row, values)
    return row.tolist()


def opened(root: Path, version: str, name: str) -> tuple[Tree, Source]:
    tree = Tree(root)
    add_cgroups(tree, Layout(version=version), others={JOB: (0.5, 42)})
    source = next(each for each in cgroups.sources(tree.roots) if each.name == name)
    source.open()
    return tree, source


@pytest.mark.parametrize("version", [V1, V2, HYBRID])
def test_every_file_of_a_cgroup_has_a_plan_and_gives_the_same_row(
    version: str, tmp_path: Path
) -> None:
    tree, source = opened(tmp_path, version, "cgroups")
    with start_scan_pass(scans_of(source) or ()) as runner:
        for tick in range(4):
            row = runner.tick(tick)
            assert row == cells(source.read())
            assert MISSING not in row
            tree.advance(3.0)
        assert runner.flags == b"\0"
    index = [each.metric for each in source.channels].index("storage.subject.read_bytes")
    assert row[index] > 0
    source.close()


FILES = {
    V1: ("memory/job.service/memory.stat", "memory/job.service/memory.oom_control",
         "memory/job.service/memory.usage_in_bytes"),
    V2: ("job.service/memory.stat", "job.service/memory.events", "job.service/cpu.pressure",
         "job.service/pids.current"),
}  # fmt: skip


@pytest.fixture(
    scope="module", params=[(version, file) for version in FILES for file in FILES[version]]
)
def garbled(request: pytest.FixtureRequest) -> Iterator[tuple[str, Path]]:
    version, file = request.param
    with tempfile.TemporaryDirectory() as path:
        _, source = opened(Path(path), version, "cgroups")
        source.close()
        yield path, Path(path) / "cgroup" / file


@examples(25)
@given(change=st.one_of(mutations(), garbage()))
def test_any_text_gives_the_same_row_or_is_flagged(garbled: tuple[str, Path], change: Text) -> None:
    root, path = garbled
    roots = Tree(Path(root)).roots
    source = next(each for each in cgroups.sources(roots) if each.name == "cgroups")
    source.open()
    original = path.read_bytes()
    with start_scan_pass(scans_of(source) or (), room=8) as runner:
        before = runner.tick(0)
        try:
            path.write_bytes(change(original))
            row, flags = runner.tick(1), runner.flags
            expected = cells(source.read())
            kept = [index for index, value in enumerate(row) if value != MISSING]
            assert [row[index] for index in kept] == [expected[index] for index in kept]
            assert (flags == b"\0") == (len(kept) == len(row))
        finally:
            path.write_bytes(original)
        source.read()
        assert runner.tick(2) == before
    source.close()


class Numbers:
    """Files of one number each, behind a gate that the first leads."""

    def __init__(self, folder: Path, *names: str) -> None:
        self._folder, self._files = folder, {}
        for name in names:
            self.put(name, 1)
            self._files[name] = (folder / name).open("rb")

    def put(self, name: str, value: int) -> None:
        (self._folder / name).write_text(f"{value}\n")

    def scan(self, name: str, leads: bool = False) -> FileScan:
        return FileScan(PLAN, self._files[name].fileno(), 4, Gated("x", leads))

    def close(self) -> None:
        for file in self._files.values():
            file.close()


@pytest.fixture
def files(tmp_path: Path) -> Iterator[Numbers]:
    numbers = Numbers(tmp_path, "clock", "quota", "memory")
    yield numbers
    numbers.close()


def test_a_fast_file_that_never_changes_is_read_less_often_behind_a_busy_clock(
    files: Numbers,
) -> None:
    entries = [ScanEntry(0, [files.scan("clock", leads=True), files.scan("quota")], 0)]
    with PlanRunner(NativePlan(entries, Rows(2, 0, 1, quiet=3, back_off=4))) as runner:
        runner.begin()
        for tick in range(8):
            files.put("clock", 10 + tick)
            assert runner.tick(tick) == [10 + tick, 1]
        files.put("quota", 2)
        values = []
        for tick in range(8, 12):
            files.put("clock", 10 + tick)
            values.append(runner.tick(tick)[1])
        assert values[-1] == 2
        assert 1 in values
        files.put("clock", 99)
        files.put("quota", 3)  # it changes now: read with every step of the clock
        assert runner.tick(12) == [99, 3]


def test_files_whose_clock_is_not_read_every_tick_do_not_rest(files: Numbers) -> None:
    slow = [files.scan("clock", leads=True), files.scan("memory")]
    with PlanRunner(
        NativePlan([ScanEntry(0, slow, 0, slot=0)], Rows(0, 2, 1, quiet=1, back_off=5))
    ) as runner:
        for second in range(4):
            files.put("memory", second)
            runner.begin()
            runner.tick(0)
            assert runner.slow == [1, second]


class Slices:
    """What a sampler over the sources of subjects hands over."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self.received: list[RawSlice] = []
        self._more = threading.Condition()
        self.sampler = NativeSampler("n", sources, self._take)

    def _take(self, raw: RawSlice) -> None:
        with self._more:
            self.received.append(raw.copy())
            self._more.notify()

    def until(self, subject: str, slices: int) -> list[RawSlice]:
        """Wait until this many slices have the subject, and return them."""

        def matching() -> list[RawSlice]:
            return [raw for raw in self.received if subject in {c.instance for c in raw.table.slow}]

        with self._more:
            assert self._more.wait_for(lambda: len(matching()) >= slices, timeout=12)
            return matching()


def test_a_new_cgroup_counts_from_0_in_its_first_slice_and_the_plan_reads_the_rest(
    tmp_path: Path,
) -> None:
    tree = Tree(tmp_path)
    add_cgroups(tree, Layout(version=V2), others={JOB: (0.5, 42)})
    tree.advance(2.0)
    sources = cgroups.sources(tree.roots)[:2]
    for source in sources:
        source.open()
    slices = Slices(sources)
    slices.sampler.start()
    try:
        slices.until(JOB, 1)
        make_late_service(tree)
        raw_slices = slices.until("/late.service", 3)
    finally:
        slices.sampler.stop()
        for source in sources:
            source.close()
    counts = [faults_of(raw, "/late.service") for raw in raw_slices]
    assert counts[0] == 0
    assert counts[2] > 0


def test_in_the_rare_lane_a_new_cgroup_is_read_by_its_python_source(tmp_path: Path) -> None:
    tree, source = opened(tmp_path, V2, "cgroups")
    feed = Feed(source)
    make_late_service(tree)
    end = time.monotonic() + 10
    while not feed.changed and time.monotonic() < end:
        feed.read()
    feed.adopt_columns()
    scans_of(source)
    label = "memory.subject.page_faults{/late.service}"
    index = [each.label for each in feed.table_columns].index(label)
    assert [feed.read()[index] for _ in range(4)] == [0] * 4  # the scanner has not shown it yet
    feed.move(Lane.RARE)
    assert [feed.read()[index] for _ in range(3)][-1]
    source.close()


def make_late_service(tree: Tree) -> None:
    """A new cgroup with all its files at once, as the kernel makes one.

    File by file on a slow disk it could be looked at while only some are there.
    """
    with tempfile.TemporaryDirectory(dir=tree.root) as folder:
        other = Tree(Path(folder))
        add_cgroups(other, Layout(version=V2), others={"/late.service": (0.5, 43)})
        other.advance(4.0)
        (other.roots.cgroup / "late.service").rename(tree.roots.cgroup / "late.service")


def faults_of(raw: RawSlice, subject: str) -> int:
    name = ("memory.subject.page_faults", subject)
    names = [(each.metric, each.instance) for each in raw.table.slow]
    return raw.slow[names.index(name)]
