"""Channel tables are kept in a limited memory, the newest of each node in any case."""

from __future__ import annotations

import pytest

from reveal_analyzer.stream import kept_tables
from reveal_analyzer.stream.kept_tables import KeptTables
from reveal_contract.channels import Channel, ChannelTable


def table_of(name: object, channels: int = 1) -> ChannelTable:
    return ChannelTable(tuple(Channel("cpu.user", f"{name}-{n}") for n in range(channels)), ())


def known(kept: KeptTables, tables: list[ChannelTable]) -> list[int]:
    return [number for number, each in enumerate(tables) if kept.get(each.key) is not None]


@pytest.fixture(autouse=True)
def _room_for_three(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_tables, "MOST_BYTES", 1000)


def test_beyond_the_limit_the_longest_unused_tables_are_dropped() -> None:
    kept, tables = KeptTables(), [table_of(number) for number in range(6)]
    for each in tables:
        kept.add(each)
    assert kept.get(tables[1].key) is not None
    kept.forget()
    assert known(kept, tables) == [1, 4, 5]


def test_the_newest_table_of_a_node_and_its_base_stay() -> None:
    kept, tables = KeptTables(), [table_of(number) for number in range(6)]
    for each in tables:
        kept.add(each)
    kept.note_newest(["n1", "n2"], tables[0].key, base=tables[1].key)
    kept.forget()
    assert known(kept, tables) == [0, 1, 5]


def test_the_newest_tables_of_many_nodes_stay_beyond_the_limit() -> None:
    kept, tables = KeptTables(), [table_of(number) for number in range(20)]
    for number, each in enumerate(tables):
        kept.add(each)
        kept.note_newest([f"n{number}"], each.key)
        kept.forget()
    assert known(kept, tables) == list(range(20))


def test_a_node_that_announces_without_end_keeps_its_newest_table() -> None:
    kept, tables = KeptTables(), [table_of(number, channels=10) for number in range(50)]
    for each in tables:
        kept.add(each)
        kept.note_newest(["n"], each.key)
        kept.forget()
    assert known(kept, tables) == [49]


def test_a_table_that_is_learned_again_counts_once() -> None:
    kept, tables = KeptTables(), [table_of(number) for number in range(3)]
    for each in [*tables[:1] * 5, *tables[1:]]:
        kept.add(each)
    kept.forget()
    assert known(kept, tables) == [0, 1, 2]


def test_long_names_count() -> None:
    kept, tables = KeptTables(), [table_of("x" * 2000), table_of("a"), table_of("b")]
    for each in tables:
        kept.add(each)
    kept.forget()
    assert known(kept, tables) == [1, 2]
