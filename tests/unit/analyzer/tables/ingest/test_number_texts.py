"""Numbers that are written as text."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveal_analyzer.tables.ingest.number_texts import NumberMarks, numbers_of


@pytest.mark.parametrize(
    ("text", "number", "unit"),
    [
        ("37 %", 37.0, "%"),
        ("300.53 W", 300.53, "W"),
        ("1410 MHz", 1.41e9, "Hz"),
        ("512 MiB", 512 * 2.0**20, "B"),
        ("1.5GB", 1.5e9, "B"),
        ("12ms", 0.012, "s"),
        ("-3.5 °C", -3.5, "C"),
        ("1,234.5", 1234.5, ""),
        ("'-0.065", -0.065, ""),
        ("1m2.5s", 62.5, "s"),
        ("2h", 7200.0, "s"),
        ("1h30m", 5400.0, "s"),
        ("\u221251.3", -51.3, ""),
        ("1'234'567.5", 1234567.5, ""),
        ("620\u202f529", 620529.0, ""),
        ("50.9 \ufffdC", 50.9, "C"),  # of Latin-1
        ("21.2 Gb/s", 2.12e10, "bit/s"),
        ("50.4k", 50400.0, ""),
        ("51 IOPS", 51.0, "IOPS"),
        ("250m", 0.25, ""),  # of a CPU, as Kubernetes writes it
        ("512Mi", 512 * 2.0**20, "B"),
        ("3999917K", 3999917e3, ""),  # as Slurm writes kilobytes
        ("300 K", 300.0, "K"),
        ("'50.97'", 50.97, ""),
    ],
)
def test_units_become_base_units(text: str, number: float, unit: str) -> None:
    numbers, words, found = numbers_of(pd.Series([text, None]), NumberMarks())
    assert (float(numbers[0]), words, found) == (pytest.approx(number), 0, unit)
    assert np.isnan(numbers[1])


def test_a_bare_m_is_a_minute_beside_other_durations() -> None:
    read = numbers_of(pd.Series(["45m", "1h5m"]), NumberMarks())
    assert (read.numbers.tolist(), read.unit) == ([45 * 60.0, 65 * 60.0], "s")


def test_prefixes_may_differ_and_units_may_not() -> None:
    mixed = numbers_of(pd.Series(["1.2 GiB", "512 MiB"]), NumberMarks())
    assert mixed.numbers.tolist() == pytest.approx([1.2 * 2**30, 2**29])
    assert numbers_of(pd.Series(["5 W", "5 s"]), NumberMarks()).words == 2


@pytest.mark.parametrize(
    "words", [("Not Active", "Active"), ("no", "YES"), ("off", "on"), ("Disabled", "Enabled")]
)
def test_switches_are_numbers(words: tuple[str, str]) -> None:
    off, on = words
    read = numbers_of(pd.Series([off, on, None, off]), NumberMarks())
    assert (read.numbers[[0, 1, 3]].tolist(), read.words) == ([0, 1, 0], 0)
    assert numbers_of(pd.Series([off, "unknown"]), NumberMarks()).words == 2
    assert numbers_of(pd.Series([off, "5"]), NumberMarks()).words == 1


def test_an_unknown_unit_must_be_that_of_all() -> None:
    assert numbers_of(pd.Series(["5 foo", "6 bar"]), NumberMarks()).words == 2
    assert numbers_of(pd.Series(["n1 foo", "n2 foo"]), NumberMarks()).words == 2


def test_a_word_costs_a_value() -> None:
    numbers, words, _ = numbers_of(pd.Series(["1", "oops", "3"]), NumberMarks())
    assert (numbers[[0, 2]].tolist(), words) == ([1.0, 3.0], 1)


def test_times_and_durations_are_no_numbers() -> None:
    """A time that is missing was -9.2e18 in a table of Parquet."""
    for values in (
        pd.Series(pd.to_datetime([None, "2023-05-05"])),
        pd.Series(pd.to_timedelta([1])),
    ):
        assert numbers_of(values, NumberMarks()).words == int(values.notna().sum())
        assert np.isnan(numbers_of(values, NumberMarks()).numbers).all()


@given(st.integers(-(10**9), 10**9), st.integers(0, 99))
def test_marks_of_thousands_and_decimals(whole: int, part: int) -> None:
    text = f"{whole:,}".replace(",", ".") + f",{part:02d}"
    expected = float(f"{whole}.{part:02d}")
    numbers, words, _ = numbers_of(pd.Series([text, "x"]), NumberMarks(",", "."))
    assert (numbers[0], words) == (pytest.approx(expected), 1)
