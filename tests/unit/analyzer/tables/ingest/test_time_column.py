"""The time column of a table: how it is found, and what its values are."""

from __future__ import annotations

import numpy as np
import pytest

from reveal_analyzer.tables.ingest.open import TableFileError
from reveal_analyzer.tables.ingest.reader import ReadOptions, read
from reveal_analyzer.tables.ingest.time_texts import DayOrder
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


@pytest.mark.parametrize("name", ["Elapsed Time", "time", "t"])
def test_a_clock_without_a_day_counts_from_midnight(write: Write, name: str) -> None:
    rows = "".join(f"9:{n // 60:02d}:{n % 60:02d},{n}\n" for n in range(90))
    data = read(write(f"{name},a\n{rows}"))
    assert np.diff(data.times_ns).tolist() == [SECOND] * 89
    assert data.clock.show(int(data.times_ns[-1])) == "9:01:29"
    assert (data.clock.absolute, data.clock.has_time_of_day) == (False, True)


@pytest.mark.parametrize(
    ("name", "seconds"), [("minutes", 60), ("elapsed (min)", 60), ("hours", 3600), ("seconds", 1)]
)
def test_minutes_and_hours_are_units(write: Write, name: str, seconds: int) -> None:
    data = read(write(f"{name},a\n" + "".join(f"{n},{n % 3}\n" for n in range(9))))
    assert np.diff(data.times_ns).tolist() == [seconds * SECOND] * 8
    assert data.clock.show(int(data.times_ns[3])) == "3"


def test_a_quantity_of_eight_digits_is_no_day(write: Write) -> None:
    rows = "".join(f"10:00:{n:02d},{16384256 + n * 7 % 11},{n * 13 % 40}\n" for n in range(40))
    data = read(write(f"time,mem_used_kb,cpu\n{rows}"))
    assert lone(data).names == ("mem_used_kb", "cpu")
    assert np.diff(data.times_ns).tolist() == [SECOND] * 39


def test_days_and_months_in_doubt_need_a_flag(write: Write) -> None:
    path = write("Date,a\n" + "".join(f"05/06/2023 09:00:{n:02d},{n}\n" for n in range(9)))
    with pytest.raises(TableFileError, match=r"Date does not say.*--day-first or --month-first"):
        read(path)
    for order, month in ((DayOrder.DAY_FIRST, "06-05"), (DayOrder.MONTH_FIRST, "05-06")):
        data = read(path, ReadOptions(order=order))
        assert data.clock.show(int(data.times_ns[0])) == f"2023-{month}T09:00:00Z"


def test_a_clear_clock_is_used_before_a_doubtful_clock(write: Write) -> None:
    rows = "".join(f"05/06/2023,{EPOCH + n},{n % 4}\n" for n in range(9))
    assert read(write(f"Date,epoch,a\n{rows}")).times_ns[0] == EPOCH * SECOND


def test_a_date_and_a_time_of_day_are_read_in_any_order_of_days(write: Write) -> None:
    rows = "".join(f"21/11/2026,09:00:{n:02d},{n % 4}\n" for n in range(9))
    data = read(write(f"Date,Time,a\n{rows}"))
    assert data.clock.show(int(data.times_ns[0])) == "2026-11-21T09:00:00Z"


def test_days_of_a_spreadsheet_need_a_flag(write: Write) -> None:
    path = write("time,a\n" + "".join(f"{46347 + n / 86400:.9f},{n}\n" for n in range(9)))
    with pytest.raises(TableFileError, match="--excel-dates"):
        read(path)
    data = read(path, ReadOptions(excel=True))
    assert data.clock.show(int(data.times_ns[0])) == "2026-11-21T00:00:00Z"
    assert np.diff(data.times_ns).tolist() == [SECOND] * 8
    seconds = read(path, ReadOptions(time="time"))
    assert not seconds.clock.absolute
