"""A host's file systems under a folder, with files that move as time is made to pass.

A piece writes fixed text, or a function of the ``Moment`` for what the kernel counts::

    tree = Tree(tmp_path)
    tree.write("sys/class/net/eth0/mtu", 1500)
    tree.write("sys/class/net/eth0/statistics/rx_bytes", rising(5e6, start=2**32 - 1, bits=32))
    tree.advance(1.0, load=2.0)
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from reveal_collector.readers.source import Roots

Content = str | bytes | int


@dataclass(frozen=True)
class Moment:
    """How far a tree has come: ``time`` since it was made and ``work`` done, in ms.

    ``work`` is time times load.  Integers, so that every machine computes the same.
    """

    time: int = 0
    work: int = 0

    def count(self, rate: float, start: int = 0, bits: int = 64) -> int:
        """A counter that rises by ``rate`` a second of work and wraps at ``bits``."""
        return (start + int(rate * self.work) // 1000) % (1 << bits)

    def level(self, middle: int, swing: int = 0, period: int = 4000) -> int:
        """A level that goes up and down evenly by ``swing`` around ``middle``."""
        phase = self.time % period * 4
        if phase > 2 * period:
            phase = 4 * period - phase
        return middle + swing * (phase - period) // period


Moving = Callable[[Moment], Content]


def rising(rate: float, start: int = 0, bits: int = 64, reset_after: int | None = None) -> Moving:
    """A file that holds one counter; after ``reset_after`` ms it starts again at 0."""

    def content(now: Moment) -> str:
        if reset_after is not None and now.time >= reset_after:
            return f"{Moment(now.time, max(0, now.work - reset_after)).count(rate)}\n"
        return f"{now.count(rate, start, bits)}\n"

    return content


def swinging(middle: int, swing: int, period: int = 4000) -> Moving:
    """A file that holds one level."""
    return lambda now: f"{now.level(middle, swing, period)}\n"


@dataclass
class _Mover:
    content: Moving
    period: int
    due: int = 0


class Tree:
    """Files of a host below ``root``: ``proc/...``, ``sys/...``, ``cgroup/...``.

    A file is rewritten in place: a descriptor kept open sees the new text, as with the kernel's
    own.  An ``int`` is written as a line of its own.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.now = Moment()
        self._movers: dict[str, _Mover] = {}
        self._folders: set[str] = set()
        for name in ("proc", "sys", "cgroup"):
            (root / name).mkdir(parents=True, exist_ok=True)

    @property
    def roots(self) -> Roots:
        return Roots(self.root / "proc", self.root / "sys", self.root / "cgroup")

    def flags(self, node: str) -> list[str]:
        """The flags with which a command reads this host under a name."""
        return [
            "--proc-root", str(self.roots.proc), "--sys-root", str(self.roots.sys),
            "--cgroup-root", str(self.roots.cgroup), "--node", node,
        ]  # fmt: skip

    def write(self, path: str, content: Content | Moving, period: float = 0.0) -> None:
        """``content`` now and, where it is a function, again every ``period`` s of ``advance``."""
        self._movers.pop(path, None)
        if callable(content):
            self._movers[path] = _Mover(content, round(period * 1000))
            content = content(self.now)
        self._put(path, content)

    def link(self, path: str, target: str) -> None:
        """A symbolic link, as sysfs has from its classes to its devices."""
        folder = self._prepare(path)
        folder.unlink(missing_ok=True)
        folder.symlink_to(target)

    def folder(self, path: str) -> None:
        """A directory that may stay empty."""
        (self.root / path).mkdir(parents=True, exist_ok=True)

    def remove(self, path: str) -> None:
        """A file, a link, or a directory with all below it: unplugged, unloaded, ended."""
        folder = self.root / path
        self._folders.clear()
        for moving in [
            file for file in self._movers if file == path or file.startswith(f"{path}/")
        ]:
            del self._movers[moving]
        if folder.is_dir() and not folder.is_symlink():
            shutil.rmtree(folder)
        else:
            folder.unlink()

    def text(self, path: str) -> str:
        return (self.root / path).read_text()

    def advance(self, seconds: float, load: float = 1.0) -> None:
        """Let time pass: every file that moves shows what it counts by then."""
        passed = round(seconds * 1000)
        self.now = Moment(self.now.time + passed, self.now.work + round(passed * load))
        for path, mover in list(self._movers.items()):
            if self.now.time >= mover.due:
                mover.due = self.now.time + mover.period
                self._put(path, mover.content(self.now))

    def pace(self, below: str, period: float) -> None:
        """Let what moves below a folder move once in ``period`` s only: thousands of files do."""
        for path, mover in self._movers.items():
            if path.startswith(f"{below}/"):
                mover.period = round(period * 1000)

    def _put(self, path: str, content: Content) -> None:
        if isinstance(content, int):
            content = f"{content}\n"
        data = content.encode() if isinstance(content, str) else content
        # not O_TRUNC: ext4 would bring a file cut to nothing to the disk as soon as it is closed
        file = os.open(self._prepare(path), os.O_WRONLY | os.O_CREAT, 0o644)
        try:
            os.write(file, data)
            os.ftruncate(file, len(data))
        finally:
            os.close(file)

    def _prepare(self, path: str) -> Path:
        folder = path.rpartition("/")[0]
        if folder not in self._folders:
            (self.root / folder).mkdir(parents=True, exist_ok=True)
            self._folders.add(folder)
        return self.root / path
