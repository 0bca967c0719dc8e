"""Walk through the cgroup trees: which cgroups exist and which hold processes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from reveal_collector.subjects.cgroup_files import UNIFIED
from reveal_collector.subjects.cgroup_paths import SubjectPath, workload_paths
from reveal_contract.subjects import SubjectKind

# Pods of a cluster that runs in containers lie 7 levels deep, cgroups of their containers deeper.
MAX_DEPTH = 10
_WATCH_DEPTH = 3


@dataclass(slots=True)
class FoundCgroup:
    """One cgroup: its inode in each hierarchy that has it, and whether it holds processes."""

    inodes: list[int]
    has_processes: bool = False
    is_leaf: bool = True  # has no child cgroup

    @property
    def inode(self) -> int:
        """The inode in the first hierarchy; it distinguishes cgroups of the same path."""
        return self.inodes[0]


def walk(trees: Mapping[str, Path]) -> dict[str, FoundCgroup]:
    """Return every cgroup by its path below the root of the hierarchies that have it."""
    found: dict[str, FoundCgroup] = {}
    for tree in map(str, trees.values()):
        for path, inode in _descendants(tree, "", MAX_DEPTH):
            cgroup = found.get(path)
            if cgroup is not None:
                cgroup.inodes.append(inode)
            else:
                cgroup = found[path] = FoundCgroup([inode])
                above = found.get(path.rpartition("/")[0])
                if above is not None:
                    above.is_leaf = False
            cgroup.has_processes = cgroup.has_processes or _holds_processes(tree + path)
    return found


def subtree(tree: Path, path: str) -> Iterator[Path]:
    """Yield the cgroup of a subject in one hierarchy, then every cgroup below it."""
    top = tree / path[1:]
    yield top
    for below, _ in _descendants(str(top), "", MAX_DEPTH):
        yield top / below[1:]


def pids_below(tree: Path, path: str) -> set[int]:
    """Return the processes of a subject's cgroup and of all cgroups below it."""
    return set[int]().union(*map(pids_in, subtree(tree, path)))


def pids_in(cgroup: Path) -> set[int]:
    """Return the processes of a cgroup itself; none where they cannot be listed."""
    try:
        found = set(map(int, (cgroup / "cgroup.procs").read_bytes().split()))
    except (OSError, ValueError):
        return set()
    return found - {0}  # 0: a process outside of this PID namespace


def cpu_usage(trees: Mapping[str, Path], path: str) -> int:
    """Return the CPU time of a cgroup in ns; 0 if unknown."""
    for hierarchy, name, token, unit_ns in (
        ("cpuacct", "cpuacct.usage", 0, 1),
        (UNIFIED, "cpu.stat", 1, 1000),
    ):
        if hierarchy not in trees:
            continue
        try:
            text = (trees[hierarchy] / path[1:] / name).read_bytes()
            return int(text.split()[token]) * unit_ns
        except (OSError, ValueError, IndexError):
            continue
    return 0


def enabled_controllers(trees: Mapping[str, Path], path: str) -> bytes | None:
    """Return the version 2 controllers that a cgroup has files of; ``None`` if unreadable."""
    if UNIFIED not in trees:
        return None
    try:
        return (trees[UNIFIED] / path[1:] / "cgroup.controllers").read_bytes()
    except OSError:
        return None


def should_watch(path: str) -> bool:
    """Return whether subjects can appear directly below: upper cgroups and ancestors of pods."""
    return path.count("/") <= _WATCH_DEPTH or _leads_to_pods(path)


def _leads_to_pods(path: str) -> bool:
    """Return whether a path lies between the cgroup of all pods and the containers of a pod."""
    if "kubepods" not in path:
        return False
    last: SubjectPath | None = next(reversed(workload_paths(path)), None)
    # Inside a pod only the pod's own cgroup counts: containers appear directly below it.
    return last is None or last.kind is not SubjectKind.POD or last.root == path


def _descendants(tree: str, path: str, depth: int) -> Iterator[tuple[str, int]]:
    """Yield path and inode of every cgroup below one, parents first; skip what vanishes."""
    if depth == 0:
        return
    try:
        with os.scandir(tree + path) as entries:
            children = sorted(
                (entry.name, entry.inode())
                for entry in entries
                if entry.is_dir(follow_symlinks=False)
            )
    except OSError:
        return
    for name, inode in children:
        child = f"{path}/{name}"
        yield child, inode
        yield from _descendants(tree, child, depth - 1)


def _holds_processes(folder: str) -> bool:
    """Return whether a cgroup holds a process."""
    try:
        with open(f"{folder}/cgroup.procs", "rb", buffering=0) as file:
            return bool(file.read(1))
    except FileNotFoundError:
        return False
    except OSError:  # EOPNOTSUPP: the processes of a threaded cgroup cannot be listed
        return os.path.isdir(folder)  # noqa: PTH112
