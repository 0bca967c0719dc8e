"""Owner of a process: the subject that its cgroup names."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from reveal_collector.subjects import cgroup_paths
from reveal_collector.subjects.pods import names
from reveal_collector.subjects.pods.podlist import PodIndex
from reveal_collector.subjects.processes import NotAProcess, parse_stat
from reveal_contract.subjects import SubjectKind

SubjectOfPid = Callable[[int], str | None]


class ProcessOwner:
    """Returns the subject of a process by its cgroup; in the root cgroup its process group."""

    def __init__(self, proc: Path) -> None:
        self._proc = proc

    def __call__(self, pid: int) -> str | None:
        try:
            text = os.fsdecode((self._proc / str(pid) / "cgroup").read_bytes())
            for path in cgroup_paths.process_cgroups(text):
                if (owner := cgroup_paths.subject_path(path)) is not None:
                    return names.identify(owner, PodIndex(), 0).instance
            return self._process_group(pid)
        except (OSError, ValueError, NotAProcess):
            return None

    def _process_group(self, pid: int) -> str:
        """Return the instance that the source of process groups uses: named by a living leader."""
        own = parse_stat(pid, (self._proc / str(pid) / "stat").read_bytes(), 1)
        try:
            leader = (self._proc / str(own.group) / "stat").read_bytes()
            name = parse_stat(own.group, leader, 1).name
        except (OSError, ValueError, NotAProcess):
            name = own.name
        return f"pgrp:{name}[{own.group}]"


def own_pod_cgroups(proc: Path) -> list[str]:
    """Return the cgroups of the pods that this process runs in: in each hierarchy the innermost.

    Return an empty list outside of a pod, or in a cgroup namespace that hides the pod
    (cgroup_namespaces(7)).
    """
    try:
        text = os.fsdecode((proc / "self/cgroup").read_bytes())
    except OSError:
        return []
    found = (cgroup_paths.workload_paths(path) for path in cgroup_paths.process_cgroups(text))
    roots = [
        workloads[-1].root
        for workloads in found
        if workloads and workloads[-1].kind is SubjectKind.POD
    ]
    return list(dict.fromkeys(roots))
