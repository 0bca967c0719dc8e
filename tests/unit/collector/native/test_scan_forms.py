"""Forms, numbers and columns: the C scanner and the Python reader parse them the same."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from reveal_collector.native import load
from reveal_collector.readers.plan import Columns, FileScan, TextForm, TokenPlan, Vector
from reveal_collector.readers.raw_slice import MISSING
from reveal_collector.readers.reference_reader import Mismatch, TokenReader
from support.property_tests import examples

if load().library is None:
    pytest.skip(load().unavailable, allow_module_level=True)


from reveal_collector.native.scanner import GROWN
from support.native_scan_pass import start_scan_pass


class SingleFile:
    """A plan over a file whose text the test writes; closes what it opened."""

    def __init__(self, plan: TokenPlan, folder: str) -> None:
        self.path = Path(folder) / "file"
        self.path.write_bytes(b"")
        self.file = self.path.open("rb")
        self.reader = TokenReader(plan)
        self.runner = start_scan_pass([FileScan(plan, self.file.fileno(), 4096)])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.runner.__exit__()
        self.file.close()

    def rows(self, data: bytes) -> tuple[list[int], list[int]]:
        """Return the rows of C and Python for a text; all MISSING if there is none."""
        self.path.write_bytes(data)
        try:
            expected = self.reader.row(data).tolist()
        except Mismatch:
            expected = [MISSING] * self.reader.plan.width
        return self.runner.tick(0), expected


@pytest.fixture(scope="module")
def folder() -> Iterator[str]:
    with tempfile.TemporaryDirectory() as path:
        yield path


NUMBERS = st.one_of(
    st.integers(-(2**65), 2**65).map(lambda n: str(n).encode()),
    st.sampled_from(
        [b"", b"-", b"--1", b"+5", b"1_0", b"0x1f", b"007", b"-0", b"18446744073709551615",
         b"18446744073709551616", b"-9223372036854775808", b"-9223372036854775809",
         b"0" * 40 + b"7", b"ffffffff", b"FFFFFFFFFFFFFFFF", b"1" * 17, b"g", b"5\0", b"\xb2"]
    ),
)  # fmt: skip


@examples(300)
@given(tokens=st.lists(NUMBERS, min_size=3, max_size=3), base=st.sampled_from([10, 16]))
def test_numbers_are_read_alike_or_refused_alike(
    folder: str, tokens: list[bytes], base: int
) -> None:
    with SingleFile(
        TokenPlan(3, (), (0, 1, 2), TextForm(base=base, words=False)), folder
    ) as single:
        ours, theirs = single.rows(b" ".join(tokens) + b"\n")
        assert ours == theirs


BLANKS = st.text(" \t\n\v\f\r", min_size=1, max_size=70).map(str.encode)
# also what is all but a blank, and digits on both sides of what is read at once
TOKENS = st.one_of(
    st.text("0123456789", min_size=1, max_size=21).map(str.encode),
    st.sampled_from([b"\b", b"\x0e", b"\x1f", b"!", b"\x89", b"\xa0", b"1\x1f2", b"12345678\0"]),
)


@examples(300)
@given(parts=st.lists(st.tuples(BLANKS, TOKENS), min_size=1, max_size=20), end=BLANKS)
def test_tokens_are_found_alike_wherever_they_stand(
    folder: str, parts: list[tuple[bytes, bytes]], end: bytes
) -> None:
    tokens = [token for _, token in parts]
    picks = tuple(index for index, token in enumerate(tokens) if token.isdigit())
    words = tuple((index, token) for index, token in enumerate(tokens) if not token.isdigit())
    text = b"".join(blank + token for blank, token in parts)
    with SingleFile(TokenPlan(len(tokens), words, picks), folder) as single:
        for data in (text, text + end, text.lstrip(), text[:-1], text + b"7", text + b" 7"):
            ours, theirs = single.rows(data)
            assert ours == theirs


LINES = st.lists(
    st.lists(st.sampled_from([b"intr", b"cpu0", b"cpu", b"7", b"12", b"a=3", b"0.5", b"x/9", b""])),
    max_size=6,
).map(lambda lines: b"\n".join(b" ".join(line) for line in lines))
FORMS = (
    TextForm(), TextForm(truncate=(b"intr",)), TextForm(keep=b"cpu"),
    TextForm(blanks=b"=/", deleted=b"."),
    TextForm(truncate=(b"intr", b"cpu0"), keep=b"c", blanks=b"="), TextForm(ends=True, words=False),
    TextForm(ends=True, truncate=(b"intr",), keep=b"i"),
)  # fmt: skip


@examples(300)
@given(text=LINES, later=LINES, form=st.sampled_from(FORMS))
def test_forms_are_the_same(folder: str, text: bytes, later: bytes, form: TextForm) -> None:
    """A plan learned from one text, read over it and over another."""
    tokens = form.apply(text).split()
    picks = tuple(index for index, token in enumerate(tokens) if token.isdigit())
    words = tuple((index, token) for index, token in enumerate(tokens) if not token.isdigit())
    with SingleFile(TokenPlan(len(tokens), words, picks, form), folder) as single:
        for data in (text, later, text):
            ours, theirs = single.rows(data)
            assert ours == theirs


COUNTS = st.one_of(st.integers(0, 2**64 - 1), st.integers(0, 9), st.integers(2**31 - 3, 2**31 + 3))
# largest steps and spreads that add up to more than 63 bits
FAR_APART = [[0] * 5, [0, 0, 0, 0, 2**62], [0, 0, 0, 2**63 - 1, 2**63 - 1], [2**63 - 1] * 5]


@examples(200)
@example(readings=FAR_APART, weights=())
@given(
    readings=st.lists(st.lists(COUNTS, min_size=5, max_size=5), min_size=1, max_size=6),
    weights=st.sampled_from([(), (1, 2, 4, 8, 16)]),
)
def test_sums_and_extremes_are_the_same(
    folder: str, readings: list[list[int]], weights: tuple[int, ...]
) -> None:
    vectors = (
        Vector(((0,), (1,), (2,), (3,), (4,)), (7, 8, 9, 10, 11)),
        Vector(((0, 4),), (3,)),
        Vector(((4,), (2,), (0,)), (7, 8, 9)),
        Vector(((0,), (3,), (4,), (1,)), (7, 8, 9, 10)),
    )
    columns = Columns(((0, 1), (), (2,)), vectors, weights)
    with SingleFile(TokenPlan(5, (), (4, 3, 2, 1, 0), columns=columns), folder) as single:
        for values in readings:
            ours, theirs = single.rows(" ".join(map(str, values)).encode())
            assert ours == theirs


def test_a_text_longer_than_its_room_is_flagged_and_not_read(folder: str) -> None:
    plan = TokenPlan(1, (), (0,))
    path = Path(folder) / "long"
    path.write_bytes(b"1" + b" " * 5000)
    with path.open("rb") as file:
        runner = start_scan_pass([FileScan(plan, file.fileno(), 1)])
        assert runner.tick(0) == [MISSING]
        assert runner.flags == bytes([GROWN])
        assert start_scan_pass([FileScan(plan, file.fileno(), 1)], room=16).tick(0) == [1]
