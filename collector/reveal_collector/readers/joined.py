"""Several readers as one source: a file for each NUMA node, a number for each sysfs attribute."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from reveal_collector.kernel.errors import LayoutChanged, ParseError, Unsupported
from reveal_collector.readers.plan import (
    FileScan,
    Mismatch,
    TokenPlan,
    is_stale,
    numbers,
    scans_of,
)
from reveal_collector.readers.source import CHECK_EVERY, Source
from reveal_collector.readers.textfile import OpenFile, word_scans
from reveal_contract.channels import Channel
from reveal_contract.metric import Lane

# how sysfs spells what a number would say; "unknown" is a link without carrier detection
_WORDS = {b"up": 1, b"unknown": 1, b"down": 0, b"lowerlayerdown": 0, b"dormant": 0,
          b"notpresent": 0, b"testing": 0}  # fmt: skip
_ONE_NUMBER = TokenPlan(1, (), (0,))


class Joined:
    """The columns of several sources one after the other; one that fails leaves its own empty."""

    def __init__(
        self, name: str, lane: Lane, find: Callable[[], Sequence[Source]], absent: str
    ) -> None:
        self.name, self.lane = name, lane
        self.channels: tuple[Channel, ...] = ()
        self._find, self._absent = find, absent
        self._parts: list[Source] = []

    def open(self) -> None:
        self.close()
        reason: Unsupported | None = None
        for part in self._find():
            try:
                part.open()
            except Unsupported as why:
                reason = reason or why
            else:
                self._parts.append(part)
        if not self._parts:
            raise reason or Unsupported(self._absent)
        self._join()

    def read(self) -> Sequence[int | None]:
        values: list[int | None] = []
        changed = False
        for part in self._parts:
            try:
                values += part.read()
            except LayoutChanged:
                changed = True
            except OSError:
                values += [None] * len(part.channels)
        if changed:
            self._join()
            raise LayoutChanged(self.name)
        return values

    def scans(self) -> Sequence[FileScan] | None:
        found = [scans_of(part) for part in self._parts]
        return None if None in found else [each for scans in found for each in scans or ()]

    def stale(self) -> bool:
        return any(is_stale(part) for part in self._parts)

    def close(self) -> None:
        for part in self._parts:
            part.close()
        self._parts, self.channels = [], ()

    def _join(self) -> None:
        self.channels = tuple(each for part in self._parts for each in part.channels)


class NumberFiles:
    """Files that hold one number each, as sysfs has them.

    ``find`` lists them with their channels; it is asked again when the entries of ``folder``
    (the interfaces, the CPUs) are others than before, unless they are ``lasting``; where the
    scanner in C reads the files that is looked at every ``LOOK_EVERY`` seconds.  A file that
    cannot be read now (EINVAL for the speed of a link that is down) gives ``None``.
    """

    def __init__(
        self,
        name: str,
        lane: Lane,
        folder: Path,
        find: Callable[[], Mapping[Path, Channel]],
        remedy: str = "",
        lasting: bool = False,
    ) -> None:
        self.name, self.lane = name, lane
        self.channels: tuple[Channel, ...] = ()
        self._folder, self._find, self._remedy = folder, find, remedy
        self._lasting, self._asked = lasting, 0
        self._entries: list[str] = []
        self._files: list[OpenFile] = []
        self._words: dict[OpenFile, bytes] = {}
        self._known = False  # whether all were read since they were opened

    def open(self) -> None:
        try:
            self._learn()
        except OSError as error:
            raise Unsupported(f"{self._folder}: {error.strerror}", self._remedy) from None
        if not self.channels:
            raise Unsupported(f"{self._folder} has none of the files wanted", self._remedy)

    def read(self) -> Sequence[int | None]:
        if self._others():
            self._learn()
            raise LayoutChanged(self.name)
        return self._numbers()

    def scans(self) -> Sequence[FileScan] | None:
        """Of words the scanner knows only that they are what they were when read last."""
        if not self._known:
            try:
                self._numbers()
            except ParseError:
                return None
        return [scan for file in self._files for scan in self._scans(file)]

    def stale(self) -> bool:
        """Whether others may be there; asked once a second, and answered every so many."""
        self._asked += 1
        return self._asked % CHECK_EVERY == 0 and self._others()

    def _others(self) -> bool:
        if self._lasting:
            return False
        return os.listdir(self._folder) != self._entries  # noqa: PTH208 - a syscall less

    def close(self) -> None:
        for file in self._files:
            file.close()
        self._files, self._entries, self.channels = [], [], ()
        self._words, self._known = {}, False

    def _learn(self) -> None:
        self.close()
        entries = os.listdir(self._folder)  # noqa: PTH208
        channels = []
        for path, channel in self._find().items():
            file = OpenFile(path)
            try:
                file.open()
            except Unsupported:
                continue
            self._files.append(file)
            channels.append(channel)
        self.channels, self._entries = tuple(channels), entries

    def _numbers(self) -> list[int | None]:
        values = [self._number(file) for file in self._files]
        self._known = True
        return values

    def _number(self, file: OpenFile) -> int | None:
        try:
            token = file.read().strip()
        except OSError:
            return None
        if token in _WORDS:
            self._words[file] = token
            return _WORDS[token]
        self._words.pop(file, None)
        try:
            return numbers([token])[0]
        except Mismatch:
            raise ParseError(f"{file.path}: {token[:40]!r} is no number") from None

    def _scans(self, file: OpenFile) -> tuple[FileScan, ...]:
        word = self._words.get(file)
        if word is None:
            return (FileScan(_ONE_NUMBER, file.fd),)
        return word_scans(file.fd, word, [_WORDS[word]])
