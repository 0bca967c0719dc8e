"""The subject a process belongs to, by what its cgroup says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from reveal_collector.subjects.pods import names, paths
from reveal_collector.subjects.pods.podlist import PodIndex
from reveal_collector.subjects.processes import NotAProcess, parse_stat
from reveal_contract.subjects import SubjectKind

SubjectOfPid = Callable[[int], str | None]


class CgroupOwner:
    """The subject of a process by its cgroup; in the root cgroup its process group."""

    def __init__(self, proc: Path) -> None:
        self._proc = proc

    def __call__(self, pid: int) -> str | None:
        try:
            text = (self._proc / str(pid) / "cgroup").read_text("utf-8", "replace")
            for path in paths.of_process(text):
                if (place := paths.place(path)) is not None:
                    return names.identity(place, PodIndex(), 0).instance
            return self._group(pid)
        except (OSError, ValueError, NotAProcess):
            return None

    def _group(self, pid: int) -> str:
        """Named as the source of process groups names it: by its leader while that lives."""
        mine = parse_stat(pid, (self._proc / str(pid) / "stat").read_bytes(), 1)
        try:
            leader = (self._proc / str(mine.group) / "stat").read_bytes()
            name = parse_stat(mine.group, leader, 1).name
        except (OSError, ValueError, NotAProcess):
            name = mine.name
        return f"pgrp:{name}[{mine.group}]"


def own_pods(proc: Path) -> list[str]:
    """The cgroups of the pods that this process is in, the innermost pod's of each hierarchy.

    None where it is in no pod, or in a cgroup namespace that hides which (cgroup_namespaces(7)).
    """
    try:
        text = (proc / "self/cgroup").read_text("utf-8", "replace")
    except OSError:
        return []
    found = (paths.places(path) for path in paths.of_process(text))
    roots = [places[-1].root for places in found if places and places[-1].kind is SubjectKind.POD]
    return list(dict.fromkeys(roots))
