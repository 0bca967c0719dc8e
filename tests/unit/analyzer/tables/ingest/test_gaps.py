"""Gaps of a table are described: rows that are missing, and metrics without values."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from reveal_analyzer.tables.ingest.gaps import gap_notes
from reveal_analyzer.tables.scoring.table import Table
from support.property_tests import examples

SECOND = 10**9


def table(rows: int, names: str = "ab") -> Table:
    """Return a table of one row a second, one metric for each letter."""
    times = np.arange(rows, dtype=np.int64) * SECOND
    return Table(times, tuple(names), np.ones((rows, len(names))))


def without_rows(whole: Table, first: int, end: int) -> Table:
    kept = np.delete(np.arange(len(whole)), slice(first, end))
    return Table(whole.times_ns[kept], whole.names, whole.values[kept])


def seconds(ns: int) -> str:
    return str(ns // SECOND)


def notes(**tables: Table) -> list[str]:
    return gap_notes(tables, seconds)


class TestGapNotes:
    def test_a_whole_table_has_none(self) -> None:
        assert notes(node=table(100)) == []

    def test_rows_that_are_missing(self) -> None:
        assert notes(node=without_rows(table(100), 40, 60)) == ["no rows between 39 and 60"]

    def test_the_longest_of_several_gaps(self) -> None:
        part = without_rows(without_rows(table(200), 100, 150), 20, 40)
        assert notes(node=part) == ["no rows between 99 and 150, the longest of 2 gaps"]

    def test_rows_that_are_missing_are_described_once_for_all_nodes(self) -> None:
        part = without_rows(table(100), 40, 60)
        assert len(notes(a=part, b=part)) == 1

    def test_a_metric_that_is_gone_for_a_while(self) -> None:
        part = table(100)
        part.values[40:60, 1] = np.nan
        assert notes(node=part) == ["no value in b from 40 to 59"]

    def test_metrics_that_end_together(self) -> None:
        part = table(100)
        part.values[70:] = np.nan
        assert notes(x=part, y=table(100)) == ["no value of x in a, b from 70 on"]

    def test_a_metric_that_begins_later(self) -> None:
        part = table(100)
        part.values[:30, 0] = np.nan
        assert notes(node=part) == ["no value in a until 29"]

    def test_few_gaps_are_described_and_the_others_counted(self) -> None:
        part = table(100, "abcdef")
        for index in range(6):
            part.values[10 : 40 - index, index] = np.nan
        found = notes(node=part)
        assert len(found) == 4
        assert found[-1] == "shorter gaps in 3 more columns"

    def test_a_metric_of_every_tenth_row_has_no_gap(self) -> None:
        part = table(1_000)
        part.values[np.arange(1_000) % 12 != 0, 0] = np.nan
        assert notes(node=part) == []

    @examples(60)
    @given(st.integers(0, 290), st.integers(1, 10), st.integers(0, 20))
    def test_the_gap_of_a_metric_is_exact(self, first: int, length: int, holes: int) -> None:
        part = table(300, "a")
        part.values[np.random.default_rng(holes).integers(0, 300, holes)] = np.nan
        end = min(300, first + 10 * length)
        part.values[first:end] = np.nan
        part.values[max(0, first - 1)] = part.values[min(299, end)] = 1.0
        real = np.flatnonzero(np.isnan(part.values[:, 0]))
        inside = real[(real >= first) & (real < end)]
        found = notes(node=part)
        if len(inside) >= 10:
            assert str(inside[0]) in found[0] or str(inside[-1]) in found[0]
        else:
            assert found == []
