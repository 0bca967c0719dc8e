"""Times without a year, after a day that the file names."""

from __future__ import annotations

from datetime import date

import pandas as pd
import pytest

from reveal_analyzer.tables.ingest.reader import ReadOptions, read
from reveal_analyzer.tables.ingest.time_texts import DayOrder
from reveal_analyzer.tables.ingest.yearless_times import (
    are_yearless,
    day_named,
    order_of,
    with_years,
)
from support.table_files import Write


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('"Cmdline:","dool",,,,"Date:","29 Nov 2026 02:27:19 UTC"', date(2026, 11, 29)),
        ("# written 2026-11-29", date(2026, 11, 29)),
        ("version 2026-13-45, 31 Feb 2026, 12 Xyz 2026", None),
        ("", None),
    ],
)
def test_the_day_of_a_file_is_found(line: str, expected: date | None) -> None:
    assert day_named(["a", line]) == expected


@pytest.mark.parametrize(
    ("text", "since", "expected"),
    [
        ("Nov-29 02:27:19", date(2026, 11, 29), "2026-11-29T02:27:19"),
        ("29-11 02:27:19", date(2026, 11, 29), "2026-11-29T02:27:19"),
        ("11-29 02:27:19", date(2026, 11, 29), "2026-11-29T02:27:19"),
        ("06-05 02:27:19", date(2026, 6, 5), "2026-06-05T02:27:19"),  # of that day
        ("06-05 02:27:19", date(2026, 5, 1), "2026-05-06T02:27:19"),  # else the day is first
        ("Jan 02 00:00:01.5", date(2026, 12, 31), "2027-01-02T00:00:01.5"),
        ("Feb-29 00:00:00", date(2027, 11, 1), "2028-02-29T00:00:00"),
        ("Abc-29 00:00:00", date(2027, 11, 1), "Abc-29 00:00:00"),
        ("missing", date(2026, 1, 1), "missing"),
    ],
)
def test_the_year_is_that_after_the_day_of_the_file(text: str, since: date, expected: str) -> None:
    texts = pd.Series([text])
    assert with_years(texts, since, order_of(texts, since)).tolist() == [expected]


@pytest.mark.parametrize(
    ("texts", "order"),
    [
        (["03-04 23:59:59", "03-05 00:00:00"], DayOrder.MONTH_FIRST),  # the day of the file
        (["04-03 23:59:59", "05-03 00:00:00"], DayOrder.DAY_FIRST),
        (["03-05 23:59:59", "03-13 00:00:00"], DayOrder.MONTH_FIRST),
        (["03-04 23:59:59", "13-04 00:00:00"], DayOrder.DAY_FIRST),
    ],
)
def test_month_and_day_have_the_same_order_in_all_rows(texts: list[str], order: DayOrder) -> None:
    assert order_of(pd.Series(texts), date(2026, 3, 4)) is order


def test_a_flag_decides_the_order(write: Write) -> None:
    rows = "".join(f"03-0{day} 00:00:00,{day}\n" for day in (5, 6, 7))
    path = write(f"# Date: 01 Jan 2026\ntime,cpu\n{rows}")
    for order, month in ((DayOrder.MONTH_FIRST, 3), (DayOrder.DAY_FIRST, 5)):
        data = read(path, ReadOptions(order=order))
        assert data.clock.show(int(data.times_ns[0])).startswith(f"2026-0{month}")


def test_most_texts_decide() -> None:
    assert are_yearless(pd.Series(["Nov-29 02:27:19", None, "Nov 29 02:27:20", "x"]))
    assert not are_yearless(pd.Series(["2026-11-29 02:27:19", "02:27:19"]))
    assert not are_yearless(pd.Series([], dtype=object))
