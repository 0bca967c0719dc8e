"""Spans of time as users write them."""

from __future__ import annotations

import argparse
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveal_cli.errors import CliError
from reveal_cli.options import Length, length, nanoseconds
from reveal_cli.time_spans import TimeRange, resolve, span

SECOND = 1_000_000_000
DAY = 86_400 * SECOND
START = 1_700_000_000 * SECOND  # 2023-11-14T22:13:20Z
HOUR = TimeRange(START, START + 3600 * SECOND, UTC)


@pytest.mark.parametrize(
    ("text", "ns"),
    [("0.5", SECOND // 2), ("3s", 3 * SECOND), ("100ms", SECOND // 10), ("2m", 120 * SECOND),
     ("1h30m", 5400 * SECOND), ("2m5.5s", 125_500_000_000), ("7us", 7000), ("0", 0)],
)  # fmt: skip
def test_times_are_read_as_users_write_them(text: str, ns: int) -> None:
    assert nanoseconds(text) == ns


@pytest.mark.parametrize("text", ["", "x", "-1", "1.5h", "3 s", "nan", "1e9", "٣", "9" * 40])
def test_other_text_is_refused_in_a_sentence(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="write 100ms, 3s"):
        nanoseconds(text)


def test_a_length_is_samples_or_time() -> None:
    assert length("30") == Length(samples=30)
    assert length("3s") == Length(ns=3 * SECOND)
    assert (length("30").in_samples(SECOND), length("3s").in_samples(SECOND // 10),
            length("1s").in_samples(DAY)) == (
        30, 30, 1,
    )  # fmt: skip
    for nothing in ("0", "0s"):
        with pytest.raises(argparse.ArgumentTypeError, match="not a length"):
            length(nothing)


@pytest.mark.parametrize(
    ("text", "begin", "end"),
    [
        ("22:20/22:25", 400, 700),
        ("22:20:30.5/22:25", 430.5, 700),
        ("120/180", 120, 180),
        ("2m/3m", 120, 180),
        ("1.5/1.5", 1.5, 1.5),
        ("2023-11-14T22:20:00Z/2023-11-14T23:25:00+01:00", 400, 700),
        ("2023-11-14T22:20/2023-11-14T22:25", 400, 700),
        ("22:00/23:00", -800, 2800),
    ],
)
def test_a_span_is_resolved_within_the_data(text: str, begin: float, end: float) -> None:
    found = resolve(span(text), HOUR)
    assert found == (START + int(begin * SECOND), START + int(end * SECOND))


def test_clock_times_are_those_of_the_data() -> None:
    zone = timezone(timedelta(hours=2))
    assert resolve(span("0:20/0:25"), TimeRange(HOUR.first_ns, HOUR.last_ns, zone)) == (
        START + 400 * SECOND, START + 700 * SECOND,
    )  # fmt: skip


def test_a_span_goes_over_midnight() -> None:
    night = TimeRange(START, START + 5 * 3600 * SECOND, UTC)
    midnight = START + 6400 * SECOND
    assert resolve(span("23:55/00:05"), night) == (
        midnight - 300 * SECOND, midnight + 300 * SECOND,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("10:02/10:05", "outside of the data: 2023-11-14T22:13:20.000Z to"),
        ("4000/5000", "outside"),
        ("200/100", "ends before it begins"),
        ("2024-01-01T00:00Z/2024-01-02T00:00Z", "outside"),
    ],
)
def test_a_span_outside_of_the_data_is_refused(text: str, message: str) -> None:
    with pytest.raises(CliError, match=message):
        resolve(span(text), HOUR)


def test_a_clock_time_of_several_days_needs_the_date() -> None:
    with pytest.raises(CliError, match="is in the data on 3 days: write --span with the date"):
        resolve(span("10:02/10:05"), TimeRange(START, START + 3 * DAY, UTC))


def test_times_without_a_date_take_spans_in_seconds_only() -> None:
    own = TimeRange(0, 600 * SECOND, absolute=False)
    assert resolve(span("120/180"), own) == (120 * SECOND, 180 * SECOND)
    for text in ("10:02/10:05", "2023-11-14T22:20Z/2023-11-14T22:25Z"):
        with pytest.raises(CliError, match="have no date"):
            resolve(span(text), own)
    with pytest.raises(CliError, match="0 to 600 s"):
        resolve(span("700/800"), own)


@pytest.mark.parametrize("text", ["", "/", "10:02", "10:02/", "10:02/300", "25:00/26:00", "a/b"])
def test_text_that_is_not_a_span_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="is not FROM/TO"):
        span(text)


@given(st.integers(0, 3600), st.integers(0, 3600))
def test_every_second_can_be_given_as_a_clock_time(first_s: int, second_s: int) -> None:
    begin, end = sorted((first_s, second_s))
    first = datetime(2023, 11, 14, 22, 13, 20)
    names = [f"{first + timedelta(seconds=second):%H:%M:%S}" for second in (begin, end)]
    assert resolve(span("/".join(names)), HOUR) == (START + begin * SECOND, START + end * SECOND)
