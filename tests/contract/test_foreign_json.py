"""JSON of others: what is taken is what the standard has, and nothing else escapes."""

from __future__ import annotations

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reveal_contract.foreign_json import ForeignJsonError, loads

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)  # fmt: skip


@given(VALUES)
def test_what_python_writes_is_read_back(value: object) -> None:
    assert loads(json.dumps(value)) == value


@pytest.mark.parametrize(
    "text", ["NaN", "[Infinity]", '{"a": -Infinity}', "1e999", "-1e999", "[" * 100_000, "", "{",
             b"\xff", "9" * 5000, "9" * 400],
)  # fmt: skip
def test_anything_else_is_the_same_error(text: str | bytes) -> None:
    with pytest.raises(ForeignJsonError):
        loads(text)


@given(st.binary())
def test_no_bytes_raise_another_error(data: bytes) -> None:
    with contextlib.suppress(ForeignJsonError):
        loads(data)


def test_the_size_of_a_text_is_limited() -> None:
    assert loads("[1]", 3) == [1]
    with pytest.raises(ForeignJsonError, match="4 bytes, 3 are the most"):
        loads(b"[1] ", 3)
