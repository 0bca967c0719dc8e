"""Kernel text files kept open and read again and again, numbers picked by position.

A descriptor of procfs or sysfs stays valid: each ``pread`` from 0 renders the file anew.  The
layout is learned once, in slow code; while it holds, number k of the file is the same channel.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from operator import itemgetter
from pathlib import Path

from reveal_collector.source import LayoutChanged, Unsupported
from reveal_contract.channels import Channel
from reveal_contract.metric import Lane

_CHUNK = 1 << 16
# seq_file hands out whole records, a page at most: a read shorter than this is the end, as no
# record we read is longer than 3 KiB but /proc/interrupts of hundreds of CPUs, read to EOF
_FULL = 1024


class KeptFile:
    """One file, opened once, read whole from the start each time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd = -1

    def open(self) -> None:
        try:
            self._fd = os.open(self.path, os.O_RDONLY | os.O_CLOEXEC)
        except PermissionError:
            raise Unsupported(f"{self.path} may not be read", "run as root") from None
        except OSError as error:
            raise Unsupported(f"{self.path}: {error.strerror}") from None

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


Layout = list[tuple[int, Channel]]  # (token of the file, channel)


class TokenSource:
    """A source that is one file of blank-separated tokens.

    ``learn`` maps the text to (token, channel) pairs.  ``labels`` are tokens that must not
    change (names of CPUs, disks, NICs); a change of them or of the token count is a new layout.
    """

    base = 10

    def __init__(self, name: str, lane: Lane, path: Path, learn: Callable[[str], Layout]) -> None:
        self.name, self.lane = name, lane
        self.channels: tuple[Channel, ...] = ()
        self._file = KeptFile(path)
        self._learn_layout = learn
        self._last = b""
        self._values: list[int | None] = []

    def open(self) -> None:
        self._file.open()
        try:
            self._learn(self._file.read())
        except OSError as error:
            raise Unsupported(f"{self._file.path}: {error.strerror}") from None
        if not self.channels:
            raise Unsupported(f"{self._file.path} holds no number known here")

    def read(self) -> Sequence[int | None]:
        data = self._file.read()
        if data == self._last:
            return self._values
        tokens = data.split()
        if len(tokens) != self._count or self._pick_labels(tokens) != self._labels:
            self._learn(data)
            raise LayoutChanged(self.name)
        self._values = self.parse(self._pick(tokens))
        self._last = data
        return self._values

    def parse(self, tokens: tuple[bytes, ...]) -> list[int | None]:
        return list(map(int, tokens))

    def close(self) -> None:
        self._file.close()

    def _learn(self, data: bytes) -> None:
        layout = self._learn_layout(data.decode("utf-8", "replace"))
        tokens = data.split()
        self._count, self._last = len(tokens), b""
        self.channels = tuple(channel for _, channel in layout)
        self._pick = picker([at for at, _ in layout])
        taken = {at for at, _ in layout}
        self._pick_labels = picker(
            [at for at, token in enumerate(tokens) if at not in taken and not token.isdigit()]
        )
        self._labels = self._pick_labels(tokens)


def picker(places: Sequence[int]) -> Callable[[Sequence[bytes]], tuple[bytes, ...]]:
    """``itemgetter`` that gives a tuple for any number of places, one and none too."""
    if len(places) > 1:
        return itemgetter(*places)
    if places:
        only = places[0]
        return lambda tokens: (tokens[only],)
    return lambda _: ()
