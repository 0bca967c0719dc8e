"""Files of devices, kept open, each with a reader of its own for what it holds.

``NumberFiles`` fits where every file is one number and one folder shows all that comes and goes.
Devices need more: a file of many columns, a word for a number, a device that is replaced under
its old name, counters by the hundred that never move.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from reveal_collector.kernel.errors import LayoutChanged, Unsupported
from reveal_collector.readers.plan import FileScan, TokenPlan
from reveal_collector.readers.source import CHECK_EVERY
from reveal_collector.readers.textfile import OpenFile
from reveal_contract.channels import Channel
from reveal_contract.metric import Lane

Cells = Sequence[int | None]


@dataclass(frozen=True)
class AttributeFile:
    """One file and the columns its text gives; ``parse`` raises ``ValueError`` for other text.

    ``plan`` gives the same columns of a text like this one, for the scanner in C.
    """

    path: Path
    channels: tuple[Channel, ...]
    parse: Callable[[bytes], Cells]
    plan: Callable[[bytes], TokenPlan] | None = None


def single_column(
    path: Path, channel: Channel, parse: Callable[[bytes], int | None] = int
) -> AttributeFile:
    """A file of one column; a decimal number unless ``parse`` says otherwise."""
    return AttributeFile(path, (channel,), lambda data: (parse(data),))


def entries(*folders: Path) -> tuple[tuple[str, ...], ...]:
    """The entries of each folder, as a mark of what is there; none of one that is gone."""
    return tuple(_entries(folder) for folder in folders)


def _entries(folder: Path) -> tuple[str, ...]:
    try:
        return tuple(sorted(os.listdir(folder)))  # noqa: PTH208 - a syscall less
    except OSError:
        return ()


def read_text(path: Path) -> str:
    """A short file without its blanks; "" where it cannot be read (EINVAL of a link down)."""
    try:
        return path.read_text("utf-8", "replace").strip()
    except OSError:
        return ""


def read_number(path: Path) -> int | None:
    """The one number in a short file."""
    try:
        return int(read_text(path))
    except ValueError:
        return None


def parse_fields(text: str) -> dict[str, str]:
    """The lines ``key: value`` of a text, without blanks around either; others are left out."""
    parts = (line.partition(":") for line in text.splitlines())
    return {key.strip(): value.strip() for key, colon, value in parts if colon}


def resolve_link(path: Path) -> Path:
    """Where a link of sysfs leads; the path itself where it leads nowhere or around."""
    try:
        return path.resolve()
    except (OSError, RuntimeError):
        return path


def link_target(link: Path) -> str:
    """The last part of what a link leads to (a driver's name); "" where there is none."""
    try:
        return os.readlink(link).rpartition("/")[2]  # noqa: PTH115 - once a second and GPU
    except OSError:
        return ""


class AttributeSource:
    """The columns of many device files.

    ``find`` lists the files; it is asked again when ``mark`` gives something else than before,
    and when a file answers ENODEV: its device went, and another may have its name by now.  Text
    that ``parse`` refuses, or a file that cannot be read, costs its own columns alone.

    ``turns`` spares what is quiet: a file that was the same for that many reads is read every
    ``turns`` reads only, each file at a turn of its own, until it changes; ``mark`` is asked as
    seldom.  Where every file has a plan the scanner in C spares them all, and ``mark`` is asked
    every ``LOOK_EVERY`` seconds.
    """

    def __init__(
        self,
        name: str,
        lane: Lane,
        find: Callable[[], Iterable[AttributeFile]],
        mark: Callable[[], object],
        absent: Unsupported,
        turns: int = 1,
    ) -> None:
        self.name, self.lane = name, lane
        self.channels: tuple[Channel, ...] = ()
        self._find, self._mark, self._absent = find, mark, absent
        self._turns, self._round, self._asked = turns, 0, 0
        self._seen: object = None
        self._kept: list[_Kept] = []

    def open(self) -> None:
        self._learn()
        if not self.channels:
            self.close()
            raise self._absent

    def read(self) -> Cells:
        before = self.channels
        self._round += 1
        if self._seen is None or (self._round % self._turns == 0 and self._mark() != self._seen):
            self._learn()
            if self.channels != before:
                raise LayoutChanged(self.name)
        values: list[int | None] = []
        for place, kept in enumerate(self._kept):
            if kept.quiet < self._turns or (self._round + place) % self._turns == 0:
                kept.renew()
            values += kept.values
        if any(kept.gone for kept in self._kept):
            self._seen = None
        return values

    def scans(self) -> Sequence[FileScan] | None:
        scans = [scan for kept in self._kept if (scan := kept.scan()) is not None]
        return scans if scans and len(scans) == len(self._kept) else None

    def stale(self) -> bool:
        """Whether other devices may be there; asked once a second."""
        self._asked += 1
        return self._asked % CHECK_EVERY == 0 and self._mark() != self._seen

    def close(self) -> None:
        for kept in self._kept:
            kept.file.close()
        self._kept, self.channels = [], ()

    def _learn(self) -> None:
        before, self._kept = self._kept, []
        self._seen = self._mark()
        channels: list[Channel] = []
        for attribute in self._find():
            file = OpenFile(attribute.path)
            try:
                file.open()
            except Unsupported:
                continue
            kept = _Kept(file, attribute)
            kept.renew()
            kept.quiet = self._turns  # most never move: quiet until seen otherwise
            self._kept.append(kept)
            channels += attribute.channels
        self.channels = in_lane(channels, self.lane)
        for kept in before:  # closed last: a new file has another descriptor, so another scan
            kept.file.close()


class _Kept:
    """An open file, what it held last, and for how many reads that has been so."""

    def __init__(self, file: OpenFile, attribute: AttributeFile) -> None:
        self.file = file
        self.quiet = 0
        self.gone = False
        self._answered = False
        self._attribute = attribute
        self._blank: Cells = (None,) * len(attribute.channels)
        self._last: bytes | None = None
        self.values: Cells = self._blank

    def scan(self) -> FileScan | None:
        """None where it has no plan, or was not read as one is made of."""
        if self._attribute.plan is None or self._last is None or self.values is self._blank:
            return None
        return FileScan(self._attribute.plan(self._last), self.file.fd, len(self._last))

    def renew(self) -> None:
        try:
            data = self.file.read()
        except OSError as error:
            # one that never answered is no device that went: learning again would not help
            self.gone = error.errno == errno.ENODEV and self._answered
            self.values, self._last, self.quiet = self._blank, None, 0
            return
        self._answered = True
        if data == self._last:
            self.quiet += 1
            return
        self._last, self.quiet = data, 0
        try:
            self.values = self._attribute.parse(data)
        except (ValueError, IndexError):
            self.values = self._blank


class SnapshotSource:
    """A source of the rare lane whose columns are whatever one look at the host gives.

    Nothing is kept open, so nothing has to be followed as it comes and goes.  Where ``absent``
    is ``None`` the source waits without columns until there are any.
    """

    lane = Lane.RARE

    def __init__(
        self,
        name: str,
        look: Callable[[], Mapping[Channel, int | None]],
        absent: Unsupported | None = None,
    ) -> None:
        self.name = name
        self.channels: tuple[Channel, ...] = ()
        self._look, self._absent = look, absent
        self._shown: tuple[Channel, ...] = ()

    def open(self) -> None:
        try:
            self._show(self._look())
        except OSError as error:
            raise Unsupported(f"{error.filename or self.name}: {error.strerror}") from None
        if not self.channels and self._absent is not None:
            raise self._absent

    def read(self) -> Cells:
        seen = self._look()
        if tuple(seen) != self._shown:
            self._show(seen)
            raise LayoutChanged(self.name)
        return list(seen.values())

    def close(self) -> None:
        self.channels = self._shown = ()

    def _show(self, seen: Mapping[Channel, int | None]) -> None:
        self._shown = tuple(seen)
        self.channels = in_lane(seen, self.lane)


def in_lane(channels: Iterable[Channel], lane: Lane) -> tuple[Channel, ...]:
    """The channels as a source of this lane gives them."""
    return tuple(each if each.lane is lane else replace(each, lane=lane) for each in channels)
