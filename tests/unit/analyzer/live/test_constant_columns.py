"""Constant columns are scored, once they change, as if they had always been scored."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from reveal_analyzer.derive.deriver import Deriver, Second
from reveal_analyzer.live import constant_columns, score
from reveal_analyzer.live.constant_columns import ConstantColumns
from reveal_analyzer.live.score import LiveScore, Scored
from reveal_analyzer.live.settings import LiveSettings
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.metric import Kind
from reveal_contract.wire import Message
from support.synthetic_node import FAST, SLOW, Node

SECONDS = 260
SETTINGS = LiveSettings(warmup=20, quarantine=5, keep=60, give_up=30)
NICS = tuple(
    Channel(f"network.nic.{what}", f"eth{number}", Kind.COUNTER, 1.0)
    for number in range(1, 4)
    for what in ("rx_drop", "rx_errs", "rx_bytes")
)
HUGE = Channel("memory.huge_pages_free", "", Kind.GAUGE, 1.0)
TABLE = ChannelTable((*FAST, *NICS, HUGE), SLOW)
WITHOUT = ChannelTable(tuple(c for c in TABLE.fast if c.instance != "eth2"), SLOW)


@dataclass(frozen=True)
class Event:
    """A channel has a level between two seconds, or is missing."""

    channel: Channel
    first: int
    lasts: int
    level: float | None


EVENTS = st.builds(
    Event,
    st.sampled_from([*NICS, HUGE, FAST[10]]),
    st.integers(30, SECONDS),
    st.integers(1, 80),
    st.one_of(st.none(), st.sampled_from([1.0, 40.0, 5e4])),
)


@pytest.fixture(autouse=True, scope="module")
def often() -> Iterator[None]:
    """Treat columns as constant after a short time."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(score, "_CONSTANT_CHECK", 7)
        patched.setattr(constant_columns, "MIN_COLUMNS", 1)
        yield


def seconds(
    events: Sequence[Event], gone: tuple[int, int] = (0, 0), count: int = SECONDS
) -> Iterator[Second]:
    """Return the seconds of a node with these events, and with a NIC that is ``gone`` at times."""
    node, deriver = Node(TABLE), Deriver()
    for second in range(count):
        node.table = WITHOUT if gone[0] <= second < gone[1] else TABLE
        on = [event for event in events if event.first <= second < event.first + event.lasts]
        changed = {HUGE.label: 3.0}  # so few that the noise of a node does not move them
        changed |= {event.channel.label: event.level for event in on if event.level is not None}
        missing = {event.channel for event in on if event.level is None}
        yield deriver.second(without(node.slice(changed), node.table, missing), node.table)


def without(message: Message, table: ChannelTable, missing: set[Channel]) -> Message:
    lost = np.array([channel in missing for channel in table.fast])
    return replace(message, fast_missing=message.fast_missing | lost)


def judged(node: Iterator[Second], rest: bool) -> tuple[list[Scored], list[np.ndarray], int]:
    """Return the score of each second, other state, and the largest number of constant columns."""
    live, scored, known, most = LiveScore(SETTINGS), [], [], 0
    with pytest.MonkeyPatch.context() as patched:
        if not rest:
            patched.setattr(ConstantColumns, "deactivate", lambda now, *_, **__: now)
        for second in node:
            live.adopt_table(second)
            scored.append(live.score(second))
            known += [live.baseline(), live.highest()]
            most = max(most, int(live._columns.constant.sum()))
    return scored, known, most


def constant_labels(live: LiveScore) -> set[str]:
    labels = (live._columns.plan.labels[index] for index in np.flatnonzero(live._columns.constant))
    return {label.removesuffix("__mean") for label in labels}


@given(st.lists(EVENTS, max_size=6), st.tuples(st.integers(60, 120), st.integers(100, 200)))
@example([Event(NICS[0], 150, 100, 5e4)], (0, 0))  # an alarm that is learned, and returns
@example([Event(HUGE, 150, 20, 5e4), Event(NICS[3], 150, 20, None)], (100, 170))
@settings(max_examples=12, deadline=None)
def test_constant_columns_are_scored_as_if_they_were_not_skipped(
    events: list[Event], gone: tuple[int, int]
) -> None:
    scored, known, most = judged(seconds(events, gone), rest=True)
    expected, expected_known, none = judged(seconds(events, gone), rest=False)
    assert (most > 0, none) == (True, 0)
    for mine, its in zip(scored, expected, strict=True):
        assert (mine.ready, mine.over) == (its.ready, its.over)
        np.testing.assert_array_equal(mine.excess, its.excess)
        np.testing.assert_array_equal(mine.weighted, its.weighted)
    for mine, its in zip(known, expected_known, strict=True):
        np.testing.assert_array_equal(mine, its)


def test_a_column_that_changed_after_being_constant_is_scored_for_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(score, "_CONSTANT_AGAIN", 35)
    live = LiveScore(SETTINGS)
    rested = []
    for second in seconds([Event(NICS[0], 110, 1, 40.0)], count=700):
        live.adopt_table(second)
        live.score(second)
        rested.append(NICS[0].label in constant_labels(live))
    assert rested[109]
    again = rested.index(True, 110) + 1
    assert again > 110 + SETTINGS.keep
    assert again % 35 == 0


def test_what_another_job_moved_does_not_rest() -> None:
    """When the job returns, the metrics it changes are known."""
    live = LiveScore(SETTINGS)
    job = ChannelTable((*TABLE.fast, Channel("cpu.subject.usage", "/j", Kind.COUNTER, 1.0)), SLOW)
    node, deriver = Node(job), Deriver()
    moved = {NICS[2].label: 5e4}
    for index in range(700):
        node.table = job if index < 100 else TABLE
        second = deriver.second(node.slice(moved if index < 100 else None), node.table)
        live.adopt_table(second)
        live.score(second)
    assert NICS[5].label in constant_labels(live)
    assert NICS[2].label not in constant_labels(live)
