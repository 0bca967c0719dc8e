"""Columns of times that are refused, with what to write instead."""

from __future__ import annotations

import pytest

from reveal_analyzer.tables.ingest.open import TableFileError
from reveal_analyzer.tables.ingest.reader import ReadOptions, read
from support.table_files import Write

NS = 1_000_000_000


def rows(header: str, times: list[str]) -> str:
    lines = [f"{time},{number % 7}.5" for number, time in enumerate(times)]
    return "\n".join([header, *lines, ""])


@pytest.mark.parametrize(
    "form",
    [
        "Nov 21 10:00:{:02d}",  # no year
        "2026-11-21 10:00:{:02d} CET",  # several zones are called so
        "11/21/26 10:00:{:02d}",
        "2026-325 10:00:{:02d}",
        "2026-W47-6T10:00:{:02d}",
    ],
)
def test_times_in_an_unknown_form_are_no_numbered_rows(write: Write, form: str) -> None:
    text = rows(
        "time,cpu" if "W" in form or "-325" in form else "when,cpu",
        [form.format(n) for n in range(40)],
    )
    with pytest.raises(TableFileError, match=r"in a form that is not read.*--period"):
        read(write(text))
    data = read(write(text), ReadOptions(period_ns=NS))
    assert len(data.times_ns) == 40


def test_words_with_numbers_are_no_times(write: Write) -> None:
    data = read(write(rows("bus,cpu", ["00000000:81:00.0"] * 20)))
    assert data.clock.column is None


def test_parts_of_times_in_columns_are_refused(write: Write) -> None:
    text = "Year,Month,Day,cpu\n" + "".join(f"2026,11,{n + 1},{n % 5}\n" for n in range(20))
    with pytest.raises(TableFileError, match="columns of their parts"):
        read(write(text))


def test_times_of_two_units_are_refused(write: Write) -> None:
    times = [1_795_255_200 + n if n < 20 else (1_795_255_200 + n) * 1000 for n in range(40)]
    with pytest.raises(TableFileError, match="several units, such as 1795255200 and 1795255239000"):
        read(write(rows("ts,cpu", list(map(str, times)))))


def test_an_unknown_epoch_is_refused(write: Write) -> None:
    """Read as ms since 1970 it would be the year 2128."""
    times = [str(5_000_000_000_000 + 1_000 * n) for n in range(40)]
    with pytest.raises(TableFileError, match="numbers of unknown meaning as times"):
        read(write(rows("time,cpu", times)))


@pytest.mark.parametrize(
    ("begin", "what"),
    [
        (45_051.375, "days of a spreadsheet.*--excel-dates"),
        (738_281.375, "days as Matlab counts.*RFC 3339"),
        (2_460_069.875, "Julian days.*RFC 3339"),
    ],
)
def test_days_that_look_like_seconds_are_refused(write: Write, begin: float, what: str) -> None:
    times = [f"{begin + n / 86_400:.8f}" for n in range(40)]
    with pytest.raises(TableFileError, match=what):
        read(write(rows("time,cpu", times)))
    assert len(read(write(rows("time,cpu", times)), ReadOptions(time="time")).times_ns) == 40


def test_a_table_with_a_column_for_each_time_is_refused(write: Write) -> None:
    times = ",".join(f"2026-11-21 10:00:{n:02d}" for n in range(40))
    values = ",".join(f"{n % 7}.5" for n in range(40))
    with pytest.raises(TableFileError, match=r"names of the columns are times.*a row for each"):
        read(write(f"metric,{times}\ncpu,{values}\nmem,{values}\n"))


def test_numbers_of_four_digits_are_names_of_columns(write: Write) -> None:
    rows = "".join(f"{n % 7}.5,{n % 5}.5,{n % 3}.5,{n % 2}.5\n" for n in range(40))
    data = read(write(f"2001,2002,2003,2004\n{rows}"))
    assert data.clock.column is None
