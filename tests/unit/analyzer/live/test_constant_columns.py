"""Columns that rest are judged, once they move, as if they had been judged all along."""

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
    Channel(f"network.nic.{what}", f"eth{at}", Kind.COUNTER, 1.0)
    for at in range(1, 4)
    for what in ("rx_drop", "rx_errs", "rx_bytes")
)
HUGE = Channel("memory.huge_pages_free", "", Kind.GAUGE, 1.0)
TABLE = ChannelTable((*FAST, *NICS, HUGE), SLOW)
WITHOUT = ChannelTable(tuple(c for c in TABLE.fast if c.instance != "eth2"), SLOW)


@dataclass(frozen=True)
class Event:
    """From one second to another a channel is at a level, or is missing."""

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
    """Columns are put to rest as soon as a short test can see it."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(score, "_CONSTANT_CHECK", 7)
        patched.setattr(constant_columns, "MIN_COLUMNS", 1)
        yield


def seconds(
    events: Sequence[Event], gone: tuple[int, int] = (0, 0), count: int = SECONDS
) -> Iterator[Second]:
    """Those of a node on which this happens, and on which a NIC is ``gone`` for a while."""
    node, deriver = Node(TABLE), Deriver()
    for at in range(count):
        node.table = WITHOUT if gone[0] <= at < gone[1] else TABLE
        on = [event for event in events if event.first <= at < event.first + event.lasts]
        changed = {HUGE.label: 3.0}  # so few that the noise of a node does not move them
        changed |= {event.channel.label: event.level for event in on if event.level is not None}
        missing = {event.channel for event in on if event.level is None}
        yield deriver.second(without(node.slice(changed), node.table, missing), node.table)


def without(message: Message, table: ChannelTable, missing: set[Channel]) -> Message:
    lost = np.array([channel in missing for channel in table.fast])
    return replace(message, fast_missing=message.fast_missing | lost)


def judged(node: Iterator[Second], rest: bool) -> tuple[list[Scored], list[np.ndarray], int]:
    """What was said of each second, what else was known, and how many columns rested at most."""
    live, said, known, most = LiveScore(SETTINGS), [], [], 0
    with pytest.MonkeyPatch.context() as patched:
        if not rest:
            patched.setattr(ConstantColumns, "deactivate", lambda now, *_, **__: now)
        for second in node:
            live.adopt_table(second)
            said.append(live.score(second))
            known += [live.baseline(), live.highest()]
            most = max(most, int(live._columns.constant.sum()))
    return said, known, most


def at_rest(live: LiveScore) -> set[str]:
    labels = (live._columns.plan.labels[at] for at in np.flatnonzero(live._columns.constant))
    return {label.removesuffix("__mean") for label in labels}


@given(st.lists(EVENTS, max_size=6), st.tuples(st.integers(60, 120), st.integers(100, 200)))
@example([Event(NICS[0], 150, 100, 5e4)], (0, 0))  # an alarm that is learned, and returns
@example([Event(HUGE, 150, 20, 5e4), Event(NICS[3], 150, 20, None)], (100, 170))
@settings(max_examples=12, deadline=None)
def test_what_rests_is_judged_as_if_it_did_not(events: list[Event], gone: tuple[int, int]) -> None:
    said, known, most = judged(seconds(events, gone), rest=True)
    expected, expected_known, none = judged(seconds(events, gone), rest=False)
    assert (most > 0, none) == (True, 0)
    for mine, its in zip(said, expected, strict=True):
        assert (mine.ready, mine.over, mine.new_normal) == (its.ready, its.over, its.new_normal)
        np.testing.assert_array_equal(mine.excess, its.excess)
        np.testing.assert_array_equal(mine.weighted, its.weighted)
    for mine, its in zip(known, expected_known, strict=True):
        np.testing.assert_array_equal(mine, its)


def test_one_that_moved_after_it_rested_is_long_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(score, "_CONSTANT_AGAIN", 35)
    live = LiveScore(SETTINGS)
    rested = []
    for second in seconds([Event(NICS[0], 110, 1, 40.0)], count=700):
        live.adopt_table(second)
        live.score(second)
        rested.append(NICS[0].label in at_rest(live))
    assert rested[109]
    again = rested.index(True, 110) + 1
    assert again > 110 + SETTINGS.keep
    assert again % 35 == 0


def test_what_another_job_moved_does_not_rest() -> None:
    """When the job is back, what it moves is no news."""
    live = LiveScore(SETTINGS)
    job = ChannelTable((*TABLE.fast, Channel("cpu.subject.usage", "/j", Kind.COUNTER, 1.0)), SLOW)
    node, deriver = Node(job), Deriver()
    moved = {NICS[2].label: 5e4}
    for at in range(700):
        node.table = job if at < 100 else TABLE
        second = deriver.second(node.slice(moved if at < 100 else None), node.table)
        live.adopt_table(second)
        live.score(second)
    assert NICS[5].label in at_rest(live)
    assert NICS[2].label not in at_rest(live)
