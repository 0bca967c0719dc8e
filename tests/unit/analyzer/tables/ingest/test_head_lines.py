"""The first lines of a file: how they end, and where each begins."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveal_analyzer.tables.ingest.head_lines import head_of
from reveal_analyzer.tables.ingest.open import TableFileError
from support.property_tests import examples

TABLE = Path("table.csv")


@examples(200)
@given(st.text("ab,\r\n", max_size=60))
def test_lines_end_as_their_writer_ended_them(text: str) -> None:
    lines = head_of(TABLE, io.BytesIO(text.encode())).lines
    expected = re.split("\r\n|\n|\r", text)
    if not expected[-1]:
        expected.pop()  # the last line ended
    assert [line.text for line in lines] == expected
    assert [line.number for line in lines] == list(range(1, len(lines) + 1))
    for line in lines:
        assert text[line.begin :].startswith(line.text)


def test_a_long_line_without_an_end_takes_no_longer_than_its_length() -> None:
    """A search that starts again at each byte of such a line would take hours."""
    row = b"1," * (4 << 20)
    (line,) = head_of(TABLE, io.BytesIO(row)).lines
    assert len(line.text) == len(row)


def test_a_line_that_never_ends_is_refused() -> None:
    with pytest.raises(TableFileError, match="its first line does not end"):
        head_of(TABLE, io.BytesIO(b"x" * (130 << 20)))
