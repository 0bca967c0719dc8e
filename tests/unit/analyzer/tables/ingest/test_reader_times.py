"""Tables whose times are in columns of any name."""

from __future__ import annotations

from reveal_analyzer.tables.ingest.reader import read
from support.table_files import Write


def test_a_day_and_a_time_are_read_together_whatever_their_names(write: Write) -> None:
    rows = "".join(f"21.11.2026;10:00:{n:02d};{n % 7},5\n" for n in range(30))
    data = read(write(f"Datum;Uhrzeit;CPU\n{rows}"))
    assert data.clock.show(int(data.times_ns[1])) == "2026-11-21T10:00:01Z"
