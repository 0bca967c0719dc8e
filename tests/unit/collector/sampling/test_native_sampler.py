"""The native sampler: the same slices as the Python sampler, changed layouts, new columns."""

from __future__ import annotations

import os
import threading
import time
from array import array
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from reveal_collector.kernel_interfaces.errors import LayoutChanged
from reveal_collector.native import load
from reveal_collector.readers.plan import FileScan, MemoryPlan
from reveal_collector.readers.raw_slice import MISSING, RawSlice
from reveal_collector.readers.source import Source
from reveal_collector.readers.textfile import Layout as Learned
from reveal_collector.readers.textfile import TokenSource, channel, is_number, rows
from reveal_collector.sampling.clock import phase_ns
from reveal_collector.sampling.sampler import Sampler
from reveal_contract.channels import Channel
from reveal_contract.metric import Kind, Lane
from support.hanging_file import HangingFile

if load().library is None:
    pytest.skip(load().unavailable, allow_module_level=True)

from reveal_collector.sampling.native_sampler import NativeSampler

PERIOD = 100_000_000
SECOND = 1_000_000_000


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
    source = TokenSource(name, lane, path, learn)
    source.open()
    return source


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
                lambda: bool(self.slices) and enough(self.slices[-1]), timeout=20
            )
            return self.slices[-1]


@pytest.mark.parametrize("lane", [Lane.FAST, Lane.SLOW])
def test_a_source_that_hangs_in_the_c_thread_is_left_out_until_it_answers(
    tmp_path: Path, lane: Lane, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reveal_collector.sampling.native_sampler._PATIENCE_NS", SECOND // 2)
    (tmp_path / "good").write_text("a 1\n")
    file = HangingFile(tmp_path / "mount", "b 2\n")
    hung = text_source(file.path, "hung", lane)

    def value_of(raw: RawSlice, label: str) -> int:
        last = list(raw.fast)[-len(raw.table.fast) :]
        return dict(zip([*labels(raw), *slow_labels(raw)], [*last, *raw.slow], strict=True))[label]

    try:
        with Run(text_source(tmp_path / "good", "good"), hung) as run:
            run.until(lambda raw: value_of(raw, "b") == 2)
            feed = run.sampler.feeds[1]
            file.hang()
            assert file.reached.wait(10)
            before = run.slices[-1].sequence
            raw = run.until(lambda raw: raw.sequence > before + 1)
            assert (value_of(raw, "a"), value_of(raw, "b")) == (1, MISSING)
            assert feed.broken
            assert feed.outage(time.monotonic_ns() + 5 * SECOND) is not None
            file.release()
            raw = run.until(lambda raw: value_of(raw, "b") == 2)
            assert not feed.broken and feed.outage(time.monotonic_ns() + 5 * SECOND) is None
    finally:
        hung.close()
        file.close()


def columns(raw: RawSlice, number: int) -> list[int]:
    return list(raw.fast)[number :: len(raw.table.fast)]


def labels(raw: RawSlice) -> list[str]:
    return [each.instance for each in raw.table.fast]


def slow_labels(raw: RawSlice) -> list[str]:
    return [each.instance for each in raw.table.slow]


def test_the_native_sampler_gives_the_same_slices_as_the_python_sampler(tmp_path: Path) -> None:
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


def test_a_new_row_costs_part_of_a_slice_of_its_own_file_only(tmp_path: Path) -> None:
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


class GrowingSource:
    """A fast source of values in memory with columns that a test sets; a new one starts with 0."""

    name, lane = "newborns", Lane.FAST

    def __init__(self) -> None:
        self.desired = self.names = ("a",)
        self.observed: set[str] = {"a"}
        self.reads: list[int] = []
        self.took_rows: list[list[int]] = []
        self.call: Callable[[], None] = lambda: None
        self._values = MemoryPlan(array("q", [7]))

    @property
    def channels(self) -> tuple[Channel, ...]:
        return tuple(Channel("newborns.x", name, Kind.COUNTER) for name in self.names)

    def open(self) -> None: ...

    def read(self) -> Sequence[int | None]:
        self.reads.append(time.monotonic_ns())
        if self.names != self.desired:
            self.names = self.desired
            self._values = MemoryPlan(array("q", [7] * len(self.names)))
            raise LayoutChanged(self.name)
        return list(self._values.values)

    def scans(self) -> Sequence[FileScan]:
        return [FileScan(self._values)]

    def stale(self) -> bool:
        return self.names != self.desired

    def call_when_stale(self, call: Callable[[], None]) -> None:
        self.call = call

    def hidden_columns(self) -> Sequence[int]:
        return [index for index, name in enumerate(self.names) if name not in self.observed]

    def observe(self, row: Sequence[int]) -> None:
        self.took_rows.append(list(row))
        self.observed |= set(self.names)

    def stop_observing(self) -> None: ...

    def close(self) -> None: ...


def test_a_source_that_calls_is_read_immediately_and_its_new_column_starts_with_0() -> None:
    source = GrowingSource()
    with Run(source) as run:
        begun = run.until(lambda raw: len(raw.lateness) == 10).sequence
        asked = time.monotonic_ns()
        source.desired = ("a", "b")
        source.call()
        run.until(lambda raw: len(raw.table.fast) == 2 and columns(raw, 1) == [7] * 10)
    assert source.reads[0] - asked < PERIOD
    second_column = [columns(raw, 1) for raw in run.slices if len(raw.table.fast) == 2]
    assert second_column[0] == [0] * 10
    assert all(row in ([0] * 10, [7] * 10) for row in second_column)
    assert all(columns(raw, 0)[0] == 7 for raw in run.slices if raw.sequence > begun)
    assert [7, 7] in source.took_rows


class Pipe:
    """A slow source without a plan whose reads hang while its pipe is empty."""

    name, lane = "pipe", Lane.SLOW
    channels: tuple[Channel, ...] = (Channel("pipe.x", "p", Kind.GAUGE, 1.0, Lane.SLOW),)

    def __init__(self) -> None:
        self.reader, self.writer = os.pipe()
        self.reading = threading.Event()

    def open(self) -> None: ...

    def read(self) -> Sequence[int | None]:
        self.reading.set()
        return [os.read(self.reader, 1)[0]]

    def close(self) -> None: ...


def test_a_source_that_hangs_in_python_costs_only_its_own_values(tmp_path: Path) -> None:
    (tmp_path / "good").write_text("a 1\n")
    pipe = Pipe()
    try:
        with Run(text_source(tmp_path / "good", "good"), pipe) as run:
            assert pipe.reading.wait(20)
            run.sampler.tick_watch.check()
            run.sampler.tick_watch.check()
            raw = run.until(lambda raw: len(run.slices) > 1)
            assert columns(raw, 0) == [1] * 10
            assert list(raw.slow) == [MISSING]
            first, second = (each.sequence for each in run.slices[:2])
            assert second == first + 1  # the slice whose reading hung was delivered, too
            assert run.sampler.feeds[1].broken
            os.write(pipe.writer, bytes([7] * 100))
            raw = run.until(lambda raw: list(raw.slow) == [7])
            assert not run.sampler.feeds[1].broken
    finally:
        os.close(pipe.writer)


def test_what_python_reads_long_after_a_slice_is_missing_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reveal_collector.sampling.native_sampler._TOO_LATE_NS", -SECOND)
    (tmp_path / "good").write_text("a 1\n")
    slow = Counter("slow", Lane.SLOW)
    with Run(text_source(tmp_path / "good", "good"), slow) as run:
        raw = run.until(lambda raw: len(run.slices) > 1)
    assert columns(raw, 0) == [1] * 10
    assert list(raw.slow) == [MISSING] and not slow.reads
