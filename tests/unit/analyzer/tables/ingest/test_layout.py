"""The layout of tables as people really have them: what stands above them, and how they write."""

from __future__ import annotations

from pathlib import Path

import pytest

from reveal_analyzer.tables.ingest.head_lines import head_of
from reveal_analyzer.tables.ingest.layout import BLANKS, Layout, layout_of
from reveal_analyzer.tables.ingest.open import TableFileError

ROWS = "2023-05-05 09:00:00,51.5,0.9\n2023-05-05 09:00:01,50.1,1.1\n2023-05-05 09:00:02,49.9,1.0\n"
NAMES = ("time", "user", "wait")


def found(tmp_path: Path, content: str) -> Layout:
    path = tmp_path / "t.csv"
    path.write_bytes(content.encode())
    with path.open("rb") as file:
        return layout_of(path, head_of(path, file))


@pytest.mark.parametrize(
    "above",
    [
        "time,user,wait\n",
        "\n\ntime,user,wait\n",
        "sep=,\ntime,user,wait\n",
        "# exported by monitor 1.2\ntime,user,wait\n",
        "# by hand, on node17, at nine\ntime,user,wait\n",
        "# time,user,wait\n",
        '"Tool 0.7"\n"Author:","A. Person",,,"x"\n\ntime,user,wait\n',
        "time,user,wait\ns,%,%\n",
        "time,user,wait\n-------\n",
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_the_header_is_found_below_whatever_is_above(tmp_path: Path, above: str, end: str) -> None:
    content = (above + ROWS).replace("\n", end)
    layout = found(tmp_path, content)
    assert layout.names == NAMES
    assert content.encode()[layout.start :].startswith(b"2023-05-05 09:00:00")


def test_a_line_of_groups_completes_the_names(tmp_path: Path) -> None:
    content = "system,total cpu,,memory\ntime,usr,sys,used\n1,51.5,3.1,100\n2,50.1,3.0,101\n"
    assert found(tmp_path, content).names == (
        "system:time", "total cpu:usr", "total cpu:sys", "memory:used",
    )  # fmt: skip


def test_levels_of_names_are_joined_as_pandas_writes_them(tmp_path: Path) -> None:
    layout = found(tmp_path, f",power,power\ngpu,0,1\ntime,,\n{ROWS}")
    assert layout.names == ("time", "power:0", "power:1")
    assert found(tmp_path, f"time,rx,rx\ns,B,B\n{ROWS}").names == ("time", "rx", "rx#2")


@pytest.mark.parametrize("separator", [",", " "])
def test_row_numbers_that_the_header_does_not_name_are_a_column(
    tmp_path: Path, separator: str
) -> None:
    """R writes them (``write.table``), in quotes."""
    rows = [f'"{n}","2023-05-05 09:00:0{n}",51.{n},0.9' for n in range(1, 6)]
    text = "\n".join(['"time","user","wait"', *rows, ""]).replace(",", separator)
    layout = found(tmp_path, text)
    assert layout.names == ("row", *NAMES)
    with pytest.raises(TableFileError, match="names 3 columns"):  # the last may have no name
        found(tmp_path, "step,loss,rate\n1,0.5,0.1,2\n2,0.4,0.1,3\n3,0.4,0.1,2\n")


def test_apostrophes_around_all_fields_are_quotes(tmp_path: Path) -> None:
    rows = "".join(f"'2023-05-05 09:00:0{n}','51.{n}'\n" for n in range(5))
    assert found(tmp_path, f"'time','user'\n{rows}").names == ("time", "user")


def test_times_with_points_do_not_make_blanks_the_separator(tmp_path: Path) -> None:
    layout = found(tmp_path, f"time,user,wait\n{ROWS.replace(':', '.')}")
    assert (layout.separator, layout.names) == (",", NAMES)


def test_a_quoted_name_may_have_several_lines(tmp_path: Path) -> None:
    layout = found(tmp_path, 'time,"cpu busy\n(percent)",wait\n1,2,3\n2,3,4\n')
    assert layout.names == ("time", "cpu busy (percent)", "wait")


@pytest.mark.parametrize(
    "first",
    ["2023-05-05 09:00:00,51.5,0.9", "2023-05-05 09:00:00,-,0.9", "2023-05-05 09:00:00,[N/A],n/a"],
)
def test_a_first_row_that_looks_like_the_others_is_no_header(tmp_path: Path, first: str) -> None:
    layout = found(tmp_path, f"{first}\n{ROWS}")
    assert (layout.names, layout.header, layout.start) == (("c1", "c2", "c3"), (), 0)


@pytest.mark.parametrize("header", ["0,1,2", ",0,1", "time,1,2"])
def test_numbers_may_be_names(tmp_path: Path, header: str) -> None:
    layout = found(tmp_path, f"{header}\n7,51.5,0.9\n8,50.1,1.1\n9,49.9,1.0\n")
    assert layout.names == tuple(header.split(","))


@pytest.mark.parametrize("mark", ["# ", "#"])
def test_a_mark_of_comments_is_no_column(tmp_path: Path, mark: str) -> None:
    layout = found(tmp_path, f"{mark}Time UID %usr\n 1683277200 1000 74.8\n 1683277201 1000 67.6\n")
    assert (layout.names, layout.separator) == (("Time", "UID", "%usr"), BLANKS)


@pytest.mark.parametrize(
    ("rows", "decimal", "thousands"),
    [
        ("2023-05-05;0;0\n2023-05-06;47,50;1,18\n", ",", None),
        ("05.05.2023;45,84;1.060\n06.05.2023;50,97;964\n", ",", "."),
        ("2023-05-05;45.84;1.060\n2023-05-06;50.97;964\n", ".", None),
    ],
)
def test_marks_are_decided_by_all_rows(
    tmp_path: Path, rows: str, decimal: str, thousands: str | None
) -> None:
    layout = found(tmp_path, f"time;a;b\n{rows}")
    assert (layout.separator, layout.decimal, layout.thousands) == (";", decimal, thousands)


def test_names_that_do_not_fit_the_rows_are_an_error_with_the_line(tmp_path: Path) -> None:
    with pytest.raises(TableFileError, match=r"line 1 names 4 columns, but .* 3 fields"):
        found(tmp_path, "TIME CPU % MEM\n1 51.5 7\n2 50.1 7\n3 49.9 8\n")


def test_the_last_fields_of_a_row_may_be_missing(tmp_path: Path) -> None:
    rows = "".join(f"{n}\t5\t6\t7\n{n}\t5\t6\n{n}\t5\t6\n" for n in range(9))
    assert found(tmp_path, f"time\ta\tb\tc\n{rows}").names == ("time", "a", "b", "c")


def test_names_are_unique(tmp_path: Path) -> None:
    assert found(tmp_path, "time,a,a\n1,2,3\n").names == ("time", "a", "a#2")


@pytest.mark.parametrize(
    ("above", "skipped"),
    [("", 0), ("sep=,\n", 0), ("# a\n\n\n# b\n", 4), ("\n\n", 2), ('"Tool"\n\n"Host",n1\n\n', 4)],
)
def test_all_lines_above_the_header_are_counted(tmp_path: Path, above: str, skipped: int) -> None:
    assert found(tmp_path, f"{above}time,user,wait\n{ROWS}").skipped == skipped


def test_lines_above_a_first_row_and_below_a_header_are_counted(tmp_path: Path) -> None:
    assert found(tmp_path, f"# by hand\n\n{ROWS}").skipped == 2
    assert found(tmp_path, f"time,user,wait\ns,%,%\n{ROWS}").below == 1


def test_blanks_within_times_do_not_separate_the_fields_of_a_table_with_tabs(
    tmp_path: Path,
) -> None:
    rows = [
        f"2023-05-05 09:00:{second:02d}\t{host}\t{second}.5"
        for second in range(20)
        for host in ("n1", "n2")
    ]
    layout = found(tmp_path, "\n".join(["time\thost\tm0", *rows]) + "\n")
    assert (layout.separator, layout.names) == ("\t", ("time", "host", "m0"))
