"""A walk through the cgroup trees: which cgroups there are and which hold processes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from reveal_collector.pods.paths import Place, places
from reveal_collector.sources.cgroups import UNIFIED, below, holds_processes
from reveal_contract.subjects import SubjectKind

# Pods of a cluster in containers lie seven deep, their containers' own cgroups deeper still.
WALK_DEPTH = 10
_WATCH_DEPTH = 3


@dataclass
class Found:
    """One cgroup: its inode, whether processes are in it itself, whether nothing is below it."""

    inode: int
    holds: bool = False
    leaf: bool = True


def walk(trees: Mapping[str, Path]) -> dict[str, Found]:
    """Every cgroup by its path below the root of whichever hierarchies have it."""
    found: dict[str, Found] = {}
    for tree in trees.values():
        start = len(str(tree))
        for cgroup in below(tree, WALK_DEPTH):
            path = str(cgroup)[start:]
            one = found.get(path)
            if one is None:
                one = found[path] = Found(_inode(cgroup))
                above = found.get(path.rpartition("/")[0])
                if above is not None:
                    above.leaf = False
            one.holds = one.holds or holds_processes(cgroup)
    return found


def within(tree: Path, path: str) -> Iterator[Path]:
    """The cgroup of a subject in one hierarchy, and every one below it."""
    top = tree / path[1:]
    yield top
    yield from below(top, WALK_DEPTH)


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


def watched(trees: Mapping[str, Path]) -> Iterator[Path]:
    """The folders where subjects come and go: the upper ones, and those that lead to pods."""
    for tree in trees.values():
        yield tree
        start = len(str(tree))
        for cgroup in below(tree, WALK_DEPTH - 1):
            path = str(cgroup)[start:]
            if path.count("/") <= _WATCH_DEPTH or _leads_to_pods(path):
                yield cgroup


def _leads_to_pods(path: str) -> bool:
    """Between the cgroup of all pods and a pod; in a pod a container is a folder as well."""
    if "kubepods" not in path:
        return False
    last: Place | None = next(reversed(places(path)), None)
    return last is None or last.kind is not SubjectKind.POD or last.root == path


def _inode(cgroup: Path) -> int:
    try:
        return cgroup.stat().st_ino
    except OSError:
        return 0
