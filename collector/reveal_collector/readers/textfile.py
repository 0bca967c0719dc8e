"""Kernel text files that stay open and are read repeatedly; numbers are selected by position.

A descriptor of procfs or sysfs stays valid: each ``pread`` from offset 0 generates the file
again.  The layout is learned once, in slow code; while it is unchanged, the number at a position
belongs to the same channel.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Self

from reveal_collector.kernel_interfaces.errors import LayoutChanged, ParseError, Unsupported
from reveal_collector.kernel_interfaces.memory_saving import READ_SIZE
from reveal_collector.readers.plan import (
    AS_READ,
    PLAIN,
    Columns,
    FileScan,
    Gated,
    MemoryPlan,
    TextForm,
    TokenPlan,
)
from reveal_collector.readers.reference_reader import Mismatch, TokenReader, packed
from reveal_collector.readers.sums import expanded, grouped, identified_sums
from reveal_contract.catalogue import find
from reveal_contract.channels import Channel
from reveal_contract.metric import Lane

# seq_file returns whole records, one page at most.  A shorter read is the end of the file: only
# /proc/interrupts of hundreds of CPUs has records over 3 KiB, and it is read to the end anyway.
_FULL = 1024
_QUOTED_LINES, _QUOTED_LETTERS = 3, 40  # of lines without the known form
# str.split and bytes.split treat these differently; with "?" both give the same tokens
_SAME_BLANKS = bytes.maketrans(b"\x1c\x1d\x1e\x1f", b"????")


def decoded(data: bytes) -> str:
    """Return the text of a kernel file, with the same tokens as ``data.split()``.

    Other bytes than ASCII become lone surrogates, as UTF-8 has blanks that split a text only.
    """
    return data.translate(_SAME_BLANKS).decode("ascii", "surrogateescape")


class OpenFile:
    """A file that is opened once and read completely each time."""

    def __init__(self, path: Path, remedy: str = "") -> None:
        self.path = path
        self._remedy = remedy
        self._fd = -1

    def open(self) -> None:
        """Open the file; raises ``Unsupported`` where it cannot be opened."""
        self.close()
        try:
            self._fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        except PermissionError:
            raise Unsupported(
                f"{self.path} may not be read: permission denied", "run as root"
            ) from None
        except FileNotFoundError:
            raise Unsupported(f"{self.path} does not exist", self._remedy) from None
        except OSError as error:
            raise Unsupported(f"{self.path}: {error.strerror}", self._remedy) from None

    @property
    def fd(self) -> int:
        """The descriptor; -1 while the file is closed."""
        return self._fd

    def read(self) -> bytes:
        """Return the current content."""
        data = os.pread(self._fd, READ_SIZE, 0)
        if len(data) < _FULL:
            return data
        parts, offset = [data], len(data)
        while more := os.pread(self._fd, READ_SIZE, offset):
            parts.append(more)
            offset += len(more)
        return b"".join(parts) if len(parts) > 1 else data

    def close(self) -> None:
        """Close the file; harmless if it is closed."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class Unfit:
    """Mark in a layout: the line that begins with this token has numbers that nobody reads."""


UNFIT = Unfit()
# (position of a token, its channel); None: no channel, but the token must not change
Layout = Sequence[tuple[int, Channel | Unfit | None]]
LayoutList = list[tuple[int, Channel | Unfit | None]]  # a layout that is being learned


@dataclass(frozen=True)
class ColumnSet:
    """The columns of a source: their channels, and how the selected values make them."""

    channels: tuple[Channel, ...]
    columns: Columns = AS_READ


class TokenSource:
    """A source that is one file of tokens separated by blanks.

    ``learn`` maps the text, in its ``form``, to (position, channel) pairs.  Some tokens must not
    change: those that are not numbers (names of CPUs, disks, NICs; not if the form has no words),
    and those paired with ``None``.  A change of these or of the number of tokens is a new layout,
    and so is a channel's token that is no longer a number.  ``read`` raises ``ParseError`` if no
    layout fits.  Tokens of the same channel are added.  ``arrange`` turns the selected channels
    into other columns.  ``form`` may depend on the text: then it is a function, called whenever the
    layout is learned.

    A line that has not the known form is paired with ``UNFIT`` and stated in ``degraded``: its
    numbers are missing.
    """

    def __init__(
        self,
        name: str,
        lane: Lane,
        path: Path,
        learn: Callable[[str], Layout],
        remedy: str = "",
        *,
        form: TextForm | Callable[[bytes], TextForm] = PLAIN,
        arrange: Callable[[tuple[Channel, ...]], ColumnSet] = ColumnSet,
    ) -> None:
        self.name, self.lane = name, lane
        self.channels: tuple[Channel, ...] = ()
        self._file = OpenFile(path, remedy)
        self._remedy = remedy
        self._learn_layout, self._form = learn, form
        self._unfit: list[str] = []  # first tokens of lines without the known form
        self._arrange = arrange
        self._gate: Gated | None = None
        self._reader = TokenReader(TokenPlan(0, (), ()))
        self._length = 0

    def resting(self, gate: Gated) -> Self:
        """Return this source; the native scanner reads it only while the gate is open."""
        self._gate = gate
        return self

    def open(self) -> None:
        """Open the file and learn its layout."""
        self._file.open()
        try:
            self._learn(self._file.read())
        except OSError as error:
            self.close()
            raise Unsupported(f"{self._file.path}: {error.strerror}", self._remedy) from None
        if not self.channels:
            self.close()
            raise Unsupported(f"{self._file.path} has no known number", self._remedy)

    def read(self) -> Sequence[int | None]:
        """Return the values of all columns."""
        data = self._file.read()
        try:
            return self._reader.row(data)
        except Mismatch:
            return self._relearn(data)

    @property
    def degraded(self) -> Sequence[str]:
        """One phrase while lines of the file have not the known form."""
        return unfit_lines(self.name, self._file.path, self._unfit)

    def scans(self) -> Sequence[FileScan]:
        """Return the scan of the file, for the native scanner."""
        return [FileScan(self._reader.plan, self._file.fd, self._length, self._gate)]

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _relearn(self, data: bytes) -> Sequence[int | None]:
        """Learn the layout; a token that is no longer a number removes only its own channel.

        Raises ``ParseError`` where the layout needs that channel.
        """
        before = self.channels
        self._learn(data)
        if self.channels != before:
            raise LayoutChanged(self.name)
        try:
            return self._reader.row(data)
        except Mismatch as error:
            raise ParseError(f"{self._file.path}: {error}") from None

    def _learn(self, data: bytes) -> None:
        form = self._form(data) if callable(self._form) else self._form
        shaped = form.apply(data)
        layout = dict.fromkeys(self._learn_layout(decoded(shaped)))
        watched = {position for position, channel in layout if channel is None}
        unfit = [position for position, channel in layout if isinstance(channel, Unfit)]
        positions = grouped(
            (channel, position) for position, channel in layout if isinstance(channel, Channel)
        )
        tokens = shaped.split()
        self._unfit = [tokens[position].decode("ascii", "replace") for position in unfit]
        if form.words:
            watched |= {index for index, token in enumerate(tokens) if not token.isdigit()}
        picks = tuple(position for group in positions.values() for position in group)
        watched.difference_update(picks)
        shape = _shape(positions, self._arrange(tuple(positions)))
        self._reader = TokenReader(
            TokenPlan(
                len(tokens), tuple((position, tokens[position]) for position in sorted(watched)),
                picks, form, shape.columns,
            )
        )  # fmt: skip
        self._length = len(data)
        self.channels = shape.channels


def _shape(positions: Mapping[Channel, tuple[int, ...]], arranged: ColumnSet) -> ColumnSet:
    """Return the columns of the picked tokens; sums carry the channels that they add up."""
    numbers, groups = itertools.count(), positions.values()
    columns = expanded(
        arranged.columns, [tuple(itertools.islice(numbers, len(group))) for group in groups]
    )
    inputs = [channel.identity for channel, group in positions.items() for _ in group]
    return ColumnSet(identified_sums(arranged.channels, columns, inputs), columns)


def word_scans(fd: int, text: bytes, values: Sequence[int]) -> tuple[FileScan, FileScan]:
    """Return scans for a file of words: constant columns, invalidated when the words change."""
    tokens = text.split()
    plan = TokenPlan(len(tokens), tuple(enumerate(tokens)), ())
    return FileScan(plan, fd, len(text)), FileScan(_constant(tuple(values)))


@cache
def _constant(values: tuple[int, ...]) -> MemoryPlan:
    """Return a plan for constant values; cached, so that equal values compare as the same plan."""
    return MemoryPlan(packed(values))


def channel(metric: str, instance: str = "", scale: float = 1.0) -> Channel:
    """Return a channel of a metric in the catalogue, which defines its kind and lane."""
    row = find(metric)
    return Channel(metric, instance, row.kind, scale, row.lane)


def unfit_lines(source: str, path: Path, beginnings: Sequence[str]) -> tuple[str, ...]:
    """Return a phrase on lines of a file that have not the known form; none without such lines."""
    if not beginnings:
        return ()
    lines = [each.strip()[:_QUOTED_LETTERS] for each in beginnings]
    return (_unfit(source, f"{_counted('line', lines)} of {path}", lines),)


def unfit_files(source: str, paths: Sequence[Path]) -> tuple[str, ...]:
    """Return a phrase on files whose numbers have not the known form; none without such files."""
    return (_unfit(source, _counted("file", paths), [*map(str, paths)]),) if paths else ()


def _unfit(source: str, what: str, quoted: Sequence[str]) -> str:
    first = ", ".join(quoted[:_QUOTED_LINES])
    return f"{source}: numbers are missing, because {what} cannot be read: {first}"


def _counted(word: str, things: Sequence[object]) -> str:
    return f"{len(things)} {word}{'s' if len(things) > 1 else ''}"


def rows(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the non-empty lines as lists of tokens, each with the position of its first token."""
    start = 0
    for line in text.split("\n"):
        tokens = line.split()
        if tokens:
            yield start, tokens
            start += len(tokens)


def is_number(token: str) -> bool:
    """Return whether the token is a decimal integer, with an optional minus sign."""
    digits = token.removeprefix("-")
    return digits.isascii() and digits.isdecimal()
