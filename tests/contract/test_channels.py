"""Channel tables: equal tables have equal announcements; an invalid one raises one error."""

from __future__ import annotations

import json
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveal_contract import catalogue
from reveal_contract.channels import (
    MAX_ANNOUNCEMENT,
    MAX_CHANNELS,
    Channel,
    ChannelTable,
    TableError,
)
from reveal_contract.metric import Kind
from support.channel_strategies import tables

ROW = ["cpu.user", "", "counter", 1.0, "fast"]


@given(tables)
def test_an_announcement_gives_the_table_and_its_key_back(table: ChannelTable) -> None:
    read = ChannelTable.from_json(table.to_json())
    assert read == table
    assert read.key == table.key
    assert len(table.key) == 8


@given(tables)
def test_an_announcement_is_read_compressed_and_as_json(table: ChannelTable) -> None:
    assert ChannelTable.from_announcement(table.announcement()) == table
    assert ChannelTable.from_announcement(table.to_json()) == table


@given(st.binary(max_size=200))
def test_bytes_that_are_no_announcement_are_refused(data: bytes) -> None:
    with pytest.raises(TableError):
        ChannelTable.from_announcement(data)


@pytest.mark.parametrize("missing_bytes", [1, 5])
def test_an_incomplete_announcement_is_refused(missing_bytes: int) -> None:
    with pytest.raises(TableError, match="cut off"):
        ChannelTable.from_announcement(ChannelTable((), ()).announcement()[:-missing_bytes])


def test_an_announcement_that_grows_without_end_is_refused() -> None:
    bomb = zlib.compress(b'{"version": 1' + b" " * MAX_ANNOUNCEMENT, 9)
    with pytest.raises(TableError, match="over"):
        ChannelTable.from_announcement(bomb)


def test_json_has_the_limit_of_what_is_decompressed() -> None:
    text = b'{"version": 1' + b" " * MAX_ANNOUNCEMENT + b', "fast": [], "slow": []}'
    with pytest.raises(TableError, match=f"{MAX_ANNOUNCEMENT} are the most"):
        ChannelTable.from_announcement(text)


def test_channels_with_long_names_are_not_kept_for_other_tables() -> None:
    row = [ROW[0], "x" * 1000, *ROW[2:]]
    first, other = (ChannelTable.from_json(announced(fast=[row])) for _ in range(2))
    assert first == other
    assert first.fast[0] is not other.fast[0]


def test_the_announcement_of_a_node_with_pods_is_a_tenth_of_its_json() -> None:
    metrics = [row.name for row in catalogue.rows()]
    subject = [name for name in metrics if ".subject." in name][:21]
    pods = [f"team-{number % 5}/trainer-{number}-7d9f8b6c5-x{number:05d}" for number in range(40)]
    table = ChannelTable(tuple(Channel(name, pod) for pod in pods for name in subject), ())
    assert len(table.announcement()) * 8 < len(table.to_json())


@given(tables, tables)
def test_keys_differ_where_tables_do(first: ChannelTable, second: ChannelTable) -> None:
    assert (first.key == second.key) == (first == second)


def test_fast_and_slow_are_not_the_same() -> None:
    channel = (Channel("a.b"),)
    assert ChannelTable(channel, ()).key != ChannelTable((), channel).key


def test_a_whole_scale_is_the_same_table_as_an_integer() -> None:
    assert ChannelTable((Channel("a", scale=1),), ()).key == ChannelTable((Channel("a"),), ()).key


def test_the_key_is_that_of_the_first_release() -> None:
    table = ChannelTable((Channel("cpu.user", "0", Kind.COUNTER, 1e7),), (Channel("memory.free"),))
    assert table.key.hex() == "0bff4196662e521d"


def test_a_table_with_names_that_are_not_printable_keeps_the_key_it_was_announced_with() -> None:
    table = ChannelTable.from_json(announced(fast=[["cpu.user", "a\x1bb\xa0", *ROW[2:]]]))
    assert table.fast[0].instance == "a\x1bb\xa0"
    assert table.key.hex() == "696c370390ddccbe"
    assert ChannelTable.from_json(table.to_json()) == table
    assert Channel("cpu.user", "a\x1bb\xa0").instance == "a\\x1bb\\u00a0"


def announced(**parts: object) -> bytes:
    return json.dumps({"version": 1, "fast": [ROW], "slow": [], **parts}).encode()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"[]",
        b"7",
        b"[" * 100_000,
        announced(version=2),
        announced(fast=None),
        announced(slow={"a": 1}),
        announced(fast=[[]]),
        announced(fast=[ROW[:4]]),
        announced(fast=[["CPU user", *ROW[1:]]]),
        announced(fast=[["", *ROW[1:]]]),
        announced(fast=[["a" * 129, *ROW[1:]]]),
        announced(fast=[["a", 5, *ROW[2:]]]),
        announced(fast=[["a", "\ud800", *ROW[2:]]]),
        announced(fast=[["a", "", "gauge", "1", "fast"]]),
        announced(fast=[["a", "", "gauge", float("nan"), "fast"]]),
        announced(fast=[["a", "", "gauge", float("inf"), "fast"]]),
        announced(fast=[["a", "", "gauge", 0, "fast"]]),
        announced(fast=[["a", "", "gauge", -1.0, "fast"]]),
        announced(fast=[["a", "", "gauge", True, "fast"]]),
        announced(fast=[["a", "", "gauge", 10**400, "fast"]]),
        announced(fast=[ROW] * MAX_CHANNELS, slow=[ROW]),
    ],
    ids=range(24),
)
def test_an_invalid_announcement_raises_channel_table_error(data: bytes) -> None:
    with pytest.raises(TableError, match="channel table"):
        ChannelTable.from_json(data)


@given(st.binary(max_size=60))
def test_random_bytes_raise_channel_table_error(data: bytes) -> None:
    with pytest.raises(TableError):
        ChannelTable.from_json(data)


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=10,
)


@given(_json, _json)
def test_any_json_is_a_table_or_raises_channel_table_error(fast: object, slow: object) -> None:
    try:
        table = ChannelTable.from_json(announced(fast=fast, slow=slow))
    except TableError:
        return
    assert ChannelTable.from_json(table.to_json()) == table


def test_a_channel_that_several_tables_have_is_kept_once() -> None:
    first, other = (
        ChannelTable.from_json(announced()),
        ChannelTable.from_json(announced(slow=[ROW])),
    )
    assert first.fast[0] is other.fast[0] is other.slow[0]


def test_values_that_only_compare_equal_are_not_interned_together() -> None:
    assert ChannelTable.from_json(announced(fast=[["a", "", "gauge", 1, "fast"]])).fast
    with pytest.raises(TableError, match="True is not a scale"):
        ChannelTable.from_json(announced(fast=[["a", "", "gauge", True, "fast"]]))


def test_labels_are_for_people() -> None:
    assert Channel("cpu.user", "3").label == "cpu.user{3}"
    assert Channel("memory.free").label == "memory.free"
