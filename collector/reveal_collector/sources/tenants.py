"""Which cgroups are subjects: found by a walk, kept up by inotify, in a thread of its own."""

from __future__ import annotations

import logging
import os
import select
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from reveal_collector.inotify import Inotify
from reveal_collector.sources.cgroups import MAX_DEPTH, UNIFIED, below, holds_processes

log = logging.getLogger(__name__)

# Units that only stand for a mount or hold nothing but PID 1: never a tenant.
_NO_TENANT = ("*.mount", "init.scope")
_OCCUPIED_DEPTH = 8  # containers nest: processes may be deeper than the subject they belong to
_EMPTY_GRACE = 30.0
_LINGER = 30.0
_RESCAN = 30.0
_RESCAN_BLIND = 5.0
_SETTLE, _APART = 0.05, 0.5
_STAY = 2.0


@dataclass(frozen=True)
class Choice:
    """What the settings say about subjects."""

    most: int = 64
    leave_out: tuple[str, ...] = ()

    def takes(self, instance: str) -> bool:
        return not instance.startswith(self.leave_out) if self.leave_out else True


@dataclass(frozen=True)
class Tenant:
    """A cgroup: its path below the root of every hierarchy, and which one of that name it is."""

    path: str  # "/system.slice/ssh.service"
    inode: int


@dataclass(frozen=True)
class Found:
    """One cgroup seen by a walk."""

    tenant: Tenant
    occupied: bool
    usage: int  # CPU time in the unit of its hierarchy, to rank by


def walk(trees: Mapping[str, Path]) -> dict[str, Found]:
    """Every cgroup down to ``MAX_DEPTH`` by its path; occupied where it or one below it is."""
    found: dict[str, Found] = {}
    for hierarchy, tree in trees.items():
        for cgroup in below(tree, _OCCUPIED_DEPTH):
            path = f"/{cgroup.relative_to(tree)}"
            before = found.get(path)
            occupied = (before is not None and before.occupied) or holds_processes(cgroup)
            usage = before.usage if before and before.usage else _usage(hierarchy, cgroup)
            tenant = before.tenant if before else Tenant(path, _inode(cgroup))
            found[path] = Found(tenant, occupied, usage)
    for path in sorted(found, reverse=True):  # children before their parents
        parent = path.rpartition("/")[0]
        if found[path].occupied and parent in found and not found[parent].occupied:
            above = found[parent]
            found[parent] = Found(above.tenant, True, above.usage)
    return {path: one for path, one in found.items() if path.count("/") <= MAX_DEPTH}


def _usage(hierarchy: str, cgroup: Path) -> int:
    names = {"cpuacct": "cpuacct.usage", UNIFIED: "cpu.stat"}
    try:
        tokens = (cgroup / names[hierarchy]).read_bytes().split()
        return int(tokens[-1] if len(tokens) == 1 else tokens[1])
    except (KeyError, OSError, ValueError, IndexError):
        return 0


def _inode(cgroup: Path) -> int:
    try:
        return cgroup.stat().st_ino
    except OSError:
        return 0


def is_tenant(path: str, choice: Choice) -> bool:
    name = path.rpartition("/")[2]
    return choice.takes(path) and not any(fnmatchcase(name, odd) for odd in _NO_TENANT)


def chosen(
    candidates: Mapping[str, Found], busy: Mapping[str, float], kept: set[str], most: int
) -> list[Tenant]:
    """Up to ``most`` by recent CPU use; one that is in already stays unless clearly outdone."""

    def rank(path: str) -> tuple[float, str]:
        return (-busy.get(path, 0.0) * (_STAY if path in kept else 1.0), path)

    best = sorted(candidates, key=rank)[:most]
    return [candidates[path].tenant for path in sorted(best)]


class Tenants:
    """The subjects of this host, renewed in the background.

    ``current`` is replaced as a whole, and only when a subject comes or one must make room:
    a subject that is gone lingers, as every change costs a new channel table.
    """

    def __init__(self, trees: Mapping[str, Path], choice: Choice) -> None:
        self.current: tuple[Tenant, ...] = ()
        # Cgroups whose CPU clock moved, noted by the fast source for the slow one.
        self.moved: set[Tenant] = set()
        self._trees, self._choice = trees, choice
        self._usage: dict[str, tuple[float, int]] = {}
        self._busy: dict[str, float] = {}
        self._seen: dict[str, float] = {}
        self._first: dict[Tenant, float] = {}
        self._users = 0
        self._wake = -1
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """For each source that uses it; the first one starts the thread."""
        self._users += 1
        if self._users == 1:
            self.look(time.monotonic())
            self._stopping.clear()
            self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
            self._thread = threading.Thread(target=self._watch, name="reveal-cgroups", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        self._users = max(0, self._users - 1)
        if self._users == 0 and self._thread is not None:
            self._stopping.set()
            os.eventfd_write(self._wake, 1)
            self._thread.join(1.0)
            os.close(self._wake)
            self._thread = None

    def look(self, now: float) -> None:
        """Walk the trees and renew ``current``."""
        found = {path: one for path, one in walk(self._trees).items() if self._counts(one, now)}
        self._rate(found, now)
        for path in found:
            self._seen[path] = now
        kept = {tenant.path for tenant in self.current}
        tenants = chosen(found, self._busy, kept, self._choice.most)
        new = set(tenants) - set(self.current)
        stale = [
            tenant for tenant in self.current
            if now - self._seen.get(tenant.path, now) > _LINGER
        ]  # fmt: skip
        if new or stale:
            self.current = tuple(tenants)

    def _counts(self, one: Found, now: float) -> bool:
        """Processes move into a new cgroup after it was made: an empty one is given time."""
        first = self._first.setdefault(one.tenant, now)
        return is_tenant(one.tenant.path, self._choice) and (
            one.occupied or now - first < _EMPTY_GRACE
        )

    def _rate(self, found: Mapping[str, Found], now: float) -> None:
        busy = {}
        for path, one in found.items():
            then, before = self._usage.get(path, (now, one.usage))
            busy[path] = (one.usage - before) / max(now - then, 0.1)
            if not self._usage:  # nothing to compare with yet: what it used in its life
                busy[path] = float(one.usage)
        self._busy = busy
        self._usage = {path: (now, one.usage) for path, one in found.items()}
        alive = {one.tenant for one in found.values()}
        self._first = {t: at for t, at in self._first.items() if t in alive or now - at < _RESCAN}

    def _watch(self) -> None:
        try:
            inotify = Inotify()
        except OSError as error:
            log.info("no inotify (%s): cgroups are looked for every %g s", error, _RESCAN_BLIND)
            while not self._stopping.wait(_RESCAN_BLIND):
                self._look_safely()
            return
        with inotify:
            self._follow(inotify)

    def _follow(self, inotify: Inotify) -> None:
        while not self._stopping.is_set():
            rescan = _RESCAN if self._watch_all(inotify) else _RESCAN_BLIND
            self._look_safely()
            looked = time.monotonic()
            ready, _, _ = select.select([inotify.fileno(), self._wake], [], [], rescan)
            if inotify.fileno() in ready:
                # a unit makes its cgroup in each hierarchy, and some hosts make many a second
                self._stopping.wait(max(_SETTLE, looked + _APART - time.monotonic()))
                inotify.drain()

    def _watch_all(self, inotify: Inotify) -> bool:
        """Watch every folder, those too that are made meanwhile; false where one is refused."""
        before: set[Path] = set()
        refused = 0
        while new := set(self._folders()) - before:
            refused += sum(not inotify.watch(folder) for folder in new)
            before |= new
        return refused == 0

    def _look_safely(self) -> None:
        try:
            self.look(time.monotonic())
        except OSError as error:
            log.warning("cgroups cannot be looked through: %s", error)

    def _folders(self) -> Iterator[Path]:
        for tree in self._trees.values():
            yield tree
            yield from below(tree, MAX_DEPTH - 1)
