"""Tables of a later version: what is known of their rows is read, the rest is skipped."""

from __future__ import annotations

import json
import zlib
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveal_contract import skipped_channels, wire
from reveal_contract.channels import Channel, ChannelTable, TableError, canonical_json
from reveal_contract.metric import Kind, Lane
from reveal_contract.recording import RecordingEntry, RecordingReader, RecordingWriter
from reveal_contract.skipped_channels import log_skipped
from reveal_contract.table_changes import TableChanges
from reveal_contract.wire import Message
from support.channel_strategies import channels

Row = list[Any]
KIND, LANE = "quantile", "burst"  # of a later version
LATER = ["cpu.wait", "", KIND, 1.0, LANE, {"of": 99}]
KNOWN = ["cpu.user", "", "counter", 1e7, "fast", "a sixth column"]


def announced(fast: list[Row], slow: list[Row]) -> bytes:
    return canonical_json({"version": 1, "fast": fast, "slow": slow})


def later_row(channel: Channel, kind: str, lane: str, further: Row) -> Row:
    words = channel.metric, channel.instance, kind or channel.kind
    return [*words, channel.scale, lane or channel.lane, *further]


_text = st.text(st.characters(exclude_categories=["Cs"]), max_size=10)
_numbers = st.integers(-(2**40), 2**40) | st.floats(allow_nan=False, allow_infinity=False)
_words = st.none() | st.booleans() | _numbers | _text
_nested = st.dictionaries(_text, _words, max_size=1) | st.lists(_words, max_size=2)
_further = st.lists(_words | _nested, max_size=2)
rows = st.builds(
    later_row, channels, st.sampled_from(["", KIND]), st.sampled_from(["", LANE]), _further
).filter(lambda row: len(canonical_json(row[2:])) < 400)
parts = st.lists(rows, min_size=1, max_size=5)


@given(parts, parts)
def test_a_table_of_a_later_version_keeps_its_rows_and_its_key(
    fast: list[Row], slow: list[Row]
) -> None:
    data = announced(fast, slow)
    table = ChannelTable.from_announcement(zlib.compress(data))
    assert table.to_json() == data
    assert table.key == blake2b(data, digest_size=8).digest()
    assert ChannelTable.from_json(table.to_json()) == table


@given(parts, parts)
def test_channels_of_known_kind_and_lane_are_read_and_no_others(
    fast: list[Row], slow: list[Row]
) -> None:
    table = ChannelTable.from_json(announced(fast, slow))
    for row, channel in zip([*fast, *slow], [*table.fast, *table.slow], strict=True):
        assert channel.is_skipped == (row[2] == KIND or row[4] == LANE)
        if not channel.is_skipped:
            known = channel.metric, channel.instance, channel.kind, channel.scale, channel.lane
            assert known == tuple(row[:5])


@given(parts, parts, st.integers(0, 1000))
def test_the_values_of_known_channels_are_those_that_were_sent(
    fast: list[Row], slow: list[Row], seed: int
) -> None:
    table, dice = ChannelTable.from_json(announced(fast, slow)), np.random.default_rng(seed)
    sent = Message(
        node="n", boot=b"b" * 16, sequence=1, start_ns=1, tick_us=100_000, table=table.key,
        fast=dice.integers(-(2**50), 2**50, (10, len(fast))),
        slow=dice.integers(-(2**50), 2**50, len(slow)),
        fast_missing=dice.random((10, len(fast))) < 0.2,
        slow_missing=dice.random(len(slow)) < 0.2,
    )  # fmt: skip
    levels = np.array([row[2] != Kind.COUNTER for row in fast])  # as the later version sends them
    read = wire.decode(wire.encode(sent, levels), wire.gauges(table))
    np.testing.assert_array_equal(read.fast_missing, sent.fast_missing)
    np.testing.assert_array_equal(read.slow_missing, sent.slow_missing)
    known = ~sent.fast_missing & np.array([not each.is_skipped for each in table.fast])
    np.testing.assert_array_equal(read.fast[known], sent.fast[known])
    known = ~sent.slow_missing & np.array([not each.is_skipped for each in table.slow])
    np.testing.assert_array_equal(read.slow[known], sent.slow[known])


@given(parts, parts, parts)
def test_changes_of_a_later_table_give_the_table_and_its_key(
    kept: list[Row], gone: list[Row], new: list[Row]
) -> None:
    base = ChannelTable.from_json(announced([*kept, *gone], kept))
    table = ChannelTable.from_json(announced([*new, *kept], [*kept, *new]))
    changes = TableChanges.from_announcement(TableChanges.between(base, table).announcement())
    assert changes.applied(base) == table
    assert changes.applied(base).key == table.key


def test_a_recording_of_a_later_version_is_read(tmp_path: Path) -> None:
    table = ChannelTable.from_json(announced([KNOWN, LATER], []))
    with RecordingWriter(tmp_path / "r.rvl") as writer:
        writer.message(b"slice", table)
    assert announced([KNOWN, LATER], []) in (tmp_path / "r.rvl").read_bytes()
    [entry] = RecordingReader(tmp_path / "r.rvl")
    assert entry == RecordingEntry(b"slice", table)
    assert [channel.is_skipped for channel in table.fast] == [False, True]


def test_a_channel_with_further_columns_is_used_as_any_other() -> None:
    [channel] = ChannelTable.from_json(announced([KNOWN], [])).fast
    assert channel.identity == Channel("cpu.user", "", Kind.COUNTER, 1e7, Lane.FAST).identity
    assert (channel.label, channel.kind, channel.scale) == ("cpu.user", Kind.COUNTER, 1e7)


@pytest.mark.parametrize(
    "row",
    [
        [*KNOWN, "x" * 600],
        [*KNOWN, "\ud800"],
        ["cpu.user", "", "\ud800", 1.0, "fast"],
        ["cpu.user", "", KIND, 0.0, "fast"],
        ["cpu.user", "", KIND, "1", "fast"],
        ["CPU user", "", KIND, 1.0, "fast"],
        ["unknown:cpu.user", "", KIND, 1.0, "fast"],
    ],
)
def test_what_no_version_announces_is_refused(row: Row) -> None:
    with pytest.raises(TableError, match="channel table"):
        ChannelTable.from_json(json.dumps({"version": 1, "fast": [row], "slow": []}))


def test_columns_that_are_nested_deeply_are_refused() -> None:
    deep = "[" * 2000 + "]" * 2000
    text = f'{{"version":1,"fast":[["cpu.user","","counter",1.0,"fast",{deep}]],"slow":[]}}'
    with pytest.raises(TableError, match="channel table"):
        ChannelTable.from_json(text)


def test_a_kind_and_a_lane_that_are_not_known_are_logged_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(skipped_channels, "_logged", set())
    for instance in ("", "1"):  # another table with the same kinds
        row = ["cpu.wait", instance, KIND, 1.0, LANE]
        log_skipped(ChannelTable.from_json(announced([KNOWN, row], [row])))
    assert caplog.messages == [
        "channels of a later version are not used: kind 'quantile' (as of cpu.wait),"
        " lane 'burst' (as of cpu.wait)"
    ]


def test_any_number_of_kinds_does_not_fill_the_log(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(skipped_channels, "_logged", set())
    for number in range(200):
        row = ["cpu.wait", "", f"kind{number}", 1.0, "fast"]
        log_skipped(ChannelTable.from_json(announced([row], [])))
    assert len(caplog.messages) == 64


def test_a_table_of_this_version_logs_nothing(caplog: pytest.LogCaptureFixture) -> None:
    log_skipped(ChannelTable.from_json(announced([KNOWN], [KNOWN[:5]])))
    assert caplog.messages == []
