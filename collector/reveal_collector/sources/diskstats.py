"""Requests, sectors and times of each block device (kernel: iostats.rst, testing/sysfs-block).

``/proc/diskstats`` tells which disks there are; their numbers are read from the disk's own
``stat``, which holds the same.  Where a disk does nothing the scanner in C seldom looks at it:
the kernel adds up the counters of all CPUs for every device and partition it lists.

14 columns until 4.17, 18 with discards, 20 with flushes (5.5); ``stat`` lacks the first three.
Times are 32-bit milliseconds and wrap; ``busy_time`` saturates where requests are served in
parallel.  Partitions are left out.  Device-mapper, md and loop devices repeat the I/O of what
lies below them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from reveal_collector.kernel.errors import LayoutChanged
from reveal_collector.readers.joined import Joined
from reveal_collector.readers.plan import Gated
from reveal_collector.readers.source import CHECK_EVERY, Roots, Source
from reveal_collector.readers.textfile import (
    Layout,
    OpenFile,
    TokenSource,
    channel,
    is_number,
    rows,
)
from reveal_contract.channels import Channel
from reveal_contract.metric import Lane

_SECTOR, _MS = 512.0, 1e6
FIELDS: tuple[tuple[str, float], ...] = (
    ("reads", 1), ("read_merges", 1), ("read_bytes", _SECTOR), ("read_time", _MS),
    ("writes", 1), ("write_merges", 1), ("write_bytes", _SECTOR), ("write_time", _MS),
    ("in_flight", 1), ("busy_time", _MS), ("queue_time", _MS),
    ("discards", 1), ("discard_merges", 1), ("discard_bytes", _SECTOR), ("discard_time", _MS),
    ("flushes", 1), ("flush_time", _MS),
)  # fmt: skip
_FIRST = 3  # after major, minor and name
_LEAST = _FIRST + 11
# there by the dozen and mostly unused: channels only once they did I/O
_SPARE = re.compile(r"(loop|ram|zram|sr|fd|nbd)\d+\Z")
_READS = 10 * CHECK_EVERY  # at ten a second
_SURE = 12  # looks until sysfs, too, is asked: a disk may have been listed a moment before there
# what a partition is called, where sysfs cannot be asked
_PARTITION = re.compile(r"((sd|vd|hd|xvd)[a-z]+|(nvme\d+n|mmcblk|nbd|loop|md)\d+p)\d+\Z")


def sources(roots: Roots) -> list[Source]:
    return [Disks(roots.proc / "diskstats", roots.sys / "block")]


class Disks(Joined):
    """A file a disk; the list of all where sysfs lacks one (a recording, an old container).

    Whether others are there now is looked for every ``LOOK_EVERY`` seconds.
    """

    def __init__(self, listed: Path, block: Path) -> None:
        super().__init__("diskstats", Lane.FAST, self._files, f"{listed} lists no disk")
        self._list, self._block = OpenFile(listed), block
        self._disks: list[str] = []  # with a file of their own
        self._listed: list[tuple[str, bool]] = []  # as the list showed them when they were found
        self._asked = self._reads = self._looks = 0
        self._others = False

    def read(self) -> Sequence[int | None]:
        self._reads += 1
        if self._others or (self._reads % _READS == 0 and self._has_others()):
            before = self.channels
            self.open()
            if self.channels != before:
                raise LayoutChanged(self.name)
        return super().read()

    def stale(self) -> bool:
        self._asked += 1
        if self._asked % CHECK_EVERY == 0:
            self._others = self._has_others()
        return self._others

    def close(self) -> None:
        super().close()
        self._list.close()
        self._disks, self._others = [], False

    def _has_others(self) -> bool:
        if not self._disks:
            return False
        self._looks += 1
        text = self._list.read().decode("ascii", "replace")
        before, self._listed = self._listed, _listed(text)
        if self._listed == before and self._looks % _SURE:
            return False
        return disks(text, self._block) != self._disks

    def _files(self) -> list[Source]:
        self._list.open()
        text = self._list.read().decode("ascii", "replace")
        self._listed, shown = _listed(text), disks(text, self._block)
        files = {disk: self._block / disk.replace("/", "!") / "stat" for disk in shown}
        if not all(path.exists() for path in files.values()):
            return [TokenSource(self.name, self.lane, self._list.path, self._layout)]
        self._disks = shown
        return [self._file(disk, path) for disk, path in files.items()]

    def _file(self, disk: str, path: Path) -> Source:
        def learn(text: str) -> Layout:
            return _columns(disk, 0, text.split())

        made = TokenSource(self.name, self.lane, path, learn)
        return made.resting(Gated(f"disk {disk}", leads=True))

    def _layout(self, text: str) -> Layout:
        return layout(text, self._block)


def _columns(disk: str, first: int, numbers: Sequence[str]) -> list[tuple[int, Channel | None]]:
    return [
        (at, channel(f"storage.disk.{field}", disk, scale))
        for at, (field, scale) in enumerate(FIELDS[: len(numbers)], first)
    ]


def _listed(text: str) -> list[tuple[str, bool]]:
    """What decides which disks there are: names, and whether spare ones did something."""
    return [(tokens[2], not _is_unused(tokens)) for _, tokens in rows(text) if len(tokens) > _FIRST]


def disks(text: str, block: Path) -> list[str]:
    """The whole disks listed but spare ones that did nothing yet."""
    return [tokens[2] for _, tokens in _lines(text, block) if not _is_unused(tokens)]


def layout(text: str, block: Path) -> Layout:
    """The columns of each whole disk; of an unused spare device only what shows its first use."""
    columns: list[tuple[int, Channel | None]] = []
    for start, tokens in _lines(text, block):
        if _is_unused(tokens):
            columns += [(start + _FIRST, None), (start + _FIRST + 4, None)]  # reads, writes
        else:
            columns += _columns(tokens[2], start + _FIRST, tokens[_FIRST:])
    return columns


def _lines(text: str, block: Path) -> Iterator[tuple[int, list[str]]]:
    """The lines of whole disks: those sysfs lists; where it cannot be asked, by their names."""
    try:
        whole = {name.replace("!", "/") for name in os.listdir(block)}  # noqa: PTH208
    except OSError:
        whole = None
    for start, tokens in rows(text):
        if len(tokens) < _LEAST or not all(map(is_number, tokens[_FIRST:])):
            continue
        if tokens[2] in whole if whole is not None else not _PARTITION.match(tokens[2]):
            yield start, tokens


def _is_unused(tokens: Sequence[str]) -> bool:
    return bool(_SPARE.match(tokens[2])) and not "".join(tokens[_FIRST:]).strip("0")
