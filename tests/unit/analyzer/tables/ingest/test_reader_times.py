"""Tables whose times are in columns of any name, or below no header."""

from __future__ import annotations

import pytest

from reveal_analyzer.tables.ingest.reader import ReadOptions, read
from support.table_files import Write, lone


def test_a_day_and_a_time_are_read_together_whatever_their_names(write: Write) -> None:
    rows = "".join(f"21.11.2026;10:00:{n:02d};{n % 7},5\n" for n in range(30))
    data = read(write(f"Datum;Uhrzeit;CPU\n{rows}"))
    assert data.clock.show(int(data.times_ns[1])) == "2026-11-21T10:00:01Z"


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
