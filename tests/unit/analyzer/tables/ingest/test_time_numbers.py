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


@pytest.mark.parametrize(
    "begin",
    [134_397_288_000_000_000, 639_308_520_000_000_000],  # since 1601 and since the year 1
)
def test_ticks_of_windows_and_net_are_read(write: Write, begin: int) -> None:
    rows = "".join(f"{begin + 10_000_000 * n},{n % 7}.5\n" for n in range(40))
    data = read(write(f"time,load\n{rows}"))
    assert data.clock.show(int(data.times_ns[1])) == "2026-11-21T10:00:01Z"


@pytest.mark.parametrize("jitter", [0.0, 0.02])
def test_regular_moments_of_our_time_are_a_clock_whatever_their_name(
    write: Write, jitter: float
) -> None:
    times = [1_795_255_200 + n + jitter * (n % 3) for n in range(40)]
    rows = "".join(f"{n % 7},{time},{n % 5}.5\n" for n, time in enumerate(times))
    data = read(write(f"load,taken,busy\n{rows}"))
    assert data.understanding.time == "taken"
    assert lone(data).names == ("load", "busy")


def test_a_counter_of_bytes_is_no_clock(write: Write) -> None:
    rows = "".join(f"{n % 7},{1_700_000_000 + 50_000 * n + n % 3},{n % 5}.5\n" for n in range(40))
    assert read(write(f"load,bytes,busy\n{rows}")).clock.column is None
