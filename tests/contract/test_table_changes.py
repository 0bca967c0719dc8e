"""Changes between channel tables: applied to the base they give the table, whatever it is."""

from __future__ import annotations

import json
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveal_contract import catalogue
from reveal_contract.channels import MAX_CHANNELS, Channel, ChannelTable, TableError
from reveal_contract.metric import Kind
from reveal_contract.table_changes import TableChanges
from support.channel_strategies import channels, tables

BASE = ChannelTable((Channel("cpu.user"), Channel("cpu.idle")), (Channel("memory.free"),))
_pool = st.shared(st.lists(channels, min_size=1, max_size=8), key="pool")
_parts = _pool.flatmap(lambda pool: st.lists(st.sampled_from(pool), max_size=12).map(tuple))
related = st.builds(ChannelTable, _parts, _parts)  # tables of the same channels, also repeated


def reread(changes: TableChanges) -> TableChanges:
    return TableChanges.from_announcement(changes.announcement())


@given(related, related)
def test_changes_give_the_new_table_and_its_key(base: ChannelTable, table: ChannelTable) -> None:
    applied = reread(TableChanges.between(base, table)).applied(base)
    assert applied == table
    assert applied.key == table.key


@given(tables, tables)
def test_tables_that_share_nothing_are_no_exception(
    base: ChannelTable, table: ChannelTable
) -> None:
    assert reread(TableChanges.between(base, table)).applied(base) == table


def test_a_sum_whose_members_change_is_the_same_channel() -> None:
    base, table = (ChannelTable((Channel("io.read", members=n),), ()) for n in (1, 2))
    assert TableChanges.between(base, table).fast == ((0, 1),)


def test_a_pod_that_comes_costs_a_thirtieth_of_the_table() -> None:
    subject = [row.name for row in catalogue.rows() if ".subject." in row.name][:21]
    host = [row.name for row in catalogue.rows() if ".subject." not in row.name]

    def table(pods: range) -> ChannelTable:
        names = [f"team-{n % 5}/trainer-{n}-7d9f8b6c5-x{n * 7919 % 99991:05d}" for n in pods]
        own = [Channel(name, pod) for pod in names for name in subject]
        return ChannelTable((*map(Channel, host), *own), ())

    base, table_after = table(range(40)), table(range(1, 41))
    changes = TableChanges.between(base, table_after).announcement()
    assert len(changes) * 30 < len(table_after.announcement())


@given(st.binary(max_size=200))
def test_bytes_that_are_no_changes_are_refused(data: bytes) -> None:
    with pytest.raises(TableError):
        TableChanges.from_announcement(data)


def announced(**parts: object) -> bytes:
    whole = {"version": 1, "base": BASE.key.hex(), "fast": [[0, 2]], "slow": [[0, 1]], **parts}
    return zlib.compress(json.dumps(whole).encode())


def test_the_format_is_that_of_the_first_release() -> None:
    assert TableChanges.from_announcement(announced()).applied(BASE) == BASE
    table = ChannelTable((BASE.fast[1], Channel("cpu.steal", "0", Kind.COUNTER, 1e7)), BASE.slow)
    text = zlib.decompress(TableChanges.between(BASE, table).announcement()).decode()
    assert text == (
        f'{{"version":1,"base":"{BASE.key.hex()}",'
        '"fast":[[1,2],["cpu.steal","0","counter",10000000.0,"fast"]],"slow":[[0,1]]}'
    )


@pytest.mark.parametrize(
    "parts",
    [
        {"version": 2},
        {"base": None},
        {"base": "xy"},
        {"base": "00"},
        {"fast": None},
        {"fast": {}},
        {"fast": [[2, 2]]},
        {"fast": [[-1, 2]]},
        {"fast": [[1, 0]]},
        {"fast": [[0, 1.5]]},
        {"fast": [["a", "b"]]},
        {"slow": [["CPU USER", "", "counter", 1.0, "fast"]]},
        {"slow": 7},
    ],
)
def test_changes_of_another_form_are_refused(parts: dict[str, object]) -> None:
    with pytest.raises(TableError):
        TableChanges.from_announcement(announced(**parts))


@pytest.mark.parametrize("parts", [{"fast": [[0, 3]]}, {"slow": [[1, 2]]}, {"base": "00" * 8}])
def test_changes_of_another_table_are_refused(parts: dict[str, object]) -> None:
    with pytest.raises(TableError):
        TableChanges.from_announcement(announced(**parts)).applied(BASE)


def test_changes_that_repeat_the_base_without_end_are_refused() -> None:
    channels = tuple(Channel("cpu.user", str(number)) for number in range(1000))
    base = ChannelTable(channels, ())
    times = MAX_CHANNELS // 1000 + 1
    data = announced(base=base.key.hex(), fast=[[0, 1000]] * times, slow=[])
    with pytest.raises(TableError, match="over"):
        TableChanges.from_announcement(data).applied(base)
