"""The keeper packs a minute at a time, and what cannot be kept stops nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from reveal_analyzer.derive.deriver import Deriver
from reveal_analyzer.node_history import keeper as keeper_module
from reveal_analyzer.node_history.codec import parts
from reveal_analyzer.node_history.keeper import PART_SECONDS, REASON, HistoryKeeper
from reveal_analyzer.node_history.recorded import recording, slices
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.metric import Kind
from reveal_contract.recording import RecordingReader
from reveal_contract.time_units import NS_PER_HOUR
from support.evidence_samples import FIRST_NS, MemoryHistory
from support.fake_clock import FakeClock
from support.synthetic_node import TABLE, Node

WIDER = ChannelTable((*TABLE.fast, Channel("cpu.nice", "", Kind.COUNTER)), TABLE.slow)
HOUR = FIRST_NS // NS_PER_HOUR
END = 2**62


@pytest.fixture
def store() -> MemoryHistory:
    return MemoryHistory()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def keeper(store: MemoryHistory, clock: FakeClock) -> HistoryKeeper:
    return HistoryKeeper(store, clock)


def add(keeper: HistoryKeeper, node: Node, seconds: int, table: ChannelTable = TABLE) -> None:
    node.table = table
    for _ in range(seconds):
        keeper.add(node.slice(), table)


def write_all(keeper: HistoryKeeper) -> int:
    """Return how many parts were written."""
    count = 0
    while keeper.run_due():
        count += 1
    return count


def test_a_second_has_the_values_that_it_had(keeper: HistoryKeeper, store: MemoryHistory) -> None:
    add(keeper, Node(), PART_SECONDS + 1)
    assert write_all(keeper) == 1
    node, deriver, kept = Node(), Deriver(), Deriver()
    found = slices([store.read("n1", HOUR)], 0, END)
    assert len(found) == PART_SECONDS
    for message, table in found:
        exact = deriver.second(node.slice(), TABLE)
        rounded = kept.second(message, table)
        assert message.start_ns == exact.start_ns
        by_name = {channel.label: index for index, channel in enumerate(rounded.plan.channels)}
        order = [by_name[channel.label] for channel in exact.plan.channels]
        np.testing.assert_allclose(rounded.channels[order], exact.channels, rtol=0.01, atol=1e6)


def test_channels_that_come_and_go_are_columns_of_the_hour(
    keeper: HistoryKeeper, store: MemoryHistory
) -> None:
    node = Node()
    for table in (TABLE, WIDER, TABLE):
        add(keeper, node, PART_SECONDS, table)
    add(keeper, node, 1)
    assert write_all(keeper) == 3
    found = list(parts(store.read("n1", HOUR)))
    assert [(part.known, len(part.added)) for part in found] == [(0, 16), (16, 1), (17, 0)]
    seconds = slices([store.read("n1", HOUR)], 0, END)
    assert len({table.key for _, table in seconds}) == 1
    [nice] = [
        index for index, channel in enumerate(seconds[0][1].fast) if channel.metric == "cpu.nice"
    ]
    missing = [bool(message.fast_missing[0, nice]) for message, _ in seconds]
    assert missing == [True] * 60 + [False] * 60 + [True] * 60


def test_columns_that_ended_do_not_fill_the_hour(
    keeper: HistoryKeeper, store: MemoryHistory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeper_module, "_ENDED_COLUMNS", 0)
    node = Node()
    for number in range(40):
        pod = Channel("cpu.subject.usage", f"/pod-{number}", Kind.COUNTER)
        add(keeper, node, PART_SECONDS, ChannelTable((*TABLE.fast, pod), TABLE.slow))
    write_all(keeper)
    widths = [part.width for part in parts(store.read("n1", HOUR))]
    assert max(widths) <= 2 * 17 + 1
    assert len(slices([store.read("n1", HOUR)], 0, END)) == 39 * PART_SECONDS


def test_an_hour_and_a_boot_begin_a_part_of_their_own(
    keeper: HistoryKeeper, store: MemoryHistory
) -> None:
    node = Node()
    base = [node.slice() for _ in range(6)]
    for index, message in enumerate(base):
        boot = b"c" * 16 if index >= 4 else message.boot
        later = NS_PER_HOUR if index >= 2 else 0
        keeper.add(replace(message, boot=boot, start_ns=message.start_ns + later), TABLE)
    keeper.close()
    assert write_all(keeper) == 3
    assert store.closed
    assert len(slices([store.read("n1", HOUR)], 0, END)) == 2
    second = slices([store.read("n1", HOUR + 1)], 0, END)
    assert [message.boot[:1] for message, _ in second] == [b"b", b"b", b"c", b"c"]


def test_a_silent_node_is_written_after_a_while(
    keeper: HistoryKeeper, store: MemoryHistory, clock: FakeClock
) -> None:
    add(keeper, Node(), 5)
    assert not keeper.run_due()
    clock.now += 2 * PART_SECONDS
    assert keeper.run_due()
    assert len(slices([store.read("n1", HOUR)], 0, END)) == 5


def test_what_is_written_twice_is_read_once(keeper: HistoryKeeper, store: MemoryHistory) -> None:
    """The next analyzer replays the last minute of the stream."""
    again = HistoryKeeper(store)
    for each in (keeper, again):
        add(each, Node(), 30)
        each.close()
        write_all(each)
    assert len(list(parts(store.read("n1", HOUR)))) == 2
    assert len(slices([store.read("n1", HOUR)], 0, END)) == 30


def test_a_failure_is_reported_and_the_next_part_stands_alone(
    keeper: HistoryKeeper, store: MemoryHistory, clock: FakeClock
) -> None:
    node = Node()
    add(keeper, node, PART_SECONDS)
    store.error = OSError("no room")
    add(keeper, node, PART_SECONDS)
    write_all(keeper)
    [lost] = keeper.degradations()
    assert (lost.reason, "no room" in lost.message) == (REASON, True)
    store.error = None
    add(keeper, node, PART_SECONDS)
    write_all(keeper)
    clock.now += 200
    assert keeper.degradations() == []
    assert len(slices([store.read("n1", HOUR)], 0, END)) == PART_SECONDS


def test_a_defect_stops_nothing(
    keeper: HistoryKeeper, store: MemoryHistory, caplog: pytest.LogCaptureFixture
) -> None:
    keeper.add(replace(Node().slice(), fast=np.zeros((10, 1), np.int64)), TABLE)
    [lost] = keeper.degradations()
    assert lost.message.endswith("see the log of the analyzer")
    assert "IndexError" in caplog.text
    store.error = ZeroDivisionError("a defect")
    add(keeper, Node(), PART_SECONDS + 1)
    assert write_all(keeper) == 1


def test_an_outage_keeps_the_newest_parts_only(
    keeper: HistoryKeeper, store: MemoryHistory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeper_module, "_MOST_WAITING", 2)
    add(keeper, Node(), 5 * PART_SECONDS)
    assert keeper.degradations()
    assert write_all(keeper) == 2
    first = slices([store.read("n1", HOUR)], 0, END)[0][0]
    assert first.sequence == 2 * PART_SECONDS


def test_the_thread_writes_what_is_due(keeper: HistoryKeeper, store: MemoryHistory) -> None:
    keeper.start()
    add(keeper, Node(), 90)
    keeper.close()
    found = slices([store.read("n1", HOUR)], 0, END)
    assert len(found) == 90
    assert (
        sum(entry.table is not None for entry in RecordingReader(Path("x"), recording(found))) == 90
    )


def test_a_part_without_its_predecessor_is_left_out(
    keeper: HistoryKeeper, store: MemoryHistory
) -> None:
    node = Node()
    add(keeper, node, PART_SECONDS)
    add(keeper, node, PART_SECONDS + 1, WIDER)
    write_all(keeper)
    data = store.read("n1", HOUR)
    first = data[: data.index(b"RVH1", 1)]
    assert len(slices([data], 0, END)) == 2 * PART_SECONDS
    assert slices([data[len(first) :]], 0, END) == []


def test_only_the_span_is_returned(keeper: HistoryKeeper, store: MemoryHistory) -> None:
    add(keeper, Node(), PART_SECONDS + 1)
    write_all(keeper)
    second = 10**9
    found = slices([store.read("n1", HOUR)], FIRST_NS + 10 * second, FIRST_NS + 12 * second)
    assert [message.sequence for message, _ in found] == [10, 11, 12]


def test_an_hour_that_was_lost_begins_again(keeper: HistoryKeeper, store: MemoryHistory) -> None:
    """As when a Redis without persistence starts again."""
    node = Node()
    add(keeper, node, PART_SECONDS)
    add(keeper, node, PART_SECONDS)
    write_all(keeper)
    store.hours.clear()
    add(keeper, node, PART_SECONDS + 1)
    write_all(keeper)
    found = slices([store.read("n1", HOUR)], 0, END)
    assert [message.sequence for message, _ in found] == list(range(60, 180))
