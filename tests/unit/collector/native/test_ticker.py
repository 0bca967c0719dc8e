"""The C ticker thread: slices start on the grid, plans are swapped, and nothing is lost."""

from __future__ import annotations

import os
import time
from array import array
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from reveal_collector.native import load
from reveal_collector.readers.plan import FileScan, Gated, MemoryPlan, TokenPlan
from reveal_collector.readers.raw_slice import MISSING

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

PERIOD = 100_000_000
SECOND = 1_000_000_000
PLAN = TokenPlan(1, (), (0,))


class Files:
    """Files of one number each, kept open."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._fds: dict[str, int] = {}

    def put(self, name: str, value: int) -> None:
        (self._folder / name).write_text(f"{value}\n")

    def scan(self, name: str, gate: Gated | None = None) -> FileScan:
        fd = self._fds.setdefault(name, os.open(self._folder / name, os.O_RDONLY))
        return FileScan(PLAN, fd, 4, gate)

    def close(self) -> None:
        for fd in self._fds.values():
            os.close(fd)


@pytest.fixture
def files(tmp_path: Path) -> Iterator[Files]:
    created = Files(tmp_path)
    for value, name in enumerate("abc", 1):
        created.put(name, value)
    yield created
    created.close()


def test_slow_files_are_read_in_their_ticks_and_kept_for_the_slice(files: Files) -> None:
    entries = [
        ScanEntry(0, [files.scan("a")], 0),
        ScanEntry(1, [files.scan("b")], 0, slot=0),
        ScanEntry(2, [files.scan("c")], 1, slot=2),
    ]
    with PlanRunner(NativePlan(entries, RowLayout(1, 2, 3))) as runner:
        runner.begin()
        assert runner.slow == [MISSING, MISSING]
        assert (runner.tick(0), runner.slow) == ([1], [2, MISSING])
        files.put("b", 20)
        assert (runner.tick(1), runner.slow) == ([1], [2, MISSING])
        assert (runner.tick(3), runner.slow) == ([1], [2, 3])
        runner.begin()
        runner.tick(0)
        assert runner.slow == [20, MISSING]


def test_a_file_that_dies_is_missing_and_flagged_and_the_others_go_on(
    files: Files, tmp_path: Path
) -> None:
    folder = os.open(tmp_path, os.O_RDONLY)  # EISDIR stands for ENODEV
    entries = [ScanEntry(0, [FileScan(PLAN, folder)], 0), ScanEntry(1, [files.scan("b")], 1)]
    with PlanRunner(NativePlan(entries, RowLayout(2, 0, 2))) as runner:
        os.close(folder)
        runner.begin()
        assert runner.tick(0) == [MISSING, 2]
        assert runner.flags == bytes([FAILED, 0])


def test_a_reused_descriptor_never_gives_numbers_of_another_file(files: Files) -> None:
    scan = files.scan("a")
    with PlanRunner(NativePlan([ScanEntry(0, [scan], 0)], RowLayout(1, 0, 1))) as runner:
        other = files.scan("b")
        os.dup2(other.fd, scan.fd)
        runner.begin()
        assert runner.tick(0) == [1]


def test_columns_of_nobody_are_missing(files: Files) -> None:
    with PlanRunner(NativePlan([ScanEntry(0, [files.scan("b")], 2)], RowLayout(4, 0, 1))) as runner:
        runner.begin()
        assert runner.tick(0) == [MISSING, MISSING, 2, MISSING]


def test_values_in_memory_are_read_during_the_tick() -> None:
    values = array("q", [1, MISSING])
    with PlanRunner(
        NativePlan([ScanEntry(0, [FileScan(MemoryPlan(values))], 0)], RowLayout(2, 0, 1))
    ) as runner:
        runner.begin()
        assert runner.tick(0) == [1, MISSING]
        values[1] = 5
        assert runner.tick(1) == [1, 5]


def test_files_rest_behind_a_gate_until_the_first_of_them_moves(files: Files) -> None:
    def gated(name: str, leads: bool = False) -> FileScan:
        return files.scan(name, Gated("x", leads))

    entries = [
        ScanEntry(0, [gated("a", leads=True), gated("b")], 0),
        ScanEntry(1, [gated("c")], 0, slot=1),
    ]
    with PlanRunner(NativePlan(entries, RowLayout(2, 1, 2, quiet=2, back_off=4))) as runner:
        runner.begin()
        assert runner.tick(0) == [1, 2]
        files.put("b", 20)
        assert runner.tick(1) == [1, 2]  # not read, as its leader did not change
        files.put("a", 10)
        assert runner.tick(2) == [10, 20]
        for tick in (3, 4):
            runner.tick(tick)  # two reads without a change: resting
        files.put("a", 11)
        values = [runner.tick(tick)[0] for tick in range(5, 9)]
        assert values[-1] == 11
        assert values.count(10) >= 1
        runner.begin()
        files.put("c", 30)
        runner.tick(0)
        runner.tick(1)
        assert runner.slow == [30]  # something had moved since it was read last


def test_a_slow_file_whose_values_move_is_read_though_its_leader_rests(files: Files) -> None:
    entries = [
        ScanEntry(0, [files.scan("a", Gated("x", leads=True))], 0),
        ScanEntry(1, [files.scan("b", Gated("x"))], 0, slot=1),
    ]
    with PlanRunner(NativePlan(entries, RowLayout(1, 1, 2, quiet=2, back_off=5))) as runner:
        sent = []
        for second in range(30):
            files.put("b", 100 + max(0, second - 10))  # stalls from second 11 on
            runner.begin()
            for tick in range(3):
                runner.tick(tick)
            sent.append(runner.slow[0] - 100)
        assert sent[:11] == [0] * 11
        first = next(second for second, value in enumerate(sent) if value)
        assert first <= 15  # found by the read of every fifth second
        assert sent[first:] == [second - 10 for second in range(first, 30)]


@pytest.fixture
def ticking() -> Iterator[Callable[..., Ticker]]:
    tickers: list[Ticker] = []

    def start(scan: NativePlan, phase: int = 0, period: int = PERIOD) -> Ticker:
        tickers.append(Ticker(scan, phase, period))
        return tickers[-1]

    yield start
    for ticker in tickers:
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


def test_slices_and_new_plans_start_on_the_grid(
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


def test_a_ticker_that_is_closed_can_still_be_woken(files: Files) -> None:
    ticker = Ticker(plan_of(files, "a"), 0, PERIOD)
    began = time.monotonic()
    ticker.wake()
    assert ticker.wait(3 * SECOND) is None
    assert time.monotonic() - began < 0.5
    ticker.stop()
    ticker.close()
    ticker.wake()
