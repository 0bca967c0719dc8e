"""Kernel text files kept open and read again and again, numbers picked by position.

A descriptor of procfs or sysfs stays valid: each ``pread`` from 0 renders the file anew.  The
layout is learned once, in slow code; while it holds, number k of the file is the same channel.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter
from pathlib import Path
from typing import NoReturn

from reveal_collector.source import LayoutChanged, ParseError, Unsupported
from reveal_contract.catalogue import find
from reveal_contract.channels import Channel
from reveal_contract.metric import Lane

_CHUNK = 1 << 16
# seq_file hands out whole records, a page at most: a read shorter than this is the end, as no
# record we read is longer than 3 KiB but /proc/interrupts of hundreds of CPUs, read to EOF
_FULL = 1024
# str.split and bytes.split disagree on these; as "?" both see the same tokens
_SAME_BLANKS = bytes.maketrans(b"\x1c\x1d\x1e\x1f", b"????")


class KeptFile:
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

    def read(self) -> bytes:
        data = os.pread(self._fd, _CHUNK, 0)
        if len(data) < _FULL:
            return data
        parts, at = [data], len(data)
        while more := os.pread(self._fd, _CHUNK, at):
            parts.append(more)
            at += len(more)
        return b"".join(parts) if len(parts) > 1 else data

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


# (token of the file, its channel); None: not a channel, but the token must stay what it is
Layout = Sequence[tuple[int, Channel | None]]


class TokenSource:
    """A source that is one file of blank-separated tokens.

    ``learn`` maps the text to (token, channel) pairs.  Tokens that are no numbers (names of
    CPUs, disks, NICs) and those the layout pairs with ``None`` must not change; a change of
    them or of the token count is a new layout, and so is a number that is none; where no layout
    can do without it, ``ParseError`` is raised.
    """

    words = True  # whether every token that is no number is a name

    def __init__(
        self,
        name: str,
        lane: Lane,
        path: Path,
        learn: Callable[[str], Layout],
        remedy: str = "",
    ) -> None:
        self.name, self.lane = name, lane
        self.channels: tuple[Channel, ...] = ()
        self._file = KeptFile(path, remedy)
        self._remedy = remedy
        self._learn_layout = learn
        self._last: bytes | None = None
        self._values: list[int | None] = []

    def open(self) -> None:
        self._file.open()
        try:
            self._learn(self.text())
        except OSError as error:
            self.close()
            raise Unsupported(f"{self._file.path}: {error.strerror}", self._remedy) from None
        if not self.channels:
            self.close()
            raise Unsupported(f"{self._file.path} holds no number known here", self._remedy)

    def read(self) -> Sequence[int | None]:
        data = self.text()
        if data == self._last:
            return self._values
        tokens = data.split()
        if len(tokens) != self._count or self._pick_labels(tokens) != self._labels:
            self._learn(data)
            raise LayoutChanged(self.name)
        try:
            self._values = self.parse(self._pick(tokens))
        except ValueError as error:
            self._refuse(data, error)
        self._last = data
        return self._values

    def text(self) -> bytes:
        """The file as it is now; a subclass may cut out what nobody wants."""
        return self._file.read()

    def parse(self, tokens: tuple[bytes, ...]) -> list[int | None]:
        """The picked tokens as one integer a channel."""
        return list(map(int, tokens))

    def arrange(self, channels: tuple[Channel, ...]) -> tuple[Channel, ...]:
        """The channels of the picked tokens -> those of ``parse``; the same unless it computes."""
        return channels

    def close(self) -> None:
        self._file.close()

    def _refuse(self, data: bytes, error: ValueError) -> NoReturn:
        """A number that is none costs its own channel alone, where the layout can do without."""
        before = self.channels
        self._learn(data)
        if self.channels != before:
            raise LayoutChanged(self.name)
        raise ParseError(f"{self._file.path}: {error}") from None

    def _learn(self, data: bytes) -> None:
        text = data.translate(_SAME_BLANKS).decode("ascii", "replace")
        by_channel: dict[Channel, int] = {}
        watched = set()
        for place, channel in self._learn_layout(text):
            if channel is None:
                watched.add(place)
            else:
                by_channel.setdefault(channel, place)
        tokens = data.split()
        taken = set(by_channel.values())
        if self.words:
            watched |= {at for at, token in enumerate(tokens) if not token.isdigit()}
        self._count, self._last = len(tokens), None
        self._pick = picker(list(by_channel.values()))
        self._pick_labels = picker(sorted(watched - taken))
        self._labels = self._pick_labels(tokens)
        self.channels = self.arrange(tuple(by_channel))


def picker(places: Sequence[int]) -> Callable[[Sequence[bytes]], tuple[bytes, ...]]:
    """``itemgetter`` that gives a tuple for any number of places, one and none too."""
    if len(places) > 1:
        return itemgetter(*places)
    if places:
        only = places[0]
        return lambda tokens: (tokens[only],)
    return lambda _: ()


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
