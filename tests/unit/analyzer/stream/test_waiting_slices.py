"""A slice without a table holds back its node for a moment, and never another one."""

from __future__ import annotations

from typing import Any, cast

import pytest

from reveal_analyzer.stream import waiting_slices
from reveal_analyzer.stream.channel_tables import ChannelTables
from reveal_analyzer.stream.consumer import StreamEntry
from reveal_analyzer.stream.kept_tables import DecodableTable
from reveal_analyzer.stream.waiting_slices import (
    HOLD_SECONDS,
    MAX_OF_NODE,
    WAIT_SECONDS,
    WaitingSlices,
)
from support.fake_clock import FakeClock

KNOWN, UNKNOWN, LATE = b"known", b"unknown", b"late"


class Tables:
    """The announced tables."""

    def __init__(self) -> None:
        self.keys = {KNOWN}

    def get(self, key: bytes) -> DecodableTable | None:
        return cast(DecodableTable, key) if key in self.keys else None


class Line:
    """The waiting slices of a reader, whose entries are numbered."""

    def __init__(self) -> None:
        self.waiting, self.announced = WaitingSlices(), Tables()
        self._number = 0

    @property
    def tables(self) -> ChannelTables:
        return cast(Any, self.announced)

    def add(self, *tables: bytes, node: str = "n") -> None:
        for table in tables:
            self._number += 1
            entry = StreamEntry(0, f"{self._number}-0".encode(), {})
            self.waiting.add(entry, node, table)

    def ready(self, most: int = 999) -> list[int]:
        return [_number(parked.entry) for parked, _ in self.waiting.ready(self.tables, most)]

    def overdue(self) -> list[int]:
        return [_number(parked.entry) for parked in self.waiting.overdue(self.tables)]


def _number(entry: StreamEntry) -> int:
    return int(entry.id.partition(b"-")[0])


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> FakeClock:
    result = FakeClock()
    monkeypatch.setattr(waiting_slices.time, "monotonic", result)
    return result


def test_a_slice_whose_table_never_comes_holds_its_node_back_for_a_moment(
    clock: FakeClock,
) -> None:
    """Whoever may write to Redis could silence a node by one slice a minute."""
    line = Line()
    line.add(UNKNOWN, KNOWN, KNOWN)
    assert line.ready() == []
    clock.now += HOLD_SECONDS + 0.1
    assert line.ready() == [2, 3]
    line.add(KNOWN)
    assert line.ready() == [4]
    assert line.overdue() == []
    clock.now += WAIT_SECONDS
    assert line.overdue() == [1]
    assert len(line.waiting) == 0 and "n" not in line.waiting


def test_a_table_that_is_late_lets_its_slices_go_on_in_order(clock: FakeClock) -> None:
    line = Line()
    line.add(LATE, LATE, KNOWN)
    clock.now += HOLD_SECONDS / 2
    assert line.ready() == []
    line.announced.keys.add(LATE)
    assert line.ready(2) == [1, 2]
    assert line.ready(2) == [3]


def test_a_table_behind_a_missing_table_is_requested_too(clock: FakeClock) -> None:
    line = Line()
    line.add(UNKNOWN, LATE, UNKNOWN)
    line.add(LATE, node="m")
    assert line.waiting.needed_tables() == {UNKNOWN: ["n"], LATE: ["m"]}
    clock.now += HOLD_SECONDS + 0.1
    assert line.waiting.needed_tables() == {UNKNOWN: ["n"], LATE: ["n", "m"]}
    line.announced.keys.add(LATE)
    assert line.ready() == [2, 4]


def test_a_node_with_too_many_slices_loses_its_own(
    clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = Line()
    line.add(*[LATE] * (MAX_OF_NODE + 2), node="forged")
    assert line.overdue() == [1, 2]
    monkeypatch.setattr(waiting_slices, "MAX_WAITING", MAX_OF_NODE)
    line.add(LATE, LATE, node="honest")
    assert line.overdue() == [3, 4]
    line.announced.keys.add(LATE)
    assert line.ready()[-2:] == [MAX_OF_NODE + 3, MAX_OF_NODE + 4]


def test_slices_of_known_tables_are_never_refused(clock: FakeClock) -> None:
    line = Line()
    line.add(*[KNOWN] * (MAX_OF_NODE + 5))
    clock.now += WAIT_SECONDS + 1
    assert line.overdue() == []
    assert len(line.ready()) == MAX_OF_NODE + 5
