"""The thread in C and the sampler over it: slices on the grid, plans swapped, nothing lost."""

from __future__ import annotations

import os
import threading
import time
from array import array
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from reveal_collector.kernel.errors import LayoutChanged
from reveal_collector.native import load
from reveal_collector.readers.plan import FileScan, Gated, MemoryPlan, TokenPlan
from reveal_collector.readers.raw_slice import MISSING, RawSlice
from reveal_collector.readers.source import Source
from reveal_collector.readers.textfile import Layout as Learned
from reveal_collector.readers.textfile import TokenSource, channel, is_number, rows
from reveal_collector.sampling.clock import phase_ns
from reveal_collector.sampling.sampler import Sampler
from reveal_contract.channels import Channel
from reveal_contract.metric import Kind, Lane

if load().library is None:
    pytest.skip(load().unavailable, allow_module_level=True)

from reveal_collector.native.scanner import (
    FAILED,
    NativePlan,
    NativeSlice,
    PlanRunner,
    RowLayout,
    ScanEntry,
    Ticker,
)
from reveal_collector.sampling.native_sampler import NativeSampler

PERIOD = 100_000_000
SECOND = 1_000_000_000
ONE = TokenPlan(1, (), (0,))


class Files:
    """Files of one number each, kept open."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._fds: dict[str, int] = {}

    def put(self, name: str, value: int) -> None:
        (self._folder / name).write_text(f"{value}\n")

    def scan(self, name: str, gate: Gated | None = None) -> FileScan:
        fd = self._fds.setdefault(name, os.open(self._folder / name, os.O_RDONLY))
        return FileScan(ONE, fd, 4, gate)

    def close(self) -> None:
        for fd in self._fds.values():
            os.close(fd)


@pytest.fixture
def files(tmp_path: Path) -> Iterator[Files]:
    made = Files(tmp_path)
    for value, name in enumerate("abc", 1):
        made.put(name, value)
    yield made
    made.close()


def test_slow_files_are_read_at_their_ticks_and_kept_for_the_slice(files: Files) -> None:
    entries = [
        ScanEntry(0, [files.scan("a")], 0),
        ScanEntry(1, [files.scan("b")], 0, slot=0),
        ScanEntry(2, [files.scan("c")], 1, slot=2),
    ]
    with PlanRunner(NativePlan(entries, RowLayout(1, 2, 3))) as made:
        made.begin()
        assert made.slow == [MISSING, MISSING]
        assert (made.tick(0), made.slow) == ([1], [2, MISSING])
        files.put("b", 20)
        assert (made.tick(1), made.slow) == ([1], [2, MISSING])
        assert (made.tick(3), made.slow) == ([1], [2, 3])
        made.begin()
        made.tick(0)
        assert made.slow == [20, MISSING]


def test_a_file_that_dies_is_missing_and_flagged_and_the_others_go_on(
    files: Files, tmp_path: Path
) -> None:
    folder = os.open(tmp_path, os.O_RDONLY)  # EISDIR stands for ENODEV
    entries = [ScanEntry(0, [FileScan(ONE, folder)], 0), ScanEntry(1, [files.scan("b")], 1)]
    with PlanRunner(NativePlan(entries, RowLayout(2, 0, 2))) as made:
        os.close(folder)
        made.begin()
        assert made.tick(0) == [MISSING, 2]
        assert made.flags == bytes([FAILED, 0])


def test_a_descriptor_closed_and_used_anew_never_shows_anothers_numbers(files: Files) -> None:
    scan = files.scan("a")
    with PlanRunner(NativePlan([ScanEntry(0, [scan], 0)], RowLayout(1, 0, 1))) as made:
        other = files.scan("b")
        os.dup2(other.fd, scan.fd)
        made.begin()
        assert made.tick(0) == [1]


def test_columns_of_nobody_are_missing(files: Files) -> None:
    with PlanRunner(NativePlan([ScanEntry(0, [files.scan("b")], 2)], RowLayout(4, 0, 1))) as made:
        made.begin()
        assert made.tick(0) == [MISSING, MISSING, 2, MISSING]


def test_held_values_are_taken_as_they_are_at_the_tick() -> None:
    values = array("q", [1, MISSING])
    with PlanRunner(
        NativePlan([ScanEntry(0, [FileScan(MemoryPlan(values))], 0)], RowLayout(2, 0, 1))
    ) as made:
        made.begin()
        assert made.tick(0) == [1, MISSING]
        values[1] = 5
        assert made.tick(1) == [1, 5]


def test_files_rest_behind_a_gate_until_the_first_of_them_moves(files: Files) -> None:
    def gated(name: str, leads: bool = False) -> FileScan:
        return files.scan(name, Gated("x", leads))

    entries = [
        ScanEntry(0, [gated("a", leads=True), gated("b")], 0),
        ScanEntry(1, [gated("c")], 0, slot=1),
    ]
    with PlanRunner(NativePlan(entries, RowLayout(2, 1, 2, quiet=2, back_off=4))) as made:
        made.begin()
        assert made.tick(0) == [1, 2]
        files.put("b", 20)
        assert made.tick(1) == [1, 2]  # not looked at, as its leader stood still
        files.put("a", 10)
        assert made.tick(2) == [10, 20]
        for tick in (3, 4):
            made.tick(tick)  # two reads without a change: resting
        files.put("a", 11)
        seen = [made.tick(tick)[0] for tick in range(5, 9)]
        assert seen[-1] == 11
        assert seen.count(10) >= 1
        made.begin()
        files.put("c", 30)
        made.tick(0)
        made.tick(1)
        assert made.slow == [30]  # something had moved since it was read last


@pytest.fixture
def ticking() -> Iterator[Callable[..., Ticker]]:
    made: list[Ticker] = []

    def start(scan: NativePlan, phase: int = 0, period: int = PERIOD) -> Ticker:
        made.append(Ticker(scan, phase, period))
        return made[-1]

    yield start
    for ticker in made:
        ticker.stop()
        ticker.close()


def plan_of(files: Files, *names: str) -> NativePlan:
    return NativePlan(
        [ScanEntry(0, [files.scan(name) for name in names], 0)], RowLayout(len(names), 0, 1)
    )


def soon(ticker: Ticker) -> NativeSlice:
    taken = ticker.wait(3 * SECOND)
    assert taken is not None
    return taken


def test_slices_begin_on_the_grid_and_another_plan_at_the_next_one(
    files: Files, ticking: Callable[..., Ticker]
) -> None:
    phase = 123_456_789 % PERIOD
    ticker = ticking(plan_of(files, "a"), phase)
    first = soon(ticker)
    assert first.due % SECOND == phase
    assert list(first.fast) == [1] * 10
    assert abs(first.start_ns - (time.time_ns() - time.monotonic_ns() + first.due)) < SECOND // 10
    ticker.swap(plan_of(files, "c"))  # given up for the one after it
    number = ticker.swap(plan_of(files, "b", "a"))
    second, third = soon(ticker), soon(ticker)
    assert (second.due, third.due) == (first.due + SECOND, first.due + 2 * SECOND)
    late = second.plan == first.plan  # the swap came after the slice had begun
    assert list((third if late else second).fast) == [2, 1] * 10
    assert third.plan == number


def test_stopping_ends_within_a_tick_and_leaves_what_was_read(
    files: Files, ticking: Callable[..., Ticker]
) -> None:
    ticker = ticking(plan_of(files, "a"))
    begun = soon(ticker).due + SECOND
    time.sleep(max(0, begun + 2.5 * PERIOD - time.monotonic_ns()) / SECOND)
    before = time.monotonic()
    ticker.stop()
    assert time.monotonic() - before < 0.05
    rest = ticker.wait(0)
    assert rest is not None
    assert 2 <= len(rest.lateness) <= 4
    assert list(rest.fast) == [1] * len(rest.lateness)
    assert ticker.wait(0) is None


class Counter:
    """A slow or fast source without a plan."""

    def __init__(self, name: str, lane: Lane) -> None:
        self.name, self.lane, self.reads = name, lane, 0
        self.channels: tuple[Channel, ...] = (Channel(f"{name}.x", "", Kind.COUNTER, 1.0, lane),)

    def open(self) -> None: ...

    def read(self) -> Sequence[int | None]:
        self.reads += 1
        return [self.reads]

    def close(self) -> None: ...


def learn(text: str) -> Learned:
    return [
        (start + 1, channel("memory.vm.pgfault", tokens[0]))
        for start, tokens in rows(text)
        if len(tokens) == 2 and is_number(tokens[1])
    ]


def text_source(path: Path, name: str, lane: Lane = Lane.FAST) -> TokenSource:
    made = TokenSource(name, lane, path, learn)
    made.open()
    return made


class Run:
    """A sampler that runs until the slices asked for are there."""

    def __init__(self, *sources: Source) -> None:
        self.slices: list[RawSlice] = []
        self._more = threading.Condition()
        self.sampler = NativeSampler("n", sources, self._take)

    def _take(self, raw: RawSlice) -> None:
        with self._more:
            self.slices.append(raw.copy())
            self._more.notify()

    def __enter__(self) -> Run:
        self.sampler.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.sampler.stop()

    def until(self, enough: Callable[[RawSlice], bool]) -> RawSlice:
        with self._more:
            assert self._more.wait_for(
                lambda: bool(self.slices) and enough(self.slices[-1]), timeout=6
            )
            return self.slices[-1]


def columns(raw: RawSlice, number: int) -> list[int]:
    return list(raw.fast)[number :: len(raw.table.fast)]


def labels(raw: RawSlice) -> list[str]:
    return [each.instance for each in raw.table.fast]


def test_a_sampler_in_c_gives_what_the_one_in_python_gives(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("a 1\nb 2\n")
    (tmp_path / "s").write_text("c 3\n")

    def sources() -> list[Source]:
        return [
            text_source(tmp_path / "f", "f"),
            Counter("slow", Lane.SLOW),
            text_source(tmp_path / "s", "s", Lane.SLOW),
        ]

    plain: list[RawSlice] = []
    sampler = Sampler("n", sources(), plain.append)
    due = sampler.first_due()
    sampler.take_slice(due)
    with Run(*sources()) as run:
        raw = run.until(lambda raw: len(raw.lateness) == 10)
    assert raw.table.key == plain[0].table.key
    assert list(raw.fast) == list(plain[0].fast) == [1, 2] * 10
    assert list(raw.slow) == list(plain[0].slow) == [1, 3]
    assert (raw.sequence * SECOND + phase_ns("n", PERIOD) - due) % SECOND == 0
    assert raw.sequence > plain[0].sequence


def test_a_new_row_costs_its_file_part_of_a_slice_and_the_others_nothing(tmp_path: Path) -> None:
    path, steady = tmp_path / "f", tmp_path / "g"
    path.write_text("a 1\nb 2\n")
    steady.write_text("x 7\n")
    with Run(text_source(path, "f"), text_source(steady, "g")) as run:
        run.until(lambda raw: len(raw.lateness) == 10)
        path.write_text("a 1\nnew 3\nb 2\n")
        after = run.until(lambda raw: labels(raw) == ["a", "new", "b", "x"])
        assert MISSING not in after.fast
        lost = [raw for raw in run.slices if MISSING in raw.fast]
        assert len(lost) <= 2  # where it came at the end of a slice, the next one's too
        assert all(set(columns(raw, len(raw.table.fast) - 1)) == {7} for raw in run.slices)


def test_a_fast_source_without_a_plan_is_read_along_with_the_ticks(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("a 1\n")
    counter = Counter("own", Lane.FAST)
    with Run(counter, text_source(tmp_path / "f", "f")) as run:
        raw = run.until(lambda raw: len(raw.lateness) == 10 and MISSING not in raw.fast)
    assert columns(raw, 1) == [1] * 10
    counts = columns(raw, 0)
    assert counts == list(range(counts[0], counts[0] + 10))


def test_a_slow_file_that_changed_is_read_by_its_source_in_the_same_slice(tmp_path: Path) -> None:
    path = tmp_path / "s"
    path.write_text("a 1\n")
    with Run(text_source(path, "s", Lane.SLOW)) as run:
        run.until(lambda raw: list(raw.slow) == [1])
        path.write_text("b 5\na 4\n")
        run.until(lambda raw: list(raw.slow) == [5, 4])
        assert all(list(raw.slow) in ([1], [4], [5, 4]) for raw in run.slices)


class Newborns:
    """A fast source of held values whose columns come from outside; the new one reads 0 first."""

    name, lane = "newborns", Lane.FAST

    def __init__(self) -> None:
        self.wanted = self.names = ("a",)
        self.shown: set[str] = {"a"}
        self.reads: list[int] = []
        self.took_rows: list[list[int]] = []
        self.call: Callable[[], None] = lambda: None
        self._held = MemoryPlan(array("q", [7]))

    @property
    def channels(self) -> tuple[Channel, ...]:
        return tuple(Channel("newborns.x", name, Kind.COUNTER) for name in self.names)

    def open(self) -> None: ...

    def read(self) -> Sequence[int | None]:
        self.reads.append(time.monotonic_ns())
        if self.names != self.wanted:
            self.names = self.wanted
            self._held = MemoryPlan(array("q", [7] * len(self.names)))
            raise LayoutChanged(self.name)
        return list(self._held.values)

    def scans(self) -> Sequence[FileScan]:
        return [FileScan(self._held)]

    def stale(self) -> bool:
        return self.names != self.wanted

    def call_when_stale(self, call: Callable[[], None]) -> None:
        self.call = call

    def hidden_columns(self) -> Sequence[int]:
        return [at for at, name in enumerate(self.names) if name not in self.shown]

    def observe(self, row: Sequence[int]) -> None:
        self.took_rows.append(list(row))
        self.shown |= set(self.names)

    def stop_observing(self) -> None: ...

    def close(self) -> None: ...


def test_a_source_that_calls_is_read_at_once_and_its_new_column_begins_at_0() -> None:
    source = Newborns()
    with Run(source) as run:
        begun = run.until(lambda raw: len(raw.lateness) == 10).sequence
        asked = time.monotonic_ns()
        source.wanted = ("a", "b")
        source.call()
        run.until(lambda raw: len(raw.table.fast) == 2 and columns(raw, 1) == [7] * 10)
    assert source.reads[0] - asked < PERIOD
    shown = [columns(raw, 1) for raw in run.slices if len(raw.table.fast) == 2]
    assert shown[0] == [0] * 10
    assert all(row in ([0] * 10, [7] * 10) for row in shown)
    assert all(columns(raw, 0)[0] == 7 for raw in run.slices if raw.sequence > begun)
    assert [7, 7] in source.took_rows


def test_a_ticker_that_is_closed_can_still_be_woken(files: Files) -> None:
    ticker = Ticker(plan_of(files, "a"), 0, PERIOD)
    began = time.monotonic()
    ticker.wake()
    assert ticker.wait(3 * SECOND) is None
    assert time.monotonic() - began < 0.5
    ticker.stop()
    ticker.close()
    ticker.wake()
