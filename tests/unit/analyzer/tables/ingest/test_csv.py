"""Text tables as a generator writes them: whatever the form, the same values come back.

``bench/table_mutations.py`` reads many more mutated tables; ``REVEAL_EXPLORE=67`` makes 10,000
generated tables of the 150.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveal_analyzer.tables.ingest.open import TableFileError
from reveal_analyzer.tables.ingest.reader import Dataset, ReadOptions, read
from reveal_analyzer.tables.ingest.time_texts import DayOrder
from support.property_tests import examples
from support.table_files import Write, lone
from support.table_mutations import mutated, originals, unaccounted

START = datetime(2023, 5, 5, 9, 0, 0, tzinfo=UTC)
SAMPLES = 12
TIMES: dict[str, Callable[[datetime], str]] = {
    "epoch": lambda t: f"{t.timestamp():.0f}",
    "ms": lambda t: f"{t.timestamp() * 1000:.0f}",
    "iso": lambda t: t.strftime("%Y-%m-%dT%H:%M:%SZ"),
    "digits": lambda t: t.strftime("%Y%m%d%H%M%S"),
    "blank": lambda t: t.strftime("%Y-%m-%d %H:%M:%S"),
    "zone": lambda t: t.strftime("%Y-%m-%d %H:%M:%S UTC"),
    "slashes": lambda t: t.strftime("%Y/%m/%d %H:%M:%S.000"),
    "points": lambda t: t.strftime("%d.%m.%Y %H:%M:%S"),
    "twelve": lambda t: t.strftime("%Y-%m-%d %I:%M:%S %p"),
    "named": lambda t: t.strftime("%a, %d %b %Y %H:%M:%S GMT"),
    "day first": lambda t: t.strftime("%d/%m/%Y %H:%M:%S"),
    "month first": lambda t: t.strftime("%m/%d/%Y %I:%M:%S %p"),
    "excel": lambda t: f"{(t - datetime(1899, 12, 30, tzinfo=UTC)) / timedelta(days=1):.9f}",
}
ORDERS = {"day first": DayOrder.DAY_FIRST, "month first": DayOrder.MONTH_FIRST}
WITHOUT_BLANKS = ("epoch", "ms", "iso", "digits", "excel")
ABOVE = ("", "\n\n", "# by a tool\n", '"Tool 1.2"\n"Host:" n1\n')


@dataclass(frozen=True)
class Written:
    """A file, and what a reader has to find in it."""

    text: str
    encoding: str
    options: ReadOptions
    names: tuple[str, ...]
    values: np.ndarray


@st.composite
def tables(draw: st.DrawFn) -> Written:
    separator = draw(st.sampled_from([",", ";", "\t", "|", " "]))
    words = (
        WITHOUT_BLANKS
        if separator == " "
        else tuple(set(TIMES) - {"named"} if separator == "," else TIMES)
    )
    word = draw(st.sampled_from(sorted(words)))
    spelled = TIMES[word]
    plain = separator == "," or word == "excel"  # a decimal comma holds for all numbers
    decimal = draw(st.sampled_from(["."] if plain else [".", ","]))
    unit = draw(st.sampled_from(["", "W", "%"] if separator == " " else ["", " W", " %"]))
    labels = draw(st.sampled_from([(), ("n1", "n2"), ("n1", "n2", "n3")]))
    width = draw(st.integers(1, 3))
    numbers = st.integers(0, 9999).map(lambda number: number / 10)
    shape = SAMPLES, max(1, len(labels)), width
    size = shape[0] * shape[1] * shape[2]
    values = np.array(draw(st.lists(numbers, min_size=size, max_size=size)))
    values = values.reshape(shape)
    names = tuple(f"m{index}" for index in range(width))
    entity = draw(st.sampled_from(["host", "unit"])) if labels else ""
    lines = [separator.join(["time", *([entity] if labels else []), *names])]
    for sample in range(SAMPLES):
        for number in range(shape[1]):
            row = [f"{value:.1f}{unit}".replace(".", decimal) for value in values[sample, number]]
            moment = spelled(START + timedelta(seconds=sample))
            lines.append(separator.join([moment, *labels[number : number + 1], *row]))
    end = draw(st.sampled_from(["\n", "\r\n", "\r"]))
    text = draw(st.sampled_from(ABOVE)) + "\n".join([*lines, ""])
    options = ReadOptions(
        counters=frozenset(),
        entities=(entity,) if entity == "unit" else (),
        order=ORDERS.get(word, DayOrder.NONE),
        excel=word == "excel",
    )
    encoding = draw(st.sampled_from(["utf-8", "utf-8", "utf-16", "utf-16-be"]))
    return Written(text.replace("\n", end), encoding, options, names, values)


@examples(150)
@given(written=tables())
def test_values_are_those_that_were_written(
    tmp_path_factory: pytest.TempPathFactory, written: Written
) -> None:
    path = tmp_path_factory.mktemp("t") / "t.csv"
    path.write_bytes(written.text.encode(written.encoding))
    data = read(path, written.options)
    assert not unaccounted(data)
    for number in range(written.values.shape[1]):
        values, names = _entity(data, number, written)
        assert names == written.names
        np.testing.assert_allclose(values, written.values[:, number])
    assert np.abs(np.diff(data.times_ns) - 10**9).max() <= 10**6
    assert abs(int(data.times_ns[0]) - int(START.timestamp()) * 10**9) <= 10**6


def _entity(data: Dataset, number: int, written: Written) -> tuple[np.ndarray, tuple[str, ...]]:
    """The values of an entity: those of a host, or of a device in the only table."""
    if not written.options.entities:
        return data.nodes[number].table.values, data.nodes[number].table.names
    (node,) = data.nodes
    width = len(written.names)
    names = node.table.names[number * width : (number + 1) * width]
    label = f"n{number + 1}"
    plain = tuple(name.removesuffix(f"{{{label}}}") for name in names)
    if plain == (label,):  # a single metric is named after what it is about
        plain = written.names
    return node.table.values[:, number * width : (number + 1) * width], plain


@pytest.mark.parametrize("seed", range(4))
def test_a_mutated_table_is_read_or_refused_with_a_sentence(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    random, sources = Random(seed), originals()
    path = tmp_path_factory.mktemp("t") / "t.csv"
    for _ in range(40):
        path.write_bytes(mutated(random.choice(sources), random))
        try:
            assert not unaccounted(read(path))
        except TableFileError as error:
            assert "\n" not in str(error)


DMON = "# gpu    pwr     sm\n# Idx      W      %\n"


def test_comments_with_a_mark_of_their_own_do_not_widen_rows(write: Write) -> None:
    rows = "".join(
        (DMON if n % 10 == 0 else "") + f"    0     {n % 7}     {n}\n" for n in range(40)
    )
    data = read(write(rows))
    assert lone(data).values[:, 0].tolist() == [n % 7 for n in range(40)]
    assert "skipped 6 lines that repeat the header" in data.notes


@pytest.mark.parametrize("other", ["time,io,cpu", "time,net,mem", "when,io,cpu"])
def test_a_header_with_other_names_below_is_refused(write: Write, other: str) -> None:
    rows = [f"{n},{n % 7},{n % 5}\n" for n in range(40)]
    text = "time,cpu,io\n" + "".join(rows[:20]) + f"{other}\n" + "".join(rows[20:])
    with pytest.raises(TableFileError, match=r"other names than the header.*file of its own"):
        read(write(text))


def test_words_beside_missing_values_are_no_header(write: Write) -> None:
    rows = [f"{n},{n % 7},{n % 5}\n" for n in range(40)]
    data = read(write("time,load,io\n" + "".join(rows) + "time,x,\n,load,\n"))
    assert lone(data).names == ("load", "io")


def test_an_entity_that_is_called_as_a_column_is_no_header(write: Write) -> None:
    rows = "".join(f"{n},{name},{n % 7}\n" for n in range(30) for name in ("value", "metric"))
    data = read(write(f"time,metric,value\n{rows}"))
    assert lone(data).names == ("metric", "value")
    assert len(data.times_ns) == 30


def test_rows_of_blanks_must_have_all_fields(write: Write) -> None:
    rows = "".join(f"{n} {n % 7} {n % 5}\n" if n % 3 - 1 else f"{n} {n % 7}\n" for n in range(60))
    with pytest.raises(TableFileError, match="20 of the first 60 rows have fewer fields"):
        read(write(f"time load io\n{rows}"))
    data = read(write("time,load,io\n" + rows.replace(" ", ",")))
    assert len(data.times_ns) == 60
    assert "20 lines of the first have fewer fields than the header" in data.notes


def test_a_row_that_is_too_wide_is_quoted(write: Write) -> None:
    with pytest.raises(TableFileError, match="2 of the header: '3 4 5'"):
        read(write("time,a\n1,2\n2,3\n3,4,5\n"))
