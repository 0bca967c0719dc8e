"""The minute of a node goes on in another process as if nothing had happened."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveal_analyzer.derive.deriver import Deriver
from reveal_analyzer.fleet.minute import MinuteLevels, MinuteRecorder
from reveal_analyzer.node import NodeAnalyzer
from reveal_analyzer.state.codec import Position, SavedState, decode, encode
from reveal_analyzer.state.tree import StateError, StateTree
from reveal_contract.channels import Channel, ChannelTable
from reveal_contract.metric import Kind, Lane
from reveal_contract.settings import AnalyzerSettings
from support.property_tests import examples
from support.synthetic_node import TABLE, WORK, Node

START = 1_700_000_040 * 10**9  # the start of a minute
ERRORS = "memory.ecc.correctable"  # an event: its level is a mean
WITH_ERRORS = ChannelTable((*TABLE.fast, Channel(ERRORS, "mc0", Kind.COUNTER)), TABLE.slow)
READS = Channel("storage.subject.read_bytes", WORK, Kind.COUNTER, lane=Lane.SLOW)
MORE = ChannelTable(
    (*WITH_ERRORS.fast, Channel("cpu.subject.usage", "/new", Kind.COUNTER)),
    (*WITH_ERRORS.slow, READS),
)


def carried(minutes: MinuteRecorder) -> StateTree:
    """What another process reads of the saved state."""
    saved = SavedState(Position("n1", b"", 0, 0), 0, {"minute": minutes.save()})
    tree = decode(encode(saved)).tree["minute"]
    assert isinstance(tree, dict)
    return tree


def moved(minutes: MinuteRecorder) -> MinuteRecorder:
    """The same minute in another process."""
    result = MinuteRecorder()
    result.restore(carried(minutes))
    return result


def recorded(
    moves: Collection[int] = (),
    other_table: int = 60,
    unread: Collection[int] = (),
    until: int = 61,
) -> MinuteRecorder:
    """A minute of a node, which moves before these seconds and has another table from one on."""
    node, deriver, minutes = Node(WITH_ERRORS), Deriver(), MinuteRecorder()
    for second in range(until):
        if second in moves:
            minutes = moved(minutes)
        if second == other_table:
            changed = Node(MORE)
            changed.second, node = node.second, changed
        values = {f"{ERRORS}{{mc0}}": float(7 * (second % 13 == 3)), READS.label: 1e6}
        message = node.slice(values)
        if second in unread:
            message = replace(message, slow_missing=np.ones_like(message.slow_missing))
        message = replace(message, start_ns=START + second * 10**9)
        minutes.push(deriver.second(message, node.table))
    return minutes


def levels(minutes: MinuteRecorder) -> MinuteLevels:
    ended = minutes.pop_ended()
    assert ended is not None
    return ended.levels()


def by_name(found: MinuteLevels) -> dict[str, float]:
    return dict(zip(found.names, found.levels.tolist(), strict=True))


SECONDS = st.integers(1, 59)


@given(st.sets(SECONDS, max_size=4), st.integers(1, 80), st.sets(SECONDS, max_size=40))
@examples(40)
def test_a_minute_goes_on_after_moves(moves: set[int], other_table: int, unread: set[int]) -> None:
    whole = levels(recorded((), other_table, unread))
    found = levels(recorded(moves, other_table, unread))
    assert (found.minute, found.seconds, found.names) == (whole.minute, 60, whole.names)
    assert found.subjects == pytest.approx(whole.subjects, rel=1e-5)
    assert by_name(found)[ERRORS] == pytest.approx(by_name(whole)[ERRORS], rel=1e-4)
    assert by_name(found)["cpu.pressure.some"] == pytest.approx(
        by_name(whole)["cpu.pressure.some"], rel=0.05
    )


@given(st.sets(st.sampled_from(range(5, 60, 5)), min_size=1, max_size=4))
@examples(20)
def test_after_whole_blocks_levels_and_spreads_are_the_same(moves: set[int]) -> None:
    whole, found = levels(recorded()), levels(recorded(moves))
    scale = np.nan_to_num(np.abs(whole.levels))
    assert np.all(np.abs(np.nan_to_num(found.levels - whole.levels)) <= 2e-5 * scale)
    assert np.all(np.abs(np.nan_to_num(found.spreads - whole.spreads)) <= 4e-5 * scale)


def test_a_save_changes_nothing() -> None:
    once, often = recorded(until=33), recorded(until=33)
    for _ in range(3):
        often.save()
    np.testing.assert_array_equal(once.save()["blocks"], often.save()["blocks"])


def test_a_minute_that_ended_meanwhile_is_that_of_its_seconds() -> None:
    minutes, node, deriver = moved(recorded(until=23)), Node(WITH_ERRORS), Deriver()
    message = replace(node.slice(), start_ns=START + 64 * 10**9)
    minutes.push(deriver.second(message, WITH_ERRORS))
    found = levels(minutes)
    assert (found.minute, found.seconds) == (START // (60 * 10**9), 23)


def test_before_the_first_second_nothing_is_saved() -> None:
    assert MinuteRecorder().save() == {}
    minutes = MinuteRecorder()
    minutes.restore({})
    assert minutes.save() == {}


def test_an_analyzer_with_another_catalogue_begins_a_minute() -> None:
    tree, minutes = carried(recorded(until=30)), MinuteRecorder()
    minutes.restore({**tree, "catalogue": 7})
    assert minutes.save() == {}


def test_metrics_keep_their_order() -> None:
    minutes = recorded(until=30)
    assert levels_names(moved(minutes)) == levels_names(minutes)


def levels_names(minutes: MinuteRecorder) -> tuple[str, ...]:
    assert minutes._now is not None
    return minutes._now.merged().names


@pytest.mark.parametrize(
    "key", ["minute", "catalogue", "metrics", "others", "lengths", "blocks", "subjects"]
)
@pytest.mark.parametrize("damage", [None, "text", -1.5, np.zeros((1, 1, 1)), np.zeros(3, np.uint8)])
def test_a_damaged_minute_is_refused(key: str, damage: object) -> None:
    tree = carried(recorded(until=30))
    for unfit in ({**tree, key: damage}, {name: tree[name] for name in tree if name != key}):
        with pytest.raises(StateError):
            MinuteRecorder().restore(unfit)  # type: ignore[arg-type]


def test_a_node_of_many_metrics_and_subjects_saves_a_small_minute() -> None:
    """All metrics vary, as they hardly do, and the minute is nearly over."""
    subjects = [f"ml/train-{number}-{'x' * 20}" for number in range(40)]
    usages = [Channel("cpu.subject.usage", name, Kind.COUNTER) for name in subjects]
    slow = [
        Channel(metric, name, Kind.COUNTER, lane=Lane.SLOW)
        for name in subjects
        for metric in ("storage.subject.read_bytes", "storage.subject.write_bytes")
    ]
    table = ChannelTable((*TABLE.fast, *usages), (*TABLE.slow, *slow))
    assert len(bytes_of(recorded_of(table))) < 4 * 1024


def bytes_of(minutes: MinuteRecorder) -> bytes:
    return encode(SavedState(Position("n1", b"", 0, 0), 0, minutes.save()))


def recorded_of(table: ChannelTable, seconds: Iterable[int] = range(59)) -> MinuteRecorder:
    node, deriver, minutes = Node(table), Deriver(), MinuteRecorder()
    used = {
        each.label: 1e6 * (1 + number) for number, each in enumerate((*table.fast, *table.slow))
    }
    for second in seconds:
        message = replace(node.slice(used), start_ns=START + second * 10**9)
        minutes.push(deriver.second(message, table))
    return minutes


def test_the_analysis_of_a_node_saves_its_minute() -> None:
    node, analyzer = Node(), NodeAnalyzer("n1", AnalyzerSettings(), rules=())
    for second in range(40):
        analyzer.analyze(replace(node.slice(), start_ns=START + second * 10**9), TABLE)
    other = NodeAnalyzer("n1", AnalyzerSettings(), rules=())
    other.restore(decode(encode(SavedState(Position("n1", b"", 0, 0), 0, analyzer.save()))).tree)
    for second in range(40, 61):
        other.analyze(replace(node.slice(), start_ns=START + second * 10**9), TABLE)
    assert levels(other.minutes).seconds == 60


def test_a_state_of_an_earlier_version_has_no_minute() -> None:
    node, analyzer = Node(), NodeAnalyzer("n1", AnalyzerSettings(), rules=())
    for second in range(40):
        analyzer.analyze(replace(node.slice(), start_ns=START + second * 10**9), TABLE)
    tree = {name: part for name, part in analyzer.save().items() if name != "minute"}
    other = NodeAnalyzer("n1", AnalyzerSettings(), rules=())
    other.restore(tree)
    assert other.minutes.save() == {}
