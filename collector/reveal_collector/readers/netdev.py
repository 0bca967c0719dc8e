"""``/proc/net/dev`` (net/core/net-procfs.c): two header lines, then a line for each interface.

A line is the name, a colon and 16 numbers.  Old kernels give the first number a width and no blank:
``eth0:12345678``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from reveal_collector.readers.plan import PLAIN, TextForm
from reveal_collector.readers.textfile import is_number, rows

FIELDS = (
    "rx_bytes", "rx_packets", "rx_errs", "rx_drop", "rx_fifo", "rx_frame", "rx_compressed",
    "rx_multicast",
    "tx_bytes", "tx_packets", "tx_errs", "tx_drop", "tx_fifo", "tx_colls", "tx_carrier",
    "tx_compressed",
)  # fmt: skip
SEPARATED = TextForm(blanks=b":")
_HEADER_LINES = 2
_JOINED = re.compile(rb"^\s*\S+:\d+\s", re.MULTILINE)


class Interface(NamedTuple):
    """A line: the index of its first token in the text, the name, and its numbers.

    ``values`` is empty where the line has not the known form.
    """

    start: int
    name: str
    values: list[str]


def form_of(data: bytes) -> TextForm:
    """Return the form in which name and first number of each line are two tokens."""
    return SEPARATED if _JOINED.search(data) else PLAIN


def interfaces(text: str) -> Iterator[Interface]:
    """Yield the interfaces in a text of one of the forms."""
    for number, (start, tokens) in enumerate(rows(text)):
        if number < _HEADER_LINES and "|" in "".join(tokens):
            continue
        values = tokens[1:]
        fits = len(values) == len(FIELDS) and is_number("".join(values))
        yield Interface(start, tokens[0].removesuffix(":"), values if fits else [])
