"""A walk through the cgroup trees: which cgroups there are and which hold processes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from reveal_collector.subjects.cgroup_files import UNIFIED
from reveal_collector.subjects.pods.paths import Place, places
from reveal_contract.subjects import SubjectKind

# Pods of a cluster in containers lie seven deep, their containers' own cgroups deeper still.
WALK_DEPTH = 10
_WATCH_DEPTH = 3


@dataclass(slots=True)
class Found:
    """One cgroup: its inode in each hierarchy that has it, whether it holds processes itself."""

    inodes: list[int]
    holds: bool = False
    leaf: bool = True  # nothing is below it

    @property
    def inode(self) -> int:
        """Which one of that name it is."""
        return self.inodes[0]


def walk(trees: Mapping[str, Path]) -> dict[str, Found]:
    """Every cgroup by its path below the root of whichever hierarchies have it."""
    found: dict[str, Found] = {}
    for tree in map(str, trees.values()):
        for path, inode in _below(tree, "", WALK_DEPTH):
            one = found.get(path)
            if one is not None:
                one.inodes.append(inode)
            else:
                one = found[path] = Found([inode])
                above = found.get(path.rpartition("/")[0])
                if above is not None:
                    above.leaf = False
            one.holds = one.holds or _holds_processes(tree + path)
    return found


def within(tree: Path, path: str) -> Iterator[Path]:
    """The cgroup of a subject in one hierarchy, and every one below it."""
    top = tree / path[1:]
    yield top
    for below, _ in _below(str(top), "", WALK_DEPTH):
        yield top / below[1:]


def usage(trees: Mapping[str, Path], path: str) -> int:
    """CPU time a cgroup used, in the unit of its hierarchy: to rank by; 0 where unknown."""
    for hierarchy, name in (("cpuacct", "cpuacct.usage"), (UNIFIED, "cpu.stat")):
        if hierarchy not in trees:
            continue
        try:
            tokens = (trees[hierarchy] / path[1:] / name).read_bytes().split()
            return int(tokens[-1] if len(tokens) == 1 else tokens[1])
        except (OSError, ValueError, IndexError):
            continue
    return 0


def controllers(trees: Mapping[str, Path], path: str) -> bytes | None:
    """Of which controllers of version 2 a cgroup has files; ``None`` where it cannot be read."""
    if UNIFIED not in trees:
        return None
    try:
        return (trees[UNIFIED] / path[1:] / "cgroup.controllers").read_bytes()
    except OSError:
        return None


def leads_on(path: str) -> bool:
    """Whether subjects come and go right below: the upper ones, and those that lead to pods."""
    return path.count("/") <= _WATCH_DEPTH or _leads_to_pods(path)


def _leads_to_pods(path: str) -> bool:
    """Between the cgroup of all pods and a pod; in a pod a container is a folder as well."""
    if "kubepods" not in path:
        return False
    last: Place | None = next(reversed(places(path)), None)
    return last is None or last.kind is not SubjectKind.POD or last.root == path


def _below(tree: str, path: str, depth: int) -> Iterator[tuple[str, int]]:
    """Path and inode of every cgroup under one, parents first; what vanishes is left out."""
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
        yield from _below(tree, child, depth - 1)


def _holds_processes(folder: str) -> bool:
    """Whether a process is in it; a threaded cgroup (EOPNOTSUPP) counts as one that has."""
    try:
        with open(f"{folder}/cgroup.procs", "rb", buffering=0) as file:
            return bool(file.read(1))
    except FileNotFoundError:
        return False
    except OSError:
        return os.path.isdir(folder)  # noqa: PTH112
