"""Kernel text files kept open and read again and again, numbers picked by position.

A descriptor of procfs or sysfs stays valid: each ``pread`` from 0 renders the file anew.  The
layout is learned once, in slow code; while it holds, number k of the file is the same channel.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Self

from reveal_collector.kernel.errors import LayoutChanged, ParseError, Unsupported
from reveal_collector.kernel.memory_saving import READ_SIZE
from reveal_collector.readers.plan import (
    AS_READ,
    PLAIN,
    Columns,
    FileScan,
    Gated,
    MemoryPlan,
    Mismatch,
    TextForm,
    TokenPlan,
    TokenReader,
    packed,
)
from reveal_contract.catalogue import find
from reveal_contract.channels import Channel
from reveal_contract.metric import Lane

# seq_file hands out whole records, a page at most: a read shorter than this is the end, as no
# record we read is longer than 3 KiB but /proc/interrupts of hundreds of CPUs, read to EOF
_FULL = 1024
# str.split and bytes.split disagree on these; as "?" both see the same tokens
_SAME_BLANKS = bytes.maketrans(b"\x1c\x1d\x1e\x1f", b"????")


class OpenFile:
    """One file, opened once, read whole from the start each time."""

    def __init__(self, path: Path, remedy: str = "") -> None:
        self.path = path
        self._remedy = remedy
        self._fd = -1

    def open(self) -> None:
        self.close()
        try:
            self._fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        except PermissionError:
            raise Unsupported(f"{self.path} may not be read", "run as root") from None
        except FileNotFoundError:
            raise Unsupported(f"{self.path} does not exist", self._remedy) from None
        except OSError as error:
            raise Unsupported(f"{self.path}: {error.strerror}", self._remedy) from None

    @property
    def fd(self) -> int:
        """The descriptor, -1 while the file is closed."""
        return self._fd

    def read(self) -> bytes:
        data = os.pread(self._fd, READ_SIZE, 0)
        if len(data) < _FULL:
            return data
        parts, at = [data], len(data)
        while more := os.pread(self._fd, READ_SIZE, at):
            parts.append(more)
            at += len(more)
        return b"".join(parts) if len(parts) > 1 else data

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


# (token of the file, its channel); None: not a channel, but the token must stay what it is
Layout = Sequence[tuple[int, Channel | None]]


@dataclass(frozen=True)
class ColumnSet:
    """The columns of a source: the channels, and how they come of the values picked."""

    channels: tuple[Channel, ...]
    columns: Columns = AS_READ


class TokenSource:
    """A source that is one file of blank-separated tokens.

    ``learn`` maps the text, in its form, to (token, channel) pairs.  Tokens that are no numbers
    (names of CPUs, disks, NICs; not where the form has no words) and those the layout pairs with
    ``None`` must not change; a change of them or of the token count is a new layout, and so is
    a number that is none; where no layout can do without it, ``ParseError`` is raised.
    ``arrange`` turns the picked channels into those shown, where they are not the same.
    """

    def __init__(
        self,
        name: str,
        lane: Lane,
        path: Path,
        learn: Callable[[str], Layout],
        remedy: str = "",
        *,
        form: TextForm = PLAIN,
        arrange: Callable[[tuple[Channel, ...]], ColumnSet] = ColumnSet,
    ) -> None:
        self.name, self.lane = name, lane
        self.channels: tuple[Channel, ...] = ()
        self._file = OpenFile(path, remedy)
        self._remedy = remedy
        self._learn_layout, self._form = learn, form
        self._arrange = arrange
        self._gate: Gated | None = None
        self._reader = TokenReader(TokenPlan(0, (), ()))
        self._length = 0

    def resting(self, gate: Gated) -> Self:
        """The same source, which the scanner in C reads when something can have happened only."""
        self._gate = gate
        return self

    def open(self) -> None:
        self._file.open()
        try:
            self._learn(self._file.read())
        except OSError as error:
            self.close()
            raise Unsupported(f"{self._file.path}: {error.strerror}", self._remedy) from None
        if not self.channels:
            self.close()
            raise Unsupported(f"{self._file.path} holds no number known here", self._remedy)

    def read(self) -> Sequence[int | None]:
        data = self._file.read()
        try:
            return self._reader.row(data)
        except Mismatch:
            return self._read_anew(data)

    def scans(self) -> Sequence[FileScan]:
        return [FileScan(self._reader.plan, self._file.fd, self._length, self._gate)]

    def close(self) -> None:
        self._file.close()

    def _read_anew(self, data: bytes) -> Sequence[int | None]:
        """Learn; a number that is none costs its own channel alone, where a layout allows it."""
        before = self.channels
        self._learn(data)
        if self.channels != before:
            raise LayoutChanged(self.name)
        try:
            return self._reader.row(data)
        except Mismatch as error:
            raise ParseError(f"{self._file.path}: {error}") from None

    def _learn(self, data: bytes) -> None:
        shaped = self._form.shape(data)
        text = shaped.translate(_SAME_BLANKS).decode("ascii", "replace")
        by_channel: dict[Channel, int] = {}
        watched = set()
        for place, channel in self._learn_layout(text):
            if channel is None:
                watched.add(place)
            else:
                by_channel.setdefault(channel, place)
        tokens = shaped.split()
        if self._form.words:
            watched |= {at for at, token in enumerate(tokens) if not token.isdigit()}
        watched.difference_update(by_channel.values())
        shape = self._arrange(tuple(by_channel))
        self._reader = TokenReader(
            TokenPlan(
                len(tokens), tuple((place, tokens[place]) for place in sorted(watched)),
                tuple(by_channel.values()), self._form, shape.columns,
            )
        )  # fmt: skip
        self._length = len(data)
        self.channels = shape.channels


def word_scans(fd: int, text: bytes, values: Sequence[int]) -> tuple[FileScan, FileScan]:
    """What words stand for: a file that must stay as it is, and its columns until it does not."""
    tokens = text.split()
    plan = TokenPlan(len(tokens), tuple(enumerate(tokens)), ())
    return FileScan(plan, fd, len(text)), FileScan(_constant(tuple(values)))


@cache
def _constant(values: tuple[int, ...]) -> MemoryPlan:
    """One plan for the same values: what stands as it was is no other scan."""
    return MemoryPlan(packed(values))


def channel(metric: str, instance: str = "", scale: float = 1.0) -> Channel:
    """A channel of a catalogued metric: kind and lane are the catalogue's."""
    row = find(metric)
    return Channel(metric, instance, row.kind, scale, row.lane)


def rows(text: str) -> Iterator[tuple[int, list[str]]]:
    """The lines that hold anything, split, each with the place of its first token."""
    start = 0
    for line in text.split("\n"):
        tokens = line.split()
        if tokens:
            yield start, tokens
            start += len(tokens)


def is_number(token: str) -> bool:
    """Whether ``int`` takes the token as a decimal number."""
    digits = token.removeprefix("-")
    return digits.isascii() and digits.isdecimal()
