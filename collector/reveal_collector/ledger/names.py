"""Who the keys of threads are: cgroups of the tracker, process groups, sessions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from pathlib import Path

from reveal_collector.ledger.programs import KEY_BLKIO, KEY_GROUP, KEY_SESSION, Hierarchy
from reveal_collector.subjects.cgroup_files import UNIFIED
from reveal_collector.subjects.processes import NotAProcess, parse_stat
from reveal_collector.subjects.tracker import CgroupSubject
from reveal_contract.time_units import NS_PER_SECOND

NAMED_SHARE = 0.01  # of a CPU: whoever uses as much gets a name
_NUMBER = (1 << 32) - 1
_KEPT_PASSES = 30  # without threads
_MAX_GROUPS = 160
_YOUNG_PASSES = 3

GroupName = Callable[[int], str | None]


def hierarchy_of(trees: Mapping[str, Path]) -> tuple[Hierarchy, Path | None]:
    """Return the hierarchy whose cgroups have the CPU time, and where it is mounted."""
    for name, hierarchy in (("cpuacct", Hierarchy.CPUACCT), ("cpu", Hierarchy.CPU)):
        if name in trees:
            return hierarchy, trees[name]
    return Hierarchy.UNIFIED, trees.get(UNIFIED)


class CgroupKeys:
    """Keys of cgroups: their ids, which are their inodes (kernfs).

    ``requests`` is the root of the hierarchy that requests to disks belong to.
    """

    def __init__(self, trees: Mapping[str, Path], requests: Path | None) -> None:
        self._requests = requests
        self.hierarchy, self.tree = hierarchy_of(trees)
        self._known: dict[CgroupSubject, frozenset[int]] = {}

    @property
    def root(self) -> int:
        """The id of the root of the hierarchy; 0 without one."""
        return _inode(self.tree) if self.tree is not None else 0

    def of(self, subjects: Iterable[CgroupSubject]) -> dict[str, frozenset[int]]:
        """Return the keys of each subject by its instance; those that have ended have none."""
        self._known = {
            subject: self._known.get(subject) or frozenset(self._find(subject))
            for subject in subjects
        }
        return {subject.instance: keys for subject, keys in self._known.items() if keys}

    def _find(self, subject: CgroupSubject) -> Iterator[int]:
        if self.tree is not None and (inode := _inode(self.tree / subject.path[1:])):
            yield inode
        # in version 2, requests to disks belong to the same cgroup
        requests = self._requests if self.hierarchy is not Hierarchy.UNIFIED else None
        if requests is not None and (inode := _inode(requests / subject.path[1:])):
            yield KEY_BLKIO | inode


def _inode(folder: Path) -> int:
    try:
        return folder.stat().st_ino
    except OSError:
        return 0


class GroupKeys:
    """Process groups and sessions that got a name because they use CPU time.

    Threads of a session whose process groups are too small, or too short-lived, to be named count
    for the session.
    """

    def __init__(self, name_of: Callable[[int], str]) -> None:
        self._name_of = name_of  # of a key; "" if it has ended
        self._names: dict[int, str] = {}
        self._ages: dict[int, int] = {}  # passes, by key
        self._empty: dict[str, int] = {}  # passes without threads, by name
        self._busy_sessions: frozenset[int] = frozenset()

    def update(
        self, unnamed: Mapping[int, int], elapsed_ns: int, occupied: Set[str]
    ) -> dict[str, frozenset[int]]:
        """Return the keys by name after a pass.

        ``unnamed`` is the CPU time of keys without a slot in this pass, ``occupied`` are the names
        that have threads.
        """
        self._forget_empty(occupied)
        self._rename_young()
        least = NAMED_SHARE * max(elapsed_ns, NS_PER_SECOND // 2)
        busy = {key for key, used in unnamed.items() if used >= least and key >= KEY_GROUP}
        sessions = frozenset(key for key in busy if key >= KEY_SESSION)
        for key in sorted(busy - sessions, key=lambda key: -unnamed[key]):
            self._add(key)
        # A second later, what is left of a session's time are groups that got no name.
        for key in sessions & self._busy_sessions:
            self._add(key)
        self._busy_sessions = sessions
        return {name: frozenset({key}) for key, name in self._names.items()}

    def _rename_young(self) -> None:
        """Give young groups their present names: their leaders may have called exec since."""
        for key, age in self._ages.items():
            if age < _YOUNG_PASSES:
                self._names[key] = self._name_of(key) or self._names[key]
        self._ages = {key: age + 1 for key, age in self._ages.items()}

    def _add(self, key: int) -> None:
        if key not in self._names and len(self._names) < _MAX_GROUPS:
            self._names[key] = self._name_of(key) or _unknown(key)
            self._ages[key] = 0

    def _forget_empty(self, occupied: Set[str]) -> None:
        self._empty = {
            name: 0 if name in occupied else self._empty.get(name, 0) + 1
            for name in self._names.values()
        }
        self._names = {
            key: name for key, name in self._names.items() if self._empty[name] < _KEPT_PASSES
        }
        self._ages = {key: age for key, age in self._ages.items() if key in self._names}


def _unknown(key: int) -> str:
    """Return the name of a group or session whose leader has ended."""
    kind = "session" if key >= KEY_SESSION else "pgrp"
    return f"{kind}:?[{key & _NUMBER}]"


class ProcessNames:
    """Names of process groups and sessions, as the source of process groups gives them."""

    def __init__(self, proc: Path, group_name: GroupName) -> None:
        self._proc, self._group_name = proc, group_name

    def __call__(self, key: int) -> str:
        """Return the name of a key; "" if the leader has ended and nobody knows it."""
        number = key & _NUMBER
        known = self._group_name(number) if key < KEY_SESSION else None
        if known is not None:
            return known
        command = self._command(number)
        kind = "session" if key >= KEY_SESSION else "pgrp"
        return f"{kind}:{command}[{number}]" if command else ""

    def _command(self, pid: int) -> str:
        try:
            return parse_stat(pid, (self._proc / str(pid) / "stat").read_bytes(), 1).name
        except (OSError, ValueError, NotAProcess):
            return ""
