"""The scanner in C and the reader in Python: the same rows of the same files."""

from __future__ import annotations

import random
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Self

import pytest
from hypothesis import given
from hypothesis import strategies as st

import big_host
from exploring import examples
from hosts.tree import Tree
from hosts.whole import HOSTS
from mutations import Text, garbage, mutations
from reveal_collector.native import load
from reveal_collector.registry import FACTORIES
from reveal_collector.scan import (
    QUIET,
    Columns,
    FileScan,
    Form,
    MatrixPlan,
    Mismatch,
    TokenPlan,
    TokenReader,
    Vector,
    scans_of,
)
from reveal_collector.slices import MISSING, gather
from reveal_collector.source import LayoutChanged, ParseError, Roots, Source, Unsupported
from reveal_collector.sources import subjects

if load().library is None:
    pytest.skip(load().absence, allow_module_level=True)

from array import array

from reveal_collector.native.scanner import GROWN, MISMATCH, Entry, Layout, Pass, Scan

TREE = Path(__file__).parents[1] / "fixtures/hosts/vm-2cpu"
SEVEN, MANY = (0, 1, 2, 3, 4, 6, 7), tuple(range(224))


def opened(roots: Roots, only: str = "") -> list[Source]:
    """Every source that opens here and states plans, or the one of a name."""
    found = []
    made_here = (made for factory in FACTORIES for made in factory(roots))
    for source in (*made_here, *subjects.sources(roots)):
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


def driven(scans: Sequence[FileScan], room: int = 1) -> Pass:
    width = sum(scan.plan.width for scan in scans)
    made = Pass(Scan([Entry(0, scans, 0, room=room)], Layout(width, 0, 1)))
    made.begin()
    return made


def cells(values: Sequence[int | None]) -> list[int]:
    row = array("q")
    gather(row, values)
    return row.tolist()


def write_nodes(root: Path, cpus: Sequence[int]) -> None:
    """The CPUs of two NUMA nodes, by halves."""
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
        with driven(scans_of(source) or ()) as made:
            assert made.tick(0) == cells(source.read()), source.name
            assert made.tick(1) == cells(source.read()), source.name
            assert made.flags == b"\0", source.name
        source.close()


# a tree of 224 CPUs and thousands of interrupts takes its time to make
@pytest.mark.parametrize(
    "host", [pytest.param(host, marks=[pytest.mark.slow] * (host == "dgx_h100")) for host in HOSTS]
)
def test_made_up_hosts_give_the_same_rows_while_they_work(host: str, tmp_path: Path) -> None:
    tree = Tree(tmp_path)
    HOSTS[host](tree)
    reading = [(source, driven(scans_of(source) or ())) for source in opened(tree.roots)]
    for tick in range(3):
        tree.advance(0.1, load=3.0)
        for source, made in list(reading):
            row = made.tick(tick)
            try:
                assert row == cells(source.read()), source.name
            except (LayoutChanged, ParseError):  # a device's first work: its plan fails too
                assert made.flags != b"\0", source.name
                reading.remove((source, made))
                made.__exit__()
                source.close()
    assert len(reading) >= 10
    for source, made in reading:
        made.__exit__()
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
    with driven(scans_of(source) or ()) as made:
        for tick in range(QUIET + 12):
            if tick in (3, QUIET + 5):
                clock(tick)
            ours, theirs = made.tick(tick), cells(source.read())
            resting = tick - 3 > QUIET and ours != theirs
            assert ours == theirs or resting, tick
        assert ours == theirs
        assert made.flags == b"\0"
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
    made = driven(scans_of(source) or ())
    for second in range(12):
        path = tmp_path / "proc" / file
        if second % 4:
            path.write_text(moved(path.read_text(), len(cpus), second))
        expected = cells(source.read())
        assert made.tick(second) == expected
    assert made.flags == b"\0"


def test_a_host_of_many_cpus_shows_the_extremes(tmp_path: Path) -> None:
    write_nodes(tmp_path, MANY)
    source = opened(big_host.write(tmp_path, MANY), "stat")[0]
    at = {each.label: n for n, each in enumerate(source.channels)}
    assert "cpu.user{3}" not in at
    made = driven(scans_of(source) or ())
    first = made.tick(0)
    path = tmp_path / "proc/stat"
    path.write_text(path.read_text().replace("cpu17 117 ", "cpu17 127 "))
    row = made.tick(1)
    assert row[at["cpu.percpu.user.max"]] - first[at["cpu.percpu.user.max"]] == 10
    assert row[at["cpu.percpu.user.argmax"]] == 17
    assert row[at["cpu.percpu.busy.max"]] == 10
    assert row[at["cpu.numa.user{0}"]] - first[at["cpu.numa.user{0}"]] == 10
    assert row[at["cpu.numa.user{1}"]] == first[at["cpu.numa.user{1}"]]
    assert row[at["cpu.percpu.user.spread"]] == 0


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
    made = driven(scans, room=8)
    before = made.tick(0)
    try:
        path.write_bytes(change(original))
        row, flags = made.tick(1), made.flags
        try:
            expected: list[int] | None = cells(source.read())
        except (LayoutChanged, ParseError):
            expected = None
        if flags == b"\0":
            assert expected == row
            assert source.channels == channels
        else:
            blank = [at for at, value in enumerate(row) if value == MISSING]
            assert blank
            assert expected is None or source.channels == channels
            kept = {at for at in range(len(row)) if at not in blank}
            assert expected is None or all(row[at] == expected[at] for at in kept)
        path.write_bytes(original)
        assert made.tick(2) == before
    finally:
        path.write_bytes(original)
        made.__exit__()
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


class OneFile:
    """A plan over a file whose text the test writes; closes what it opened."""

    def __init__(self, plan: TokenPlan, folder: str) -> None:
        self.path = Path(folder) / "file"
        self.path.write_bytes(b"")
        self.file = self.path.open("rb")
        self.reader = TokenReader(plan)
        self.made = driven([FileScan(plan, self.file.fileno(), 4096)])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.made.__exit__()
        self.file.close()

    def rows(self, data: bytes) -> tuple[list[int], list[int]]:
        """What C and what Python make of a text; all MISSING for none."""
        self.path.write_bytes(data)
        try:
            expected = self.reader.row(data).tolist()
        except Mismatch:
            expected = [MISSING] * self.reader.plan.width
        return self.made.tick(0), expected


@pytest.fixture(scope="module")
def folder() -> Iterator[str]:
    with tempfile.TemporaryDirectory() as made:
        yield made


NUMBERS = st.one_of(
    st.integers(-(2**65), 2**65).map(lambda n: str(n).encode()),
    st.sampled_from(
        [b"", b"-", b"--1", b"+5", b"1_0", b"0x1f", b"007", b"-0", b"18446744073709551615",
         b"18446744073709551616", b"-9223372036854775808", b"-9223372036854775809",
         b"0" * 40 + b"7", b"ffffffff", b"FFFFFFFFFFFFFFFF", b"1" * 17, b"g", b"5\0", b"\xb2"]
    ),
)  # fmt: skip


@examples(300)
@given(tokens=st.lists(NUMBERS, min_size=3, max_size=3), base=st.sampled_from([10, 16]))
def test_numbers_are_read_alike_or_refused_alike(
    folder: str, tokens: list[bytes], base: int
) -> None:
    with OneFile(TokenPlan(3, (), (0, 1, 2), Form(base=base, words=False)), folder) as one:
        ours, theirs = one.rows(b" ".join(tokens) + b"\n")
        assert ours == theirs


LINES = st.lists(
    st.lists(st.sampled_from([b"intr", b"cpu0", b"cpu", b"7", b"12", b"a=3", b"0.5", b"x/9", b""])),
    max_size=6,
).map(lambda lines: b"\n".join(b" ".join(line) for line in lines))
FORMS = (
    Form(), Form(cut=(b"intr",)), Form(keep=b"cpu"), Form(blanks=b"=/", deleted=b"."),
    Form(cut=(b"intr", b"cpu0"), keep=b"c", blanks=b"="), Form(ends=True, words=False),
    Form(ends=True, cut=(b"intr",), keep=b"i"),
)  # fmt: skip


@examples(300)
@given(text=LINES, later=LINES, form=st.sampled_from(FORMS))
def test_forms_are_the_same(folder: str, text: bytes, later: bytes, form: Form) -> None:
    """A plan learned from one text, read over it and over another."""
    tokens = form.shape(text).split()
    picks = tuple(at for at, token in enumerate(tokens) if token.isdigit())
    words = tuple((at, token) for at, token in enumerate(tokens) if not token.isdigit())
    with OneFile(TokenPlan(len(tokens), words, picks, form), folder) as one:
        for data in (text, later, text):
            ours, theirs = one.rows(data)
            assert ours == theirs


@examples(200)
@given(
    readings=st.lists(
        st.lists(st.integers(0, 2**64 - 1), min_size=5, max_size=5), min_size=1, max_size=6
    ),
    weights=st.sampled_from([(), (1, 2, 4, 8, 16)]),
)
def test_sums_and_extremes_are_the_same(
    folder: str, readings: list[list[int]], weights: tuple[int, ...]
) -> None:
    vectors = (Vector(((0,), (1,), (2,), (3,), (4,)), (7, 8, 9, 10, 11)), Vector(((0, 4),), (3,)))
    columns = Columns(((0, 1), (), (2,)), vectors, weights)
    with OneFile(TokenPlan(5, (), (4, 3, 2, 1, 0), columns=columns), folder) as one:
        for values in readings:
            ours, theirs = one.rows(" ".join(map(str, values)).encode())
            assert ours == theirs


def test_a_row_of_a_matrix_that_first_counts_is_flagged(tmp_path: Path) -> None:
    source = opened(big_host.write(tmp_path), "interrupts")[0]
    scans = scans_of(source) or ()
    assert isinstance(scans[0].plan, MatrixPlan)
    made = driven(scans)
    made.tick(0)
    path = tmp_path / "proc/interrupts"
    path.write_text(path.read_text().replace(" 99: 0", " 99: 1"))
    assert set(made.tick(1)) == {MISSING}
    assert made.flags == bytes([MISMATCH])


def test_a_text_longer_than_its_room_is_flagged_and_not_read(folder: str) -> None:
    plan = TokenPlan(1, (), (0,))
    path = Path(folder) / "long"
    path.write_bytes(b"1" + b" " * 5000)
    with path.open("rb") as file:
        made = driven([FileScan(plan, file.fileno(), 1)])
        assert made.tick(0) == [MISSING]
        assert made.flags == bytes([GROWN])
        assert driven([FileScan(plan, file.fileno(), 1)], room=16).tick(0) == [1]
