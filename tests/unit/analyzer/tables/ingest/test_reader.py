"""Tables from other tools: what is read, what is omitted with a note, and what is refused."""

from __future__ import annotations

import csv
import gzip
import io
import math
from pathlib import Path

import numpy as np
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from reveal_analyzer.tables.ingest import mmap_buffer
from reveal_analyzer.tables.ingest.column_contents import NO_VALUES
from reveal_analyzer.tables.ingest.open import FileKind, TableFileError, kind_of
from reveal_analyzer.tables.ingest.reader import ReadOptions, read
from reveal_analyzer.tables.ingest.time_texts import UNREADABLE
from reveal_contract.recording import MAGIC
from support.property_tests import examples
from support.table_files import Write, lone

SECOND = 1_000_000_000
EPOCH = 1_700_000_000

numbers = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False, width=64), st.integers(-(2**53), 2**53)
).filter(lambda number: float(number) not in NO_VALUES)
cells = st.one_of(numbers, st.sampled_from(["", "NaN", "null", "-"]))


@st.composite
def grids(draw: st.DrawFn) -> list[list[float | int | str]]:
    width = draw(st.integers(1, 6))
    return draw(st.lists(st.lists(cells, min_size=width, max_size=width), min_size=1, max_size=12))


@examples(60)
@given(grids(), st.sampled_from([",", ";", "\t", "|"]), st.sampled_from(["", ".gz", ".zst"]))
def test_a_table_comes_back_as_it_was_written(
    tmp_path_factory: pytest.TempPathFactory, grid: list[list[float]], separator: str, packed: str
) -> None:
    text = io.StringIO()
    writer = csv.writer(text, delimiter=separator)
    writer.writerow(["time", *(f"m{index}" for index in range(len(grid[0])))])
    writer.writerows([[EPOCH + row, *values] for row, values in enumerate(grid)])
    data = text.getvalue().encode()
    pack = {"": bytes, ".gz": gzip.compress, ".zst": zstandard.ZstdCompressor().compress}[packed]
    path = tmp_path_factory.mktemp("t") / f"t.csv{packed}"
    path.write_bytes(pack(data))
    expected = np.array([[_value(cell) for cell in row] for row in grid], float)
    known = ~np.isnan(expected).all(axis=0)
    if not known.any():
        with pytest.raises(TableFileError, match="no column of numbers"):
            read(path)
        return
    table = lone(read(path))
    assert table.names == tuple(f"m{index}" for index in np.flatnonzero(known))
    assert table.times_ns.tolist() == [(EPOCH + row) * SECOND for row in range(len(grid))]
    np.testing.assert_allclose(table.values, expected[:, known], rtol=1e-14)


def _value(cell: float | str) -> float:
    return math.nan if isinstance(cell, str) else float(cell)


@examples(150)
@given(st.binary(max_size=300), st.sampled_from([b"", b"time,a\n1,2\n", b"\x1f\x8b", b"PAR1"]))
def test_whatever_a_file_holds_it_is_read_or_refused_with_a_sentence(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, head: bytes
) -> None:
    path = tmp_path_factory.mktemp("t") / "t"
    path.write_bytes(head + content)
    try:
        data = read(path)
    except TableFileError as error:
        assert "\n" not in str(error)
        assert str(path) in str(error)
    else:
        assert len(data.rows) > 0


@examples(60)
@given(st.binary(min_size=1, max_size=8), st.floats(0, 1), st.booleans())
def test_a_damaged_file_is_never_a_traceback(
    tmp_path_factory: pytest.TempPathFactory, junk: bytes, where: float, truncated: bool
) -> None:
    rows = "".join(f"{EPOCH + index},{index},{index * 2.5}\n" for index in range(200))
    whole = zstandard.ZstdCompressor(level=1).compress(f"time,a,b\n{rows}".encode())
    index = int(where * len(whole))
    path = tmp_path_factory.mktemp("t") / "t.zst"
    path.write_bytes(
        whole[:index] if truncated else whole[:index] + junk + whole[index + len(junk) :]
    )
    try:
        assert len(read(path).rows) > 0  # a frame without a checksum may well gain a line
    except TableFileError as error:
        assert str(path) in str(error)


def test_columns_without_numbers_are_omitted_with_a_note(write: Write) -> None:
    data = read(write("time,a,host,empty,mixed,flag\n1,1,n1,,3,True\n2,2,n2,,x,False\n"))
    assert lone(data).names == ("a", "flag")
    assert lone(data).values.tolist() == [[1.0, 1.0], [2.0, 0.0]]
    assert data.notes == (
        "left out, as they hold text: host, mixed",
        "left out, as they are always missing: empty",
    )


def test_a_word_costs_a_value_and_many_words_the_column(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reveal_analyzer.tables.ingest.csv.BLOCK_VALUES", 8)
    rows = "".join(f"{index},{index % 3},{index % 4}\n" for index in range(20))
    data = read(write(f"time,a,b\n{rows}20,oops,0\n21,0,1\n"))
    assert lone(data).names == ("a", "b")
    assert np.flatnonzero(np.isnan(lone(data).values[:, 0])).tolist() == [20]
    assert data.notes == ("1 value counts as missing, as they are words: a",)
    words = "".join(f"{index},oops,1\n" for index in range(20, 30))
    data = read(write(f"time,a,b\n{rows}{words}"))
    assert lone(data).names == ("b",)
    assert data.notes == ("left out, as they hold text: a",)


def test_a_header_that_repeats_is_no_row(write: Write) -> None:
    """As in a log that is appended to after a restart."""
    rows = [f"{EPOCH + index},{index % 3}" for index in range(20)]
    data = read(write("\n".join(["time,a", *rows[:9], "time,a", *rows[9:], ""])))
    assert lone(data).values[:, 0].tolist() == [index % 3 for index in range(20)]
    assert data.notes == ("skipped 1 line that repeat the header",)


def test_a_last_line_without_a_time_replaces_no_row(write: Write) -> None:
    data = read(write(f"time,a\n{EPOCH},1\n{EPOCH + 1},2\n(2 rows)\n"))
    assert lone(data).values[:, 0].tolist() == [1.0, 2.0]


def test_both_hours_of_a_clock_that_is_set_back_count(write: Write) -> None:
    minutes = [*range(60, 180), *range(120, 240)]
    rows = "".join(
        f"2023-10-29 {m // 60:02d}:{m % 60:02d}:00,{n % 7}\n" for n, m in enumerate(minutes)
    )
    data = read(write(f"time,a\n{rows}"))
    assert np.diff(data.times_ns).tolist() == [60 * SECOND] * 239
    assert "set back by an hour in row 121" in data.notes[0]


def test_units_are_read_with_a_note(write: Write) -> None:
    data = read(write("time,power,mem\n1,300.5 W,1 GiB\n2,301 W,512 MiB\n"))
    assert lone(data).values.tolist() == [[300.5, 2.0**30], [301.0, 2.0**29]]
    assert data.notes == ("units: power in W, mem in B",)


def test_infinite_values_count_as_missing(write: Write) -> None:
    data = read(write("time,a,b\n1,inf,1\n2,-inf,2\n3,5,3\n"))
    np.testing.assert_array_equal(lone(data).values[:, 0], [math.nan, math.nan, 5.0])
    assert data.notes == ("infinite values, 2^32 - 1, 2^64 - 1 and the like count as missing: a",)


def test_unordered_and_duplicate_rows_keep_their_order_in_the_output(write: Write) -> None:
    rows = "".join(f"{10 * number},{number}\n" for number in range(4, 24))
    data = read(write(f"time,a\n30,3\n10,1\n20,2\n10,9\n{rows}"))
    assert data.times_ns.tolist() == [10 * SECOND * number for number in range(1, 24)]
    assert lone(data).values[:4, 0].tolist() == [9.0, 2.0, 3.0, 4.0]
    assert data.rows.tolist()[:4] == [2, 0, 1, 0]
    assert len(data.notes) == 2


def test_a_row_without_a_time_stands_between_its_neighbours(write: Write) -> None:
    times = [str(EPOCH + index) if index != 1 else "" for index in range(20)]
    data = read(write("time,a\n" + "".join(f"{time},{len(time)}\n" for time in times)))
    assert data.times_ns.tolist() == [(EPOCH + index) * SECOND for index in range(20)]
    assert "1 row has no readable time" in data.notes[0]


def test_a_table_without_a_header_gets_names(write: Write) -> None:
    data = read(write("1,2\n3,4\n"))
    assert lone(data).names == ("c1", "c2")
    assert lone(data).values.tolist() == [[1.0, 2.0], [3.0, 4.0]]


def test_decimal_commas_blanks_quotes_and_marks_are_understood(write: Write) -> None:
    assert lone(read(write("time;a\n1;5,5\n2;6,25\n"))).values[:, 0].tolist() == [5.5, 6.25]
    assert lone(read(write("time  a   b\n1   2   3\n"))).values.tolist() == [[2.0, 3.0]]
    named = read(write('time,"x{a=""1"",b=""2""}"\r\n1,2\r\n'))
    assert lone(named).names == ('x{a="1",b="2"}',)
    assert lone(read(write(b"\xef\xbb\xbftime,a\n1,2\n"))).names == ("a",)


def test_duplicate_names_become_unique(write: Write) -> None:
    assert lone(read(write("time,a,a\n1,2,3\n"))).names == ("a", "a#2")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty"),
        ("time,a\n", "holds no rows"),
        ("time,a\n1,2,3\n", "line 1 names 2 columns, but the rows below have 3 fields"),
        ("time,a\n1,2\n2,3,4,5\n", "line 3"),
        ('time,a\n1,"2\n', "EOF inside string"),
        ("time,a\n1,2\n2,3\n3,4,5\n", "more fields than the 2"),
        ('[{"time": 1, "a": 2}]\n', "is JSON"),
        (b"\x7fELF\0\0", "neither a recording"),
        (b"PAR1 no", "damaged or cut off"),
        # without a time stamp: the content is part of the test's name, the same in all processes
        (gzip.compress(b"time,a\n1,2\n" * 99, mtime=0)[:-9], "damaged or cut off"),
        ("time,a\nx,y\n", "no column of numbers"),
    ],
)
def test_an_unusable_table_is_a_readable_error(
    write: Write, content: str | bytes, message: str
) -> None:
    path = write(content)
    with pytest.raises(TableFileError, match=message) as refused:
        read(path)
    assert str(path) in str(refused.value)


def test_a_file_that_is_not_there_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(TableFileError, match="No such file"):
        kind_of(tmp_path / "none")


def test_file_formats_are_detected_by_content(write: Write) -> None:
    assert kind_of(write(MAGIC, "a.csv")) is FileKind.RECORDING
    assert kind_of(write(b"PAR1....", "a.rvl")) is FileKind.PARQUET
    assert kind_of(write("time,a\n", "a.parquet")) is FileKind.TEXT


def test_hosts_in_column_names_make_a_table_each(write: Write) -> None:
    data = read(write("time,n1.cpu,n1.mem,n2.cpu,n2.mem\n1,1,2,3,4\n2,5,6,7,8\n"))
    assert [(part.node, part.table.names) for part in data.nodes] == [
        ("n1", ("cpu", "mem")),
        ("n2", ("cpu", "mem")),
    ]
    assert data.nodes[1].table.values.tolist() == [[3.0, 4.0], [7.0, 8.0]]
    assert data.notes == ("host names in column names: n1, n2",)


def test_parquet_gives_what_the_same_csv_gives(write: Write, tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = pandas.DataFrame(
        {
            "when": pandas.date_range("2023-11-14T22:13:20Z", periods=40, freq="100ms"),
            "a": np.arange(40) % 9,
            "b": np.where(np.arange(40) % 7 == 0, np.nan, np.sin(np.arange(40))),
            "host": "n1",
        }
    )
    frame.to_parquet(tmp_path / "t.parquet")
    frame.to_csv(tmp_path / "t.csv", index=False)
    parquet, csv_table = read(tmp_path / "t.parquet"), read(tmp_path / "t.csv")
    assert parquet.notes == csv_table.notes == ("left out, as they hold text: host",)
    np.testing.assert_array_equal(parquet.times_ns, csv_table.times_ns)
    np.testing.assert_allclose(lone(parquet).values, lone(csv_table).values, rtol=1e-14)
    whole = (tmp_path / "t.parquet").read_bytes()
    with pytest.raises(TableFileError, match="damaged or cut off"):
        read(write(whole[: len(whole) // 2], "half.parquet"))


def test_parquet_without_pyarrow_names_the_package_to_install(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(TableFileError, match="pip install pyarrow"):
        read(write(b"PAR1...."))


def test_what_does_not_fit_in_memory_is_mapped_and_the_same(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("reveal_analyzer.tables.ingest.csv.BLOCK_VALUES", 30)
    rows = "".join(f"{99 - index},{index},x,{index * index}\n" for index in range(60))
    path = write(f"time,a,text,b\n{rows}")
    large = lone(read(path, ReadOptions(memory_bytes=64)))
    assert isinstance(large.values, np.memmap)
    small = lone(read(path))
    assert not isinstance(small.values, np.memmap)
    np.testing.assert_array_equal(large.values, small.values)


def test_a_full_disk_is_reported_with_a_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(**_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tempfile.TemporaryFile", full)
    rows = mmap_buffer.RowBuffer(2, memory_bytes=8)
    with pytest.raises(TableFileError, match=r"No space left on device.*TMPDIR"):
        rows.append(np.zeros((4, 2)))


def test_no_directory_for_temporary_files_is_reported_with_a_remedy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.setattr("tempfile._candidate_tempdir_list", list)
    rows = mmap_buffer.RowBuffer(2, memory_bytes=8)
    with pytest.raises(TableFileError, match=r"written to any folder \(No usable .*TMPDIR"):
        rows.append(np.zeros((4, 2)))


def test_very_wide_tables_are_read(write: Write) -> None:
    width = 20_000
    header = ",".join(f"m{index}" for index in range(width))
    row = ",".join(map(str, range(width)))
    table = lone(read(write(f"time,{header}\n1,{row}\n2,{row}\n")))
    assert table.values.shape == (2, width)
    np.testing.assert_array_equal(table.values[1], np.arange(width))


def test_times_out_of_range_count_as_unreadable(write: Write) -> None:
    rows = "".join(f"{EPOCH + index},3\n" for index in range(2, 20))
    data = read(write(f"time,a\n{EPOCH},1\n1e300,2\n{rows}"))
    assert UNREADABLE not in data.times_ns.tolist()
    assert "no readable time" in data.notes[0]


def test_counters_become_rates_with_a_note(write: Write) -> None:
    rows = "".join(f"{index / 2},{index * 3},{index % 5}\n" for index in range(40))
    data = read(write(f"time,bytes,queue\n{rows}"))
    np.testing.assert_array_equal(lone(data).values[:3, 0], [math.nan, 6.0, 6.0])
    assert lone(data).values[:3, 1].tolist() == [0.0, 1.0, 2.0]
    assert data.notes == ("counters, taken as rates per second: bytes",)
    assert data.counters == {"bytes"}
    level = read(write(f"time,bytes,queue\n{rows}"), ReadOptions(counters=frozenset()))
    assert lone(level).values[:3, 0].tolist() == [0.0, 3.0, 6.0]


def test_a_counter_on_a_host_is_a_counter_on_all_hosts(write: Write) -> None:
    rows = "".join(f"{index},{index * 3},{index % 5},0,7\n" for index in range(40))
    data = read(write(f"time,n1.rx,n1.mem,n2.rx,n2.mem\n{rows}"))
    assert data.counters == {"rx"}
    assert data.nodes[1].table.values[1:, 0].tolist() == [0.0] * 39


def test_more_than_a_twentieth_of_the_rows_is_never_lost(write: Write) -> None:
    rows = [f"{EPOCH + index},{index % 3}\n" for index in range(40)]
    with pytest.raises(TableFileError, match=r"3 of 43 rows have the time of another: .*--entity"):
        read(write("".join(["time,a\n", *rows, *rows[:3]])))
    with pytest.raises(TableFileError, match=r"3 of 43 rows have no readable time: .*--time"):
        read(write("".join(["time,a\n", *rows, *["unknown,7\n"] * 3])))
    data = read(write("".join(["time,a\n", *rows, *rows[:2]])))
    assert data.notes[-1] == "2 rows have the time of another: the last of each time counts"


def test_what_all_rows_are_about_is_no_metric(write: Write) -> None:
    rows = "".join(f"2026-11-21 10:00:{n:02d}, 3, {n} %\n" for n in range(20))
    data = read(write(f"timestamp, index, utilization.gpu [%]\n{rows}"))
    assert lone(data).names == ("utilization.gpu [%]",)
    assert "left out, as they distinguish no rows: index" in data.notes
    assert data.understanding.omitted[0].name == "index"


def test_gaps_of_a_file_are_stated_in_its_own_times(write: Write) -> None:
    rows = [f"{EPOCH + row},{row % 7},{'' if row > 80 else row % 5}" for row in range(100)]
    path = write("\n".join(["time,load,gpu.power", *rows[:30], *rows[50:]]))
    notes = read(path).notes
    assert f"no rows between {EPOCH + 29} and {EPOCH + 50}" in notes
    assert f"no value in gpu.power from {EPOCH + 81} on" in notes


def test_a_last_row_without_values_replaces_none(write: Write) -> None:
    rows = "".join(f"2026-11-21T10:00:{n:02d}Z,{n % 7}\n" for n in range(30))
    table = lone(read(write(f"time,load\n{rows}2026-11-21T10:0")))
    assert table.values[:, 0].tolist() == [n % 7 for n in range(30)]


@pytest.mark.parametrize("number", [2**64 - 1, 2**32 - 1, 2**31 - 16, 2**47 + 2])
def test_what_drivers_write_for_unknown_is_missing(write: Write, number: int) -> None:
    rows = "".join(f"{n},{number if n == 3 else n % 7},1\n" for n in range(30))
    data = read(write(f"time,err,cpu\n{rows}"))
    assert np.isnan(lone(data).values[3, 0])
    assert any("2^64 - 1" in note for note in data.notes)


def test_a_table_without_numbers_is_refused_with_what_it_holds(write: Write) -> None:
    rows = "".join(f"{n},({n})\n" for n in range(30))
    with pytest.raises(TableFileError, match=r"except its times: delta holds '\(0\)'"):
        read(write(f"time,delta\n{rows}"))
