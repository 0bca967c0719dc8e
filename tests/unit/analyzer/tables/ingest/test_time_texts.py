"""Times that are written as text, in the spellings of tools."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pandas as pd
import pytest

from reveal_analyzer.tables.ingest.time_texts import (
    UNREADABLE,
    DayOrder,
    across_midnight,
    clock_times_of,
    day_order,
    spelled_as_iso,
    times_of,
)

NS = 1_000_000_000
MOMENT = int(datetime(2023, 5, 5, 8, 50, 7, tzinfo=UTC).timestamp()) * NS


@pytest.mark.parametrize(
    "text",
    [
        "2023-05-05 08:50:07 UTC",
        "2023-05-05 08:50:07 +0000 UTC",
        "2023-05-05 10:50:07 +0200 CEST",
        "2023-05-05 08:50:07,000",
        "2023/05/05 08:50:07",
        "2023/05/05 08:50:07.000",
        "20230505 08:50:07",
        "20230505T085007",
        "05.05.2023 08:50:07",
        "2023-05-05 08:50:07 AM",
        "Fri, 05 May 2023 08:50:07 GMT",
        "05/May/2023:08:50:07 +0000",
        "05 May 2023 08:50:07",
        "Fri May  5 08:50:07 2023",
        "1683276607:",
        "Fri May  5 08:50:07 UTC 2023",
        "[2023-05-05 08:50:07]",
        "2023-05-05T10:50:07+02:00[Europe/Berlin]",
        "2023-05-05 08:50:07+00",
        "May 5, 2023 @ 08:50:07.000",
        "May 5, 2023 08:50:07",
        "May 05, 2023, 08:50:07 AM",
        "2023-05-05_08-50-07",
        "2023/05/05-08:50:07",
        "2023-05-05 08.50.07",
        "20230505-085007",
        "20230505_085007Z",
        "2023-125T08:50:07",  # the day of the year: ISO 8601
        "'2023-05-05 08:50:07",
    ],
)
def test_unambiguous_times_are_read(text: str) -> None:
    assert times_of(pd.Series([text, "nothing", None])).tolist() == [MOMENT, UNREADABLE, UNREADABLE]


def test_a_column_may_mix_spellings() -> None:
    texts = ["05 May 2023 08:50:07", "2023/05/05 08:50:07", "2023-05-05 08:50:07"]
    for order in (texts, texts[::-1]):
        assert times_of(pd.Series(order)).tolist() == [MOMENT] * 3


@pytest.mark.parametrize("text", ["1683-01-01 00:00:00", "2200-01-01 00:00:00"])
def test_a_time_whose_distance_from_others_overflows_is_unreadable(text: str) -> None:
    assert times_of(pd.Series([text])).tolist() == [UNREADABLE]


@pytest.mark.parametrize("text", ["05/06/2023 08:50:07", "node17", "51.5", "08:50:07"])
def test_without_a_day_it_is_no_time(text: str) -> None:
    assert times_of(pd.Series([text])).tolist() == [UNREADABLE]


@pytest.mark.parametrize(
    ("hour", "expected"), [("12:00:00 AM", "T00:"), ("12:30:00 PM", "T12:"), ("1:02:03 pm", "T13:")]
)
def test_twelve_hours(hour: str, expected: str) -> None:
    assert expected in spelled_as_iso(f"2023-05-05 {hour}")


@pytest.mark.parametrize(
    ("texts", "order"),
    [
        (["13/05/2023 08:50:07"], DayOrder.DAY_FIRST),
        (["05/06/2023", "05/13/2023"], DayOrder.MONTH_FIRST),
        (["05/05/2023 08:50:07"], DayOrder.MONTH_FIRST),
        (["05/06/2023"], DayOrder.IN_DOUBT),
        (["5-6-2023 1:02"], DayOrder.IN_DOUBT),
        (["2023-05-06", "05.06.2023"], DayOrder.NONE),
        ([], DayOrder.NONE),
    ],
)
def test_all_dates_of_a_column_decide_the_order(texts: list[str], order: DayOrder) -> None:
    assert day_order(pd.Series(texts, dtype=object)) is order


def test_dates_are_read_in_their_order() -> None:
    texts = pd.Series(["05/04/2023 08:50:07", "2023-05-04 08:50:07", "x"])
    by_month = times_of(texts, DayOrder.MONTH_FIRST)
    assert by_month[0] == by_month[1] == MOMENT - 86_400 * NS
    assert times_of(texts, DayOrder.DAY_FIRST)[0] == MOMENT - 30 * 86_400 * NS
    assert by_month[2] == UNREADABLE


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0:00:07", 7), ("27:00:07.5", 97_207.5), ("1-02:03:04", 93_784), ("2 days, 0:00:01", 172_801),
     ("2 days 00:00:01", 172_801), ("08:50", 31_800), ("12:00:01 AM", 1), ("1:00:00 pm", 46_800),
     ("99:00:61x", None), ("abc", None), ("2023-05-05 08:50:07", None)],
)  # fmt: skip
def test_clocks_without_a_day_are_read(text: str, seconds: float | None) -> None:
    expected = UNREADABLE if seconds is None else int(seconds * NS)
    assert clock_times_of(pd.Series([text])).tolist() == [expected]


def test_two_numbers_may_be_minutes_and_seconds() -> None:
    assert clock_times_of(pd.Series(["08:50"]), minutes_first=True).tolist() == [530 * NS]


def test_two_numbers_with_a_fraction_are_minutes_and_seconds() -> None:
    assert clock_times_of(pd.Series(["01:02.500", "00:03"])).tolist() == [62_500_000_000, 3 * NS]


def test_a_time_of_day_goes_on_after_midnight() -> None:
    times = np.array([86_399, UNREADABLE // NS, 0, 1, 86_398]) * NS
    times[1] = UNREADABLE
    assert across_midnight(times)[[0, 2, 3, 4]].tolist() == [
        NS * second for second in (86_399, 86_400, 86_401, 86_398)
    ]
