"""The time column of a table: how it is found, and what its values are."""

from __future__ import annotations

import numpy as np
import pytest

from reveal_analyzer.tables.ingest.open import TableFileError
from reveal_analyzer.tables.ingest.reader import ReadOptions, read
from support.table_files import Write, lone

SECOND = 1_000_000_000
EPOCH = 1_700_000_000


@pytest.mark.parametrize(
    ("written", "ns"),
    [
        (f"{EPOCH}", EPOCH * SECOND),
        (f"{EPOCH}.1", EPOCH * SECOND + 100_000_000),
        (f"{EPOCH}100", EPOCH * SECOND + 100_000_000),
        (f"{EPOCH}100000", EPOCH * SECOND + 100_000_000),
        (f"{EPOCH}123456789", EPOCH * SECOND + 123_456_789),
        ("2023-11-14T22:13:20Z", EPOCH * SECOND),
        ("2023-11-14T23:13:20.5+01:00", EPOCH * SECOND + 500_000_000),
        ("2023-11-14 22:13:20.25", EPOCH * SECOND + 250_000_000),
    ],
)
def test_times_are_parsed_in_every_form_and_displayed_as_given(
    write: Write, written: str, ns: int
) -> None:
    data = read(write(f"a,timestamp\n1,{written}\n"))
    assert data.times_ns.tolist() == [ns]
    again = read(write(f"a,timestamp\n1,{data.clock.show(ns)}\n"))
    assert again.times_ns.tolist() == [ns]


@pytest.mark.parametrize(
    ("name", "ns"), [("time (ms)", 1_500_000), ("elapsed_us", 1_500), ("time", 1_500_000_000)]
)
def test_small_numbers_count_from_a_start_in_the_unit_of_the_name(
    write: Write, name: str, ns: int
) -> None:
    data = read(write(f"{name},a\n0,1\n1.5,2\n"))
    assert (data.times_ns.tolist(), data.clock.absolute) == ([0, ns], False)


def test_a_table_without_times_is_numbered_with_a_note(write: Write) -> None:
    data = read(write("cpu,mem\n1,2\n3,4\n"))
    assert data.times_ns.tolist() == [0, SECOND]
    assert any("no time column" in note for note in data.notes)
    data = read(write("cpu,mem\n1,2\n3,4\n"), ReadOptions(period_ns=SECOND // 10))
    assert (data.times_ns.tolist(), data.notes) == ([0, SECOND // 10], ())


def test_an_index_is_no_metric(write: Write) -> None:
    data = read(write(",cpu\n0,7\n1,8\n2,9\n"), ReadOptions(period_ns=60 * SECOND))
    assert lone(data).names == ("cpu",)
    assert data.times_ns.tolist() == [0, 60 * SECOND, 120 * SECOND]


def test_a_rising_counter_is_not_taken_for_a_clock(write: Write) -> None:
    data = read(write("bytes,cpu\n1700000000,7\n1700900000,8\n1799000000,9\n1799000001,9\n"))
    assert lone(data).names == ("bytes", "cpu")


def test_a_temperature_is_not_taken_for_a_clock(write: Write) -> None:
    assert lone(read(write("t,cpu\n45,1\n44,2\n46,3\n"))).names == ("t", "cpu")
    assert read(write("t,cpu\n0.5,1\n1.0,2\n")).times_ns.tolist() == [SECOND // 2, SECOND]


def test_a_date_and_a_time_of_day_are_read_together(write: Write) -> None:
    rows = "2023-11-14,23:59:59.5,7\n2023-11-15,00:00:00,8\n"
    data = read(write(f"Date,Time,cpu\n{rows}"))
    assert data.times_ns.tolist() == [
        (EPOCH + 6399) * SECOND + SECOND // 2,
        (EPOCH + 6400) * SECOND,
    ]
    assert (lone(data).names, data.notes) == (("cpu",), ())


def test_the_time_column_can_be_named_and_must_have_times(write: Write) -> None:
    path = write("when,at,cpu\nx,2023-11-14T22:13:20Z,1\ny,2023-11-14T22:13:21Z,2\n")
    assert read(path, ReadOptions(time="AT")).times_ns[0] == EPOCH * SECOND
    assert read(path).times_ns[0] == EPOCH * SECOND  # found by what it holds
    with pytest.raises(TableFileError, match="column when holds no times"):
        read(path, ReadOptions(time="when"))
    with pytest.raises(TableFileError, match="no column nowhere: the columns are when, at, cpu"):
        read(path, ReadOptions(time="nowhere"))


def test_a_duration_that_is_called_time_is_no_clock(write: Write) -> None:
    rows = "".join(f"{index},{0.3 + index * 7 % 11 / 100},{index % 5}\n" for index in range(60))
    data = read(write(f"step,time,loss\n{rows}"))
    assert "time" in lone(data).names
    assert len(data.times_ns) == 60


@pytest.mark.parametrize(
    "rows",
    [
        "Date,Time,a\n20230505,09:00:00,1\n20230505,09:01:00,2\n",
        "Date,Time,a\n2023/05/05,09:00:00 AM,1\n2023/05/05,09:01:00 AM,2\n",
        "when,a\n202305050900,1\n202305050901,2\n",
        "# host;timestamp;a\nn1;2023-05-05 09:00:00 UTC;1\nn1;2023-05-05 09:01:00 UTC;2\n",
    ],
)
def test_dates_and_times_of_tools_are_read(write: Write, rows: str) -> None:
    data = read(write(rows))
    assert data.clock.show(int(data.times_ns[0])) == "2023-05-05T09:00:00Z"
    assert np.diff(data.times_ns).tolist() == [60 * SECOND]
