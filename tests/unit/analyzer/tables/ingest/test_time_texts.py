"""Times that are written as text, in the spellings of tools."""

from __future__ import annotations

from datetime import UTC, datetime

import pandas as pd
import pytest

from reveal_analyzer.tables.ingest.time_texts import UNREADABLE, spelled_as_iso, times_of

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
