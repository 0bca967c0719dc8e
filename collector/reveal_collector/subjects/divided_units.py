"""Units that run several workloads, each in a cgroup of its own, as job managers do.

systemd leaves the cgroups below a delegated unit to that unit, so their names are known of few
managers only.  The processes show the others: a unit is divided where two cgroups below it hold
different processes.  Then each child is a subject, not the unit.  These stay whole:

- a unit whose processes are all in one cgroup below it, such as ``systemd-udevd.service/udev``;
- a virtual machine, whose threads are in cgroups of their own but belong to one process.

Reference: systemd's "Control Group APIs and Delegation".
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from reveal_collector.subjects.cgroup_files import cpu_root
from reveal_collector.subjects.cgroup_paths import child_towards, unit_of
from reveal_collector.subjects.cgroup_walk import FoundCgroup, pids_below, pids_in

_INSIDE_UNIT = (".service/", ".scope/")


class DividedUnits:
    """``divided`` are the cgroups, units or inside of units, whose children are subjects.

    A cgroup stays divided as long as it exists: with one job left, the columns stay the same.
    """

    def __init__(self, trees: Mapping[str, Path]) -> None:
        self.divided: frozenset[str] = frozenset()
        self._tree = cpu_root(trees)
        self._inodes: dict[str, int] = {}  # of the divided cgroups
        self._units: dict[str, str] = {}  # divided cgroup by unit

    def update(self, found: Mapping[str, FoundCgroup]) -> None:
        """Update ``divided`` after a walk."""
        self._units = {
            unit: parent
            for unit, parent in self._units.items()
            if parent in found and self._inodes[parent] in found[parent].inodes
        }
        for unit, parent, branches in _branching_units(found):
            if unit not in self._units and self._hold_different_processes(parent, branches):
                self._units[unit] = parent
                self._inodes[parent] = found[parent].inode
        self._inodes = {parent: self._inodes[parent] for parent in self._units.values()}
        self.divided = frozenset(self._inodes)

    def _hold_different_processes(self, parent: str, branches: Iterable[str]) -> bool:
        """Return whether two branches hold processes, and none of the same."""
        if self._tree is None:
            return False
        known: set[int] = set()
        count = 0
        for branch in branches:
            if branch == parent:  # by its own processes
                pids = pids_in(self._tree / parent[1:])
            else:
                pids = pids_below(self._tree, branch)
            count += bool(pids) and known.isdisjoint(pids)
            known |= pids
        return count > 1


def _branching_units(
    found: Mapping[str, FoundCgroup],
) -> Iterator[tuple[str, str, list[str]]]:
    """Yield each unit in which the cgroups of processes branch: the unit, the cgroup, its branches.

    The cgroup itself is a branch where it holds processes.
    """
    by_unit: dict[str, set[str]] = {}
    for path, cgroup in found.items():
        inside = cgroup.has_processes and any(unit in path for unit in _INSIDE_UNIT)
        if inside and (unit := unit_of(path)) is not None:
            own = child_towards(unit, path) == unit
            by_unit.setdefault(unit, set()).add(unit if own else path)
    for unit, paths in by_unit.items():
        if found[unit].has_processes:
            paths.add(unit)
        parent = os.path.commonpath(paths)
        branches = {child_towards(parent, path) for path in paths}
        if len(branches) > 1:
            yield unit, parent, sorted(branches)
