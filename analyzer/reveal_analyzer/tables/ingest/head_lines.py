"""The first lines of a text file, split as its writer ended them, and where each begins."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from reveal_analyzer.tables.ingest.open import LONGEST_LINE, TableFileError

_MOST_BYTES, _MOST_LINES = 1 << 20, 1000
_LEAST_LINES = 4  # a header, and some rows to judge it by
_MOST_JOINED = 8  # physical lines of one quoted field
_END = re.compile(rb"\r\n|\n|\r")


class HeadLine(NamedTuple):
    """A line without its end, its number from 1 on, and the offset of its first byte."""

    text: str
    number: int
    begin: int


class Head(NamedTuple):
    """The first lines of a file, and how many bytes were read for them."""

    lines: list[HeadLine]
    size: int


def head_of(path: Path, file: BinaryIO) -> Head:
    """Return up to 1,000 lines from the first MiB, more of a file with wide rows.

    A line that ends within quotes goes on in the next one.  Raises ``TableFileError`` for a line
    of more than 64 MiB.
    """
    data = file.read(_MOST_BYTES)
    whole = len(data) < _MOST_BYTES
    while not whole and len(_END.findall(data)) < _LEAST_LINES:
        if len(data) > LONGEST_LINE:
            raise TableFileError(f"{path} is no table: its first line does not end")
        more = file.read(max(len(data), _MOST_BYTES))
        whole, data = not more, data + more
    return Head(list(_joined(_split(data, whole)))[:_MOST_LINES], len(data))


def _split(data: bytes, whole: bool) -> Iterator[HeadLine]:
    begin = number = 0
    for number, end in enumerate(_END.finditer(data), 1):
        yield HeadLine(_text(data[begin : end.start()], number), number, begin)
        begin = end.end()
        if number >= _MOST_LINES + _MOST_JOINED:
            return
    if whole and begin < len(data):
        yield HeadLine(_text(data[begin:], number + 1), number + 1, begin)


def _text(line: bytes, number: int) -> str:
    return line.decode("utf-8-sig" if number == 1 else "utf-8", "replace")


def _joined(lines: Iterator[HeadLine]) -> Iterator[HeadLine]:
    """Join the lines of one quoted field, if its quotes end soon."""
    pending: list[HeadLine] = []
    for line in lines:
        pending.append(line)
        text = "\n".join(each.text for each in pending)
        if text.count('"') % 2 == 0:
            yield HeadLine(text, pending[0].number, pending[0].begin)
            pending = []
        elif len(pending) > _MOST_JOINED:
            yield from pending
            pending = []
    yield from pending
