"""Files of devices that stay open, each with its own parser.

``NumberFiles`` fits where every file is one number and one folder shows all changes.  Devices
need more: files of several columns, words instead of numbers, devices that are replaced under
the same name, and hundreds of counters that rarely change.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from reveal_collector.kernel_interfaces.errors import LayoutChanged, Unsupported
from reveal_collector.readers.plan import FileScan, TokenPlan
from reveal_collector.readers.source import CHECK_EVERY
from reveal_collector.readers.textfile import OpenFile, unfit_files
from reveal_contract.channels import Channel
from reveal_contract.metric import Lane

Cells = Sequence[int | None]
_DIGITS = frozenset(b"0123456789")


@dataclass(frozen=True)
class AttributeFile:
    """One file and its columns; ``parse`` raises ``ValueError`` for other text.

    ``others`` are read with it: ``parse`` gets their texts one after another.  ``plan`` returns a
    plan with the same columns for a text like this one, for the native scanner.
    """

    path: Path
    channels: tuple[Channel, ...]
    parse: Callable[[bytes], Cells]
    plan: Callable[[bytes], TokenPlan] | None = None
    others: tuple[Path, ...] = ()


def single_column(
    path: Path, channel: Channel, parse: Callable[[bytes], int | None] = int
) -> AttributeFile:
    """Return a file of one column; a decimal number unless ``parse`` reads it otherwise."""
    return AttributeFile(path, (channel,), lambda data: (parse(data),))


def entries(*folders: Path) -> tuple[tuple[str, ...], ...]:
    """Return the sorted entries of each folder; none for a folder that cannot be read.

    The result serves as a fingerprint of the devices.
    """
    return tuple(_entries(folder) for folder in folders)


def _entries(folder: Path) -> tuple[str, ...]:
    try:
        return tuple(sorted(os.listdir(folder)))  # noqa: PTH208 - a syscall less
    except OSError:
        return ()


def read_text(path: Path) -> str:
    """Return a short file without surrounding blanks; "" where it cannot be read.

    A byte that is no UTF-8 becomes a lone surrogate, as in the names of files.
    """
    try:
        return path.read_text("utf-8", "surrogateescape").strip()
    except OSError:
        return ""


def read_number(path: Path) -> int | None:
    """Return the number in a short file; None where it has none."""
    try:
        return int(read_text(path))
    except ValueError:
        return None


def parse_fields(text: str) -> dict[str, str]:
    """Return the lines ``key: value`` of a text without surrounding blanks; skip other lines."""
    # not splitlines: the name of a process may have a character that ends a line of Unicode
    parts = (line.partition(":") for line in text.split("\n"))
    return {key.strip(): value.strip() for key, colon, value in parts if colon}


def resolve_link(path: Path) -> Path:
    """Return the target of a sysfs link, or the path itself where it cannot be resolved."""
    try:
        return path.resolve()
    except (OSError, RuntimeError):
        return path


def link_target(link: Path) -> str:
    """Return the last component of a link's target (a driver's name); "" where there is no link."""
    try:
        return os.readlink(link).rpartition("/")[2]  # noqa: PTH115 - once a second and GPU
    except OSError:
        return ""


class AttributeSource:
    """The columns of many device files.

    ``find`` lists the files.  It is called again when ``fingerprint`` returns another value, and
    when a file returns ENODEV: its device was removed, and another may use its name now.  A file
    that cannot be read or parsed empties only its own columns.  One that has digits and cannot be
    parsed is stated in ``degraded``; words such as ``<unknown>`` are the kernel's way to say that
    there is no number.

    ``quiet_period`` saves reads: a file that did not change for that many reads is then read only
    every ``quiet_period`` reads, until it changes.  The files are due at different reads.
    ``fingerprint`` is called as rarely.  Where every file has a plan, the native scanner skips
    quiet files itself, and ``fingerprint`` is called every ``CHECK_EVERY`` seconds.
    """

    def __init__(
        self,
        name: str,
        lane: Lane,
        find: Callable[[], Iterable[AttributeFile]],
        fingerprint: Callable[[], object],
        absent: Unsupported,
        quiet_period: int = 1,
    ) -> None:
        self.name, self.lane = name, lane
        self.channels: tuple[Channel, ...] = ()
        self._find, self._current_fingerprint, self._absent = find, fingerprint, absent
        self._quiet_period, self._round, self._checks = quiet_period, 0, 0
        self._fingerprint: object = None
        self._attributes: list[_OpenAttribute] = []

    def open(self) -> None:
        """Find and open the files; raises ``Unsupported`` where there are none."""
        self._learn()
        if not self.channels:
            self.close()
            raise self._absent

    def read(self) -> Cells:
        """Return the values of all files, reading those that are due."""
        previous = self.channels
        self._round += 1
        due = self._round % self._quiet_period == 0
        if self._fingerprint is None or (due and self._current_fingerprint() != self._fingerprint):
            self._learn()
            if self.channels != previous:
                raise LayoutChanged(self.name)
        values: list[int | None] = []
        period = self._quiet_period
        for position, opened in enumerate(self._attributes):
            if opened.quiet < period or (self._round + position) % period == 0:
                opened.refresh()
            values += opened.values
        if any(opened.gone for opened in self._attributes):
            self._fingerprint = None
        return values

    def scans(self) -> Sequence[FileScan] | None:
        """Return the scans of all files, or None where one of them has none."""
        scans = [scan for opened in self._attributes if (scan := opened.scan()) is not None]
        return scans if scans and len(scans) == len(self._attributes) else None

    def stale(self) -> bool:
        """Return whether the devices may have changed; called once a second."""
        self._checks += 1
        return self._checks % CHECK_EVERY == 0 and self._current_fingerprint() != self._fingerprint

    @property
    def degraded(self) -> Sequence[str]:
        """One phrase while files have numbers in an unknown form."""
        return unfit_files(self.name, [each.path for each in self._attributes if each.unfit])

    def close(self) -> None:
        """Close all files."""
        for opened in self._attributes:
            opened.close()
        self._attributes, self.channels = [], ()

    def _learn(self) -> None:
        previous, self._attributes = self._attributes, []
        self._fingerprint = self._current_fingerprint()
        channels: list[Channel] = []
        for attribute in self._find():
            opened = _OpenAttribute(attribute)
            try:
                opened.open()
            except Unsupported:
                opened.close()
                continue
            opened.refresh()
            opened.quiet = self._quiet_period  # most files never change: start as quiet
            self._attributes.append(opened)
            channels += attribute.channels
        self.channels = in_lane(channels, self.lane)
        # closed last: a new file must get another descriptor, so that its scan differs
        for opened in previous:
            opened.close()


class _OpenAttribute:
    """An open file, its last content, and for how many reads it has not changed."""

    def __init__(self, attribute: AttributeFile) -> None:
        self._file = OpenFile(attribute.path)
        self._others = [OpenFile(path) for path in attribute.others]
        self.quiet = 0
        self.gone = self.unfit = False
        self._answered = False
        self._attribute = attribute
        self._blank: Cells = (None,) * len(attribute.channels)
        self._last: bytes | None = None
        self.values: Cells = self._blank

    @property
    def path(self) -> Path:
        return self._attribute.path

    def open(self) -> None:
        for file in (self._file, *self._others):
            file.open()

    def close(self) -> None:
        for file in (self._file, *self._others):
            file.close()

    def scan(self) -> FileScan | None:
        """Return the scan; None without a plan, or while the last content has no values."""
        if self._attribute.plan is None or self._last is None or self.values is self._blank:
            return None
        return FileScan(self._attribute.plan(self._last), self._file.fd, len(self._last))

    def refresh(self) -> None:
        """Read the file and parse it if it has changed."""
        try:
            data = self._file.read()
            for file in self._others:
                data += file.read()
        except OSError as error:
            # a file that was never readable is no removed device: learning again is useless
            self.gone = error.errno == errno.ENODEV and self._answered
            self.values, self._last, self.quiet, self.unfit = self._blank, None, 0, False
            return
        self._answered = True
        if data == self._last:
            self.quiet += 1
            return
        self._last, self.quiet, self.unfit = data, 0, False
        try:
            self.values = self._attribute.parse(data)
        except (ValueError, IndexError):
            self.values, self.unfit = self._blank, any(map(_DIGITS.__contains__, data))


class Snapshot(NamedTuple):
    """The columns of a moment, and a phrase on what could not be read."""

    columns: Mapping[Channel, int | None]
    degraded: Sequence[str] = ()


class SnapshotSource:
    """A source of the rare lane whose columns are those that ``snapshot`` returns.

    It keeps nothing open, so it need not track devices that come and go.  Where ``absent`` is
    ``None`` the source waits without columns until there are any.
    """

    lane = Lane.RARE

    def __init__(
        self,
        name: str,
        snapshot: Callable[[], Snapshot],
        absent: Unsupported | None = None,
    ) -> None:
        self.name = name
        self.channels: tuple[Channel, ...] = ()
        self.degraded: Sequence[str] = ()
        self._snapshot, self._absent = snapshot, absent
        self._columns: tuple[Channel, ...] = ()

    def open(self) -> None:
        """Take the first snapshot; raises ``Unsupported`` where it has no columns."""
        try:
            self._set_columns(self._take())
        except OSError as error:
            raise Unsupported(f"{error.filename or self.name}: {error.strerror}") from None
        if not self.channels and self._absent is not None:
            raise self._absent

    def read(self) -> Cells:
        """Return the values of a new snapshot."""
        values = self._take()
        if tuple(values) != self._columns:
            self._set_columns(values)
            raise LayoutChanged(self.name)
        return list(values.values())

    def close(self) -> None:
        """Forget the columns."""
        self.channels = self._columns = ()
        self.degraded = ()

    def _take(self) -> Mapping[Channel, int | None]:
        columns, self.degraded = self._snapshot()
        return columns

    def _set_columns(self, values: Mapping[Channel, int | None]) -> None:
        self._columns = tuple(values)
        self.channels = in_lane(values, self.lane)


def in_lane(channels: Iterable[Channel], lane: Lane) -> tuple[Channel, ...]:
    """Return the channels with this lane."""
    return tuple(each if each.lane is lane else replace(each, lane=lane) for each in channels)
