"""Rows that a file has more than once."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from reveal_analyzer.tables.ingest.reader import read
from support.table_files import Write, lone


@pytest.mark.parametrize("joined", [lambda rows: rows + rows, lambda rows: rows[:30] + rows[20:]])
def test_logs_that_overlap_count_once(
    write: Write, joined: Callable[[list[str]], list[str]]
) -> None:
    rows = [f"2026-11-21 10:00:{n:02d},{n % 7}.5\n" for n in range(40)]
    data = read(write("time,load\n" + "".join(joined(rows))))
    assert lone(data).values[:, 0].tolist() == [n % 7 + 0.5 for n in range(40)]
    repeated = len(joined(rows)) - len(rows)
    assert f"{repeated} rows repeat another: each counts once" in data.notes
    assert len(data.rows) == len(joined(rows))


def test_equal_rows_of_a_second_are_samples(write: Write) -> None:
    rows = [f"2026-11-21 10:00:{n // 2:02d},5.5\n" for n in range(40)]
    assert len(read(write("time,load\n" + "".join(rows))).times_ns) == 40
