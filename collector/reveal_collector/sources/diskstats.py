"""Requests, sectors and times of each block device (kernel: iostats.rst, testing/sysfs-block).

``/proc/diskstats`` lists the disks.  Their numbers come from the ``stat`` file of each disk,
which holds the same numbers: for every device and partition in the list the kernel sums the
counters of all CPUs, and the scanner in C can skip the file of an idle disk.

A line has 14 columns until 4.17, 18 with discards, and 20 with flushes (5.5); ``stat`` does not
have the first three.  Times are in 32-bit milliseconds and wrap; ``busy_time`` saturates if
requests are served in parallel.  Partitions are left out.  Device-mapper, md and loop devices
repeat the I/O of the devices below them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from reveal_collector.kernel_interfaces.errors import LayoutChanged
from reveal_collector.readers.joined import Joined
from reveal_collector.readers.plan import Gated
from reveal_collector.readers.source import CHECK_EVERY, Roots, Source
from reveal_collector.readers.textfile import (
    UNFIT,
    Layout,
    LayoutList,
    OpenFile,
    TokenSource,
    channel,
    decoded,
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
_MIN_TOKENS = _FIRST + 11
# A host has dozens of these, mostly unused: they get channels with their first I/O.
_OPTIONAL = re.compile(r"(loop|ram|zram|sr|fd|nbd)\d+\Z")
_CHECK_READS = 10 * CHECK_EVERY  # at ten reads a second
_SYSFS_CHECKS = 12  # checks until sysfs is read as well: it may list a disk later than diskstats
# names of partitions, for hosts without a readable sysfs
_PARTITION = re.compile(r"((sd|vd|hd|xvd)[a-z]+|(nvme\d+n|mmcblk|nbd|loop|md)\d+p)\d+\Z")


def sources(roots: Roots) -> list[Source]:
    return [DiskStats(roots.proc / "diskstats", roots.sys / "block")]


class DiskStats(Joined):
    """One file per disk, or the list of all if sysfs is incomplete (a recording, an old container).

    Every ``CHECK_EVERY`` seconds it checks whether the disks changed.
    """

    def __init__(self, listed: Path, block: Path) -> None:
        super().__init__("diskstats", Lane.FAST, self._files, f"{listed} lists no disk")
        self._list, self._block = OpenFile(listed), block
        self._disks: list[str] = []  # with a file of their own
        self._listed: list[tuple[str, bool]] = []  # state of the list at the last check
        self._stale_calls = self._reads = self._checks = 0
        self._changed = False

    def read(self) -> Sequence[int | None]:
        self._reads += 1
        if self._changed or (self._reads % _CHECK_READS == 0 and self._disks_changed()):
            previous = self.channels
            self.open()
            if self.channels != previous:
                raise LayoutChanged(self.name)
        return super().read()

    def stale(self) -> bool:
        self._stale_calls += 1
        if self._stale_calls % CHECK_EVERY == 0:
            self._changed = self._disks_changed()
        return self._changed

    def close(self) -> None:
        super().close()
        self._list.close()
        self._disks, self._changed = [], False

    def _disks_changed(self) -> bool:
        if not self._disks:
            return False
        self._checks += 1
        text = decoded(self._list.read())
        previous, self._listed = self._listed, _listed(text)
        # sysfs is expensive to list: compare the list of diskstats first.
        if self._listed == previous and self._checks % _SYSFS_CHECKS:
            return False
        return disks(text, self._block) != self._disks

    def _files(self) -> list[Source]:
        self._list.open()
        text = decoded(self._list.read())
        self._listed, selected = _listed(text), disks(text, self._block)
        files = {disk: self._block / disk.replace("/", "!") / "stat" for disk in selected}
        if not all(path.exists() for path in files.values()):
            return [TokenSource(self.name, self.lane, self._list.path, self._layout)]
        self._disks = selected
        return [self._file(disk, path) for disk, path in files.items()]

    def _file(self, disk: str, path: Path) -> Source:
        def learn(text: str) -> Layout:
            return _columns(disk, 0, text.split())

        source = TokenSource(self.name, self.lane, path, learn)
        return source.resting(Gated(f"disk {disk}", leads=True))

    def _layout(self, text: str) -> Layout:
        return layout(text, self._block)


def _columns(disk: str, first: int, numbers: Sequence[str]) -> list[tuple[int, Channel | None]]:
    return [
        (position, channel(f"storage.disk.{field}", disk, scale))
        for position, (field, scale) in enumerate(FIELDS[: len(numbers)], first)
    ]


def _listed(text: str) -> list[tuple[str, bool]]:
    """Return what decides which disks are read: names, and whether optional ones were used."""
    return [(tokens[2], not _is_unused(tokens)) for _, tokens in rows(text) if len(tokens) > _FIRST]


def disks(text: str, block: Path) -> list[str]:
    """Return the whole disks in the list, without optional ones that did no I/O yet."""
    return [
        tokens[2] for _, tokens in _lines(text, block) if _fits(tokens) and not _is_unused(tokens)
    ]


def layout(text: str, block: Path) -> Layout:
    """Return the columns of each whole disk.

    Of an unused optional device only the numbers that show its first use are watched.
    """
    columns: LayoutList = []
    for start, tokens in _lines(text, block):
        if not _fits(tokens):
            columns.append((start + 2, UNFIT))
        elif _is_unused(tokens):
            columns += [(start + _FIRST, None), (start + _FIRST + 4, None)]  # reads, writes
        else:
            columns += _columns(tokens[2], start + _FIRST, tokens[_FIRST:])
    return columns


def _lines(text: str, block: Path) -> Iterator[tuple[int, list[str]]]:
    """Yield the lines of whole disks: those in sysfs, or by their names without sysfs."""
    try:
        names = os.listdir(os.fsencode(block))  # noqa: PTH208
        whole = {decoded(name).replace("!", "/") for name in names}
    except OSError:
        whole = None
    for start, tokens in rows(text):
        if len(tokens) < _FIRST:
            continue
        if tokens[2] in whole if whole is not None else not _PARTITION.match(tokens[2]):
            yield start, tokens


def _fits(tokens: Sequence[str]) -> bool:
    return len(tokens) >= _MIN_TOKENS and all(map(is_number, tokens[_FIRST:]))


def _is_unused(tokens: Sequence[str]) -> bool:
    return bool(_OPTIONAL.match(tokens[2])) and not "".join(tokens[_FIRST:]).strip("0")
