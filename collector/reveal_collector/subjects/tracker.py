"""Which cgroups are subjects: found by a walk, kept up by inotify, in a thread of its own.

A subject is a pod, a job, a container or a unit; elsewhere the cgroup that holds processes.
What lies deeper belongs to it, so a process is counted with one subject; where one subject
lies in another all the same, the identity names the ``parent``.
"""

from __future__ import annotations

import logging
import os
import select
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from reveal_collector.kernel.inotify import Inotify
from reveal_collector.subjects.cgroup_walk import Found, controllers, usage, walk
from reveal_collector.subjects.cgroup_watch import Watches
from reveal_collector.subjects.pods.names import identity, owners, told_apart, with_parents
from reveal_collector.subjects.pods.paths import Place, of_process
from reveal_collector.subjects.pods.podlist import NoPods, PodSource
from reveal_contract.subjects import Identity, SubjectKind

log = logging.getLogger(__name__)

_EMPTY_GRACE = 30.0
_LINGER = 30.0
_DYING = 3.0  # seconds in which what a subject used last still goes out
_NEW = 3.0  # seconds in which all that a new one ever used is news
_REMEMBERED_NS = 120_000_000_000
_RESCAN = 30.0
_RESCAN_BLIND = 5.0
_SETTLE, _APART = 0.05, 0.5
_SHARE = 20  # a walk may take one part in this many of the time
_STAY = 2.0


@dataclass(frozen=True)
class Choice:
    """What the settings say about subjects."""

    most: int = 64
    leave_out: tuple[str, ...] = ()
    containers: bool = False  # several containers of a pod as subjects of their own

    def takes(self, instance: str) -> bool:
        return not instance.startswith(self.leave_out) if self.leave_out else True


@dataclass(frozen=True)
class Parts:
    """What a cgroup has files of: its place in each hierarchy, and the controllers of version 2.

    Both come one after the other: a unit is made hierarchy by hierarchy, and a controller is
    turned on for all cgroups of a folder once one of them needs it, and off with the last one.
    """

    inodes: tuple[int, ...] = ()
    controllers: bytes = b""

    def are_of(self, found: Found) -> bool:
        """Whether this is the same cgroup, not a later one of that name."""
        return not set(self.inodes).isdisjoint(found.inodes)

    def now(self, found: Found, controllers: bytes | None) -> Parts:
        """Those it has now; one that is removed hierarchy by hierarchy keeps what it had."""
        grown = not set(self.inodes).issuperset(found.inodes)
        return Parts(
            tuple(found.inodes) if grown else self.inodes,
            self.controllers if controllers is None else controllers,
        )


@dataclass(frozen=True)
class Subject:
    """A cgroup: its path below the root of every hierarchy, and which one of that name it is.

    ``instance`` is what its channels carry; ``newborn``: made just now, so its counters began
    at 0.  With other ``parts`` it is another one: its files are others.
    """

    path: str  # "/system.slice/ssh.service"
    inode: int
    instance: str
    newborn: bool = field(default=False, compare=False)
    kind: SubjectKind = field(default=SubjectKind.CGROUP, compare=False)
    parts: Parts = Parts()


@dataclass(frozen=True)
class Candidate:
    """A subject seen by a walk."""

    subject: Subject
    identity: Identity
    usage: int = 0  # CPU time in the unit of its hierarchy, to rank by


def chosen(
    candidates: Mapping[str, Candidate], busy: Mapping[str, float], kept: set[str], most: int
) -> list[Candidate]:
    """Up to ``most`` by recent CPU use; one that is in already stays unless clearly outdone."""

    def rank(path: str) -> tuple[float, str]:
        return (-busy.get(path, 0.0) * (_STAY if path in kept else 1.0), path)

    best = sorted(candidates, key=rank)[:most]
    return [candidates[path] for path in sorted(best)]


class SubjectTracker:
    """The subjects of this host, renewed in the background.

    ``current`` is replaced as a whole, and only when a subject comes or one must make room:
    a subject that is gone lingers, as every change costs a new channel table.  ``identities``
    says who they are, and who those were that are gone since a little while.
    """

    def __init__(
        self, trees: Mapping[str, Path], choice: Choice, pods: PodSource | None = None
    ) -> None:
        self.current: tuple[Subject, ...] = ()
        self.on_change: Callable[[], None] | None = None  # told when ``current`` is another
        self.identities: tuple[Identity, ...] = ()
        self.pods: PodSource = pods or NoPods()
        # CPU clock in ns by subject, noted by the fast source: who moved is worth a look
        self.clocks: dict[Subject, int] = {}
        self.trees, self.choice = trees, choice
        self._usage: dict[str, tuple[float, int]] = {}
        self._busy: dict[str, float] = {}
        self._seen: dict[Subject, float] = {}
        self._first: dict[tuple[str, int], float] = {}
        self._newborn: set[tuple[str, int]] = set()
        self._looked = False
        self._users = 0
        self._wake = -1
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """For each source that uses it; the first one starts the thread."""
        self._users += 1
        if self._users == 1:
            self._stopping.clear()
            self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
            self.pods.start(self._poke)
            self.look(time.monotonic())
            self._thread = threading.Thread(target=self._watch, name="reveal-cgroups", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        self._users = max(0, self._users - 1)
        if self._users == 0 and self._thread is not None:
            self.pods.stop()
            self._stopping.set()
            self._poke()
            self._thread.join(1.0)
            wake, self._wake = self._wake, -1
            os.close(wake)
            self._thread = None

    def subject_of(self, pid: int, proc: Path) -> str | None:
        """The subject a process belongs to; ``None`` for one in no cgroup of a subject's.

        Raises ``OSError`` where the process is gone.
        """
        text = (proc / str(pid) / "cgroup").read_text("utf-8", "replace")
        index = self.pods.index
        held = {subject.path: subject.instance for subject in self.current}
        for path in of_process(text):
            for place in reversed(owners(path, index, self.choice.containers)):
                return held.get(place.root) or identity(place, index, 0).instance
        return None

    def look(self, now: float, found: Mapping[str, Found] | None = None) -> None:
        """Walk the trees, unless told what was ``found``; renew ``current`` and ``identities``."""
        found = walk(self.trees) if found is None else found
        self._age(found, now)
        candidates = self._candidates(found, now)
        self._rate(candidates, now)
        kept = {subject.path for subject in self.current}
        best = chosen(candidates, self._busy, kept, self.choice.most)
        subjects = [one.subject for one in best]
        self._seen.update(dict.fromkeys(subjects, now))
        new = set(subjects) - set(self.current)
        gone = {t: now - self._seen.get(t, now) for t in self.current if t not in subjects}
        if new or any(since > _LINGER for since in gone.values()):
            instances = {subject.instance for subject in subjects}
            dying = [t for t, since in gone.items()
                     if since < _DYING and t.instance not in instances]  # fmt: skip
            self.current = (*subjects, *dying)
            if self.on_change is not None:
                self.on_change()
            self._seen = {t: self._seen[t] for t in self.current if t in self._seen}
        self.identities = renewed(self.identities, [one.identity for one in best], time.time_ns())

    def _age(self, found: Mapping[str, Found], now: float) -> None:
        """When each cgroup was first seen; those made since the last look began at 0."""
        first = {(path, one.inode) for path, one in found.items()}
        if self._looked:
            self._newborn = (self._newborn | (first - self._first.keys())) & first
        self._first = {key: self._first.get(key, now) for key in first}
        self._looked = True

    def _candidates(self, found: Mapping[str, Found], now: float) -> dict[str, Candidate]:
        """The subjects by cgroup.

        Processes move into a new cgroup after it was made: an empty one is given time.
        """
        index = self.pods.index
        named: dict[str, tuple[Identity, Place]] = {}
        for path, one in found.items():
            fresh = one.leaf and now - self._first[path, one.inode] < _EMPTY_GRACE
            if not one.holds and not fresh:
                continue
            for place in owners(path, index, self.choice.containers):
                root = found.get(place.root)
                if root is not None and place.root not in named:
                    named[place.root] = identity(place, index, root.inode), place
        named = {path: pair for path, pair in named.items() if self._takes(path, pair[0])}
        held = {subject.path: subject for subject in self.current
                if subject.path in named and subject.parts.are_of(found[subject.path])}  # fmt: skip
        told = told_apart(named, {path: subject.instance for path, subject in held.items()})
        return {
            path: Candidate(self._subject(who, found[path], held.get(path), now), who,
                            usage(self.trees, path))
            for who in with_parents(told)
            for path in (who.cgroup,)
        }  # fmt: skip

    def _takes(self, path: str, who: Identity) -> bool:
        return self.choice.takes(path) and self.choice.takes(who.instance)

    def _subject(self, who: Identity, found: Found, held: Subject | None, now: float) -> Subject:
        key = path, inode = who.cgroup, found.inode
        newborn = key in self._newborn and now - self._first[key] < _NEW
        here = controllers(self.trees, path)
        if held is None:
            parts = Parts().now(found, here)
        else:
            inode, parts = held.inode, held.parts.now(found, here)
            newborn = newborn and parts == held.parts  # what it used by then has been shown
        return Subject(path, inode, who.instance, newborn, who.kind, parts)

    def _rate(self, candidates: Mapping[str, Candidate], now: float) -> None:
        busy = {}
        for path, one in candidates.items():
            then, before = self._usage.get(path, (now, one.usage))
            busy[path] = (one.usage - before) / max(now - then, 0.1)
            if not self._usage:  # nothing to compare with yet: what it used in its life
                busy[path] = float(one.usage)
        self._busy = busy
        self._usage = {path: (now, one.usage) for path, one in candidates.items()}

    def _poke(self) -> None:
        """Have the thread look now; from any thread."""
        if self._wake >= 0:
            os.eventfd_write(self._wake, 1)

    def _watch(self) -> None:
        try:
            inotify = Inotify()
        except OSError as error:
            log.info("no inotify (%s): cgroups are looked for every %g s", error, _RESCAN_BLIND)
            while not self._stopping.wait(_RESCAN_BLIND):
                self._look_safely(lambda: walk(self.trees))
            return
        with inotify:
            self._follow(inotify)

    def _follow(self, inotify: Inotify) -> None:
        watches = Watches(inotify, self.trees)
        while not self._stopping.is_set():
            began = time.monotonic()
            self._look_safely(watches.walk)
            looked = time.monotonic()
            ready = self._event(inotify, _RESCAN if watches.complete else _RESCAN_BLIND)
            if self._wake in ready:
                os.eventfd_read(self._wake)
            if ready:
                # a unit makes its cgroup in each hierarchy, and some hosts make many a second
                apart = max(_APART, _SHARE * (looked - began))
                self._stopping.wait(max(_SETTLE, looked + apart - time.monotonic()))
                inotify.drain()

    def _event(self, inotify: Inotify, seconds: float) -> list[int]:
        """Which descriptors have something; by poll, as a large host's are over 1024."""
        waiting = select.poll()
        for file in (inotify.fileno(), self._wake):
            waiting.register(file, select.POLLIN)
        return [file for file, _ in waiting.poll(seconds * 1000)]

    def _look_safely(self, find: Callable[[], Mapping[str, Found]]) -> None:
        try:
            self.look(time.monotonic(), find())
        except OSError as error:
            log.warning("cgroups cannot be looked through: %s", error)


def renewed(
    before: tuple[Identity, ...], alive: list[Identity], now_ns: int
) -> tuple[Identity, ...]:
    """The subject table: those alive, then those that ended a little while ago.

    The same object as ``before`` where nothing changed, so that it is announced once.
    """
    known = {(one.instance, one.uid): one for one in before}
    here = [
        replace(one, since_ns=old.since_ns if (old := known.get((one.instance, one.uid)))
                else now_ns if before else 0)
        for one in alive
    ]  # fmt: skip
    keys = {(one.instance, one.uid) for one in here}
    cgroups = {(one.cgroup, one.uid) for one in here}
    past = [
        one if one.until_ns else replace(one, until_ns=now_ns)
        for key, one in known.items()
        if key not in keys and (one.cgroup, one.uid) not in cgroups
        if not one.until_ns or now_ns - one.until_ns < _REMEMBERED_NS
    ]
    made = (*here, *past)
    return before if made == before else made
