"""Several readers as one source: a file for each NUMA node, a number for each sysfs attribute."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from reveal_collector.kernel_interfaces.errors import LayoutChanged, ParseError, Unsupported
from reveal_collector.readers.plan import FileScan, TokenPlan, is_stale, scans_of
from reveal_collector.readers.reference_reader import Mismatch, numbers
from reveal_collector.readers.source import CHECK_EVERY, Source, degraded_of
from reveal_collector.readers.textfile import OpenFile, word_scans
from reveal_contract.channels import Channel
from reveal_contract.metric import Lane

# words of sysfs and their values; "unknown" is a link without carrier detection
_WORDS = {b"up": 1, b"unknown": 1, b"down": 0, b"lowerlayerdown": 0, b"dormant": 0,
          b"notpresent": 0, b"testing": 0}  # fmt: skip
_SINGLE_NUMBER = TokenPlan(1, (), (0,))
_FAST_READS = 10  # of the fast lane a second


class Joined:
    """Concatenates the columns of several sources; a source that fails leaves its columns empty.

    ``find`` returns the sources.  ``open`` raises ``Unsupported`` if none of them opens: with the
    reason of the first one, or else with ``absent``.  Where sources come and go while the host
    runs, ``fingerprint`` returns another value then, and ``find`` is called again.
    """

    def __init__(
        self,
        name: str,
        lane: Lane,
        find: Callable[[], Sequence[Source]],
        absent: str,
        fingerprint: Callable[[], object] | None = None,
    ) -> None:
        self.name, self.lane = name, lane
        self.channels: tuple[Channel, ...] = ()
        self._find, self._absent = find, absent
        self._changes = Changes(fingerprint, lane) if fingerprint is not None else None
        self._parts: list[Source] = []

    def open(self) -> None:
        """Find and open the sources."""
        self.close()
        if self._changes is not None:
            self._changes.adopt()
        self._parts, reason = _opened(self._find())
        if not self._parts:
            raise reason or Unsupported(self._absent)
        self._join()

    def read(self) -> Sequence[int | None]:
        """Return the values of all sources."""
        if self._changes is not None and self._changes.after_read():
            self._find_again()
            raise LayoutChanged(self.name)
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

    @property
    def degraded(self) -> Sequence[str]:
        """The phrases of all sources."""
        return [phrase for part in self._parts for phrase in degraded_of(part)]

    def scans(self) -> Sequence[FileScan] | None:
        """Return the scans of all sources, or None if one of them has none."""
        found = [scans_of(part) for part in self._parts]
        return None if None in found else [each for scans in found for each in scans or ()]

    def stale(self) -> bool:
        """Return whether one of the sources is stale, or sources came or went; once a second."""
        changed = self._changes is not None and self._changes.after_second()
        return any(is_stale(part) for part in self._parts) or changed

    def close(self) -> None:
        """Close all sources."""
        for part in self._parts:
            part.close()
        self._parts, self.channels = [], ()

    def _find_again(self) -> None:
        previous = self._parts
        self._parts, _ = _opened(self._find())
        # closed last: a new file must get another descriptor, so that its scan differs
        for part in previous:
            part.close()
        self._join()

    def _join(self) -> None:
        self.channels = tuple(each for part in self._parts for each in part.channels)


def _opened(found: Sequence[Source]) -> tuple[list[Source], Unsupported | None]:
    """Open sources; return those that open, and the first reason of the others."""
    parts, reason = [], None
    for part in found:
        try:
            part.open()
        except Unsupported as error:
            reason = reason or error
        else:
            parts.append(part)
    return parts, reason


class Changes:
    """Notices that a fingerprint has changed, at the price of a look every ``CHECK_EVERY`` seconds.

    A change counts once two looks in a row give the same: the kernel shows the folder of a new
    device before its files.
    """

    def __init__(self, fingerprint: Callable[[], object], lane: Lane) -> None:
        self._fingerprint = fingerprint
        self._reads_per_look = CHECK_EVERY * (_FAST_READS if lane is Lane.FAST else 1)
        self._reads = self._seconds = 0
        self._adopted = self._last = object()
        self._noticed = False

    def adopt(self) -> None:
        """Take the present state as the known one."""
        self._adopted = self._last = self._fingerprint()
        self._noticed = False

    def after_read(self) -> bool:
        """Return whether there is a change, which then counts as known; for each read."""
        self._reads += 1
        if not self._noticed and self._reads % self._reads_per_look == 0:
            self._look()
        noticed, self._noticed = self._noticed, False
        if noticed:
            self._adopted = self._last
        return noticed

    def after_second(self) -> bool:
        """Return whether there is a change; called once a second where nobody calls ``read``."""
        self._seconds += 1
        if self._seconds % CHECK_EVERY == 0:
            self._look()
        return self._noticed

    def _look(self) -> None:
        found = self._fingerprint()
        self._noticed = found == self._last != self._adopted
        self._last = found


class NumberFiles:
    """Source of files with one number each, as in sysfs.

    ``find`` returns the files with their channels.  It is called again when the entries of
    ``folder`` (interfaces, CPUs) change, unless the files are ``lasting``.  Where the native
    scanner reads the files, the entries are checked every ``CHECK_EVERY`` seconds.  A file that
    cannot be read at the moment (EINVAL for the speed of a link that is down) gives ``None``.
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
        self._lasting, self._checks = lasting, 0
        self._entries: list[str] = []
        self._files: list[OpenFile] = []
        self._words: dict[OpenFile, bytes] = {}
        self._known = False  # all files were read since they were opened

    def open(self) -> None:
        """Find and open the files."""
        try:
            self._learn()
        except OSError as error:
            raise Unsupported(f"{self._folder}: {error.strerror}", self._remedy) from None
        if not self.channels:
            raise Unsupported(f"{self._folder} has none of the expected files", self._remedy)

    def read(self) -> Sequence[int | None]:
        """Return one number for each file."""
        if self._has_other_entries():
            self._learn()
            raise LayoutChanged(self.name)
        return self._numbers()

    def scans(self) -> Sequence[FileScan] | None:
        """Return the scans; a file with a word is scanned for a change of that word only."""
        if not self._known:
            try:
                self._numbers()
            except ParseError:
                return None
        return [scan for file in self._files for scan in self._scans(file)]

    def stale(self) -> bool:
        """Return whether the entries have changed; called each second, checks every few seconds."""
        self._checks += 1
        return self._checks % CHECK_EVERY == 0 and self._has_other_entries()

    def _has_other_entries(self) -> bool:
        if self._lasting:
            return False
        return os.listdir(self._folder) != self._entries  # noqa: PTH208 - a syscall less

    def close(self) -> None:
        """Close all files."""
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
            raise ParseError(f"{file.path}: {token[:40]!r} is not a number") from None

    def _scans(self, file: OpenFile) -> tuple[FileScan, ...]:
        word = self._words.get(file)
        if word is None:
            return (FileScan(_SINGLE_NUMBER, file.fd),)
        return word_scans(file.fd, word, [_WORDS[word]])
