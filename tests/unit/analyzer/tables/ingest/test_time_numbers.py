"""Times that are written as numbers, in tables without a header."""

from __future__ import annotations

import pytest

from reveal_analyzer.tables.ingest.reader import ReadOptions, read
from support.table_files import Write, lone


@pytest.mark.parametrize(
    ("row", "names"),
    [
        ("servers.n1.cpu {v} {t}\nservers.n1.io 1 {t}", ("servers.n1.cpu", "servers.n1.io")),
        ("{t}.000000,1820,n1,{v}", ("c2", "c4")),
    ],
)
def test_seconds_since_1970_are_found_without_a_header(
    write: Write, row: str, names: tuple[str, ...]
) -> None:
    rows = "".join(row.format(v=n % 7, t=1_795_255_200 + n) + "\n" for n in range(40))
    data = read(write(rows), ReadOptions(counters=frozenset()))
    assert lone(data).names == names
    assert len(data.times_ns) == 40
    assert data.clock.absolute


def test_other_rising_numbers_are_no_times(write: Write) -> None:
    """A counter of bytes is as large, and rises unevenly."""
    rows = "".join(f"x,{1_700_000_000 + n**5},{n % 7}\n" for n in range(40))
    assert read(write(rows)).clock.column is None
